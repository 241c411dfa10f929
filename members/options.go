package members

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// JoinOption changes how a process joins.
type JoinOption func(*joinOptions) error

type joinOptions struct {
	drain func(context.Context, Cordon) error
}

// WithDrain gives the function that finishes the member's work when a drain is asked for. The member is cordoned before it is called. When it returns nil, the member
// acknowledges the drain; an error is reported to whoever asked. Its context ends with the cause ErrWithdrawn when the drain is withdrawn, and when the
// membership ends; it outlives lost sessions. The function then returns soon, since one call runs at a time. It must not call
// Leave. Without WithDrain a member answers that it cannot be drained.
func WithDrain(drain func(ctx context.Context, c Cordon) error) JoinOption {
	return func(o *joinOptions) error {
		if drain == nil {
			return fmt.Errorf("%w: the function of WithDrain is nil", ErrInvalid)
		}
		o.drain = drain
		return nil
	}
}

// CordonOption changes a cordon or a drain.
type CordonOption func(*cordonOptions) error

type cordonOptions struct {
	reason string
	absent bool
}

// maxReason bounds the text of a reason, and that of an answer.
const maxReason = 4 << 10

// Reason tells others why, in at most 4,096 bytes of UTF-8.
func Reason(text string) CordonOption {
	return func(o *cordonOptions) error {
		if len(text) > maxReason || !utf8.ValidString(text) {
			return fmt.Errorf("%w: a reason of %d bytes, it must be UTF-8 and at most %d", ErrInvalid, len(text), maxReason)
		}
		o.reason = text
		return nil
	}
}

// EvenIfAbsent cordons an ID of which no member is listed. A member that joins with it is cordoned from the start.
func EvenIfAbsent() CordonOption {
	return func(o *cordonOptions) error {
		o.absent = true
		return nil
	}
}
