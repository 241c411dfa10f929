package members

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrLeft is returned by Update when the membership has ended, and by Drain when no member with
	// the ID was listed for a session timeout of the caller's client, and none has acknowledged the
	// drain. The member's process may still run. Its cordon stays. The context of the drain
	// function ends with ErrLeft as its cause when the membership ends.
	ErrLeft = failure.Sentinel("the member has left")
	// ErrWithdrawn is returned by Drain when it sees that the cordon was removed, or replaced by
	// one that asks for no drain. The context of the drain function ends with it as its cause when
	// the cordon was removed or the request replaced.
	ErrWithdrawn = failure.Sentinel("the drain was withdrawn")
	// ErrDrainFailed is returned by Drain when the member answers that its drain has failed; see
	// DrainError.
	ErrDrainFailed = failure.Sentinel("the drain has failed")
)

// errCordoned is returned by Membership.Healthy while the member is cordoned.
var errCordoned = errors.New("the member is cordoned")

// DrainError says why a member's drain has failed. It wraps ErrDrainFailed.
type DrainError struct {
	// ID is the member's ID.
	ID string
	// Reason is the text of the error that the member's drain function returned, in UTF-8 and cut
	// to 4,096 bytes, or says that the member has no drain function.
	Reason string
}

func (e *DrainError) Error() string {
	return fmt.Sprintf("%v: member %q: %s; it stays cordoned, drain it again to try again", ErrDrainFailed,
		e.ID, e.Reason)
}

// Unwrap returns ErrDrainFailed.
func (e *DrainError) Unwrap() error { return ErrDrainFailed }

// isConflict reports whether the servers refused a transaction because another client has changed,
// created or deleted one of its nodes.
func isConflict(err error) bool {
	var refused *framework.TxError
	return errors.As(err, &refused) &&
		(errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) ||
			errors.Is(err, framework.ErrNodeExists))
}

// isUnknown reports whether the outcome of a write is unknown. The caller reads the node again
// then, and repeats the write if the node has not its data.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }

// Kinds of errors of package framework, with texts of their own.
var (
	errNotFound = failure.KindOf(failure.ErrNotFound, "no such member")
	errInvalid  = failure.KindOf(failure.ErrInvalid, "invalid member")
)
