package locks

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

var (
	// ErrNotAcquired is returned by TryLock and its like when another contender holds or waits.
	ErrNotAcquired = waitline.ErrNotAcquired
	// ErrReleased is the cause of a lease's end by Release. It is also returned for a use of a
	// released lease, such as a transaction with its Guard.
	ErrReleased = errors.New("lease released")
	// ErrMaxHold is the cause of a lease's end when it was held longer than WithMaxHold allows.
	ErrMaxHold = errors.New("lease held too long")
	// ErrHeld is returned when the context belongs to a lease of the same lock: the wait would last
	// forever. A lock with WithReentry grants a nested lease instead. It is also returned when that
	// is a read lease and the write lock is requested: two readers that both wait for the other's
	// release would wait forever. Release the read lease first, and read again what it protected.
	ErrHeld = errors.New("the context already belongs to a lease of this lock")
	// ErrDeadlock is returned when holders of locks wait for each other, to the youngest of their
	// requests. The error is a *DeadlockError.
	ErrDeadlock = waitline.ErrDeadlock
)

// MismatchError is returned when a Semaphore was made with another number of permits than the
// semaphore has, or when a call requests more permits than it has. It wraps framework.ErrMismatch.
type MismatchError struct {
	// Path is the semaphore's path.
	Path string
	// Stored is how many permits the semaphore has, Given the number that does not fit.
	Stored, Given int
	// Requested says that a call has requested Given permits at once. Otherwise the Semaphore was
	// made with Given.
	Requested bool
}

func (e *MismatchError) Error() string {
	if e.Requested {
		return fmt.Sprintf("%v: %s has %d, %d were requested; request at most %d, or raise the number with SetLimit",
			errStoredPermits, e.Path, e.Stored, e.Given, e.Stored)
	}
	return fmt.Sprintf("%v: %s has %d, the Semaphore was made with %d; make it with %d, whose SetLimit also changes "+
		"the number", errStoredPermits, e.Path, e.Stored, e.Given, e.Stored)
}

// Unwrap returns framework.ErrMismatch.
func (e *MismatchError) Unwrap() error { return errStoredPermits }

// errUpgrade is ErrHeld of a read lease.
var errUpgrade = failure.KindOf(ErrHeld, "a read lease cannot become a write lease")

// Kinds of errors of package framework, with texts of their own.
var (
	errHolderGone    = failure.KindOf(failure.ErrNotFound, "the holder is gone")
	errPermits       = failure.KindOf(failure.ErrInvalid, "number of permits")
	errStoredPermits = failure.KindOf(failure.ErrMismatch, "number of permits")
	errNotClaim      = failure.KindOf(failure.ErrForeign, "the path is taken by a node that belongs to no session")
)
