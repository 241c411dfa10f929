package members

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrNotFound is returned when no member with the ID is listed, and none is cordoned. List the members; EvenIfAbsent cordons one that is yet to come.
	ErrNotFound = failure.Sentinel("no such member")
	// ErrLeft is returned by Update when the membership has ended, and by Drain when the member has been absent for a session timeout without an
	// acknowledgement. Its process may still run. Its cordon stays.
	ErrLeft = failure.Sentinel("the member has left")
	// ErrWithdrawn is returned by Drain when somebody has removed the cordon or replaced the request. It is the cause with which the context of a drain function ends then.
	ErrWithdrawn = failure.Sentinel("the drain was withdrawn")
	// ErrDrainFailed is returned by Drain when the member answers that it cannot be drained; see DrainError.
	ErrDrainFailed = failure.Sentinel("the drain has failed")
	// ErrCordoned is returned by Membership.Healthy while the member is cordoned.
	ErrCordoned = failure.Sentinel("the member is cordoned")
	// ErrInvalid is returned when an ID, an Info or an option cannot be used. The text says why.
	ErrInvalid = failure.Sentinel("invalid member")
)

// DrainError reports why a member was not drained, in its own words. It wraps ErrDrainFailed.
type DrainError struct {
	// ID is the member's.
	ID string
	// Reason is the text of the error that its drain function returned.
	Reason string
}

func (e *DrainError) Error() string {
	return fmt.Sprintf("%v: member %q: %s; it stays cordoned, drain it again to try again", ErrDrainFailed, e.ID, e.Reason)
}

// Unwrap returns ErrDrainFailed.
func (e *DrainError) Unwrap() error { return ErrDrainFailed }

// isRaced tells a transaction that was refused because somebody else has changed a node meanwhile.
func isRaced(err error) bool {
	var refused *framework.TxError
	return errors.As(err, &refused) && (errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNodeExists))
}

// isUnknown tells a write without an answer. What is to be written is compared with what is there then.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }
