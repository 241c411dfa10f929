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

// WithDrain sets the function that finishes the member's work when an operator drains the member.
// The member is cordoned before the call. When the function returns nil, the member acknowledges
// the drain. When it returns an error, the operator's Drain returns a *DrainError with its text. A
// panic of the function, and the end of its goroutine, are errors.
//
// The function's context outlives lost sessions. It ends with the cause ErrWithdrawn when the drain
// is withdrawn, and with ErrLeft when the membership ends. Then return soon: the member does not
// follow its cordon until the function has returned. Leave waits for the function until Leave's
// context ends, so the function must not wait for Leave. Without WithDrain a member answers that
// its drain has failed.
func WithDrain(drain func(ctx context.Context, c Cordon) error) JoinOption {
	return func(o *joinOptions) error {
		if drain == nil {
			return fmt.Errorf("%w: the function of WithDrain is nil", errInvalid)
		}
		o.drain = drain
		return nil
	}
}

// CordonOption changes a cordon or a drain.
type CordonOption func(*cordonOptions) error

type cordonOptions struct {
	reason       string
	evenIfAbsent bool
}

// maxReason is how many bytes a reason may have, and the error of an answer.
const maxReason = 4 << 10

// WithReason stores why the member is cordoned, for people to read: at most 4,096 bytes of UTF-8.
// Without WithReason, a drain keeps the reason of the cordon that stands.
func WithReason(text string) CordonOption {
	return func(o *cordonOptions) error {
		if len(text) > maxReason || !utf8.ValidString(text) {
			return fmt.Errorf("%w: a reason of %d bytes: it must be UTF-8 of at most %d", errInvalid,
				len(text), maxReason)
		}
		o.reason = text
		return nil
	}
}

// WithAbsentMember permits to cordon an ID with which no member is listed. A member that joins with
// it is cordoned from the start.
func WithAbsentMember() CordonOption {
	return func(o *cordonOptions) error {
		o.evenIfAbsent = true
		return nil
	}
}
