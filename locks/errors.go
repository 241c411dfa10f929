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

// PermitsError is returned when a semaphore's members do not agree on the number of permits, or
// when a call requests more permits than the limit. It wraps framework.ErrMismatch.
type PermitsError struct {
	// Path is the semaphore's path.
	Path string
	// Stored is how many permits the semaphore has, Given the number that does not fit.
	Stored, Given int
}

func (e *PermitsError) Error() string {
	return fmt.Sprintf("%v: %s has %d, %d were given; use %d, or change what is stored with SetLimit of a Semaphore that "+
		"is made with %d", errStoredPermits, e.Path, e.Stored, e.Given, e.Stored, e.Stored)
}

// Unwrap returns framework.ErrMismatch.
func (e *PermitsError) Unwrap() error { return errStoredPermits }

// errUpgrade is ErrHeld of a read lease.
var errUpgrade = failure.KindOf(ErrHeld, "a read lease cannot become a write lease")

// Kinds of errors of package framework, with texts of their own.
var (
	errHolderGone    = failure.KindOf(failure.ErrNotFound, "the holder is gone")
	errPermits       = failure.KindOf(failure.ErrInvalid, "number of permits")
	errStoredPermits = failure.KindOf(failure.ErrMismatch, "number of permits")
	errNotClaim      = failure.KindOf(failure.ErrForeign, "the path is taken by a node that belongs to no session")
)
