package locks

import "errors"

var (
	// ErrNotAcquired is returned when a try finds that somebody else holds the lock or waits for it.
	ErrNotAcquired = errors.New("not acquired")
	// ErrReleased is the cause of a lease's end when its holder released it, and is returned when a
	// released lease is used.
	ErrReleased = errors.New("lease released")
	// ErrKindMixed is returned when a directory holds contenders of another kind: each kind would
	// see itself first, and both would hold.
	ErrKindMixed = errors.New("directory holds contenders of another kind")
	// ErrMaxHold is the cause of a lease's end when it was held longer than WithMaxHold allows.
	ErrMaxHold = errors.New("lease held too long")
	// ErrHeld is returned when the context belongs to a lease of the same lock: waiting for it would
	// never end. A lock with WithReentry grants a nested lease instead.
	ErrHeld = errors.New("the context belongs to a lease of this lock already")
	// ErrUpgrade is returned when the context belongs to a read lease and the write lock is asked for: two
	// readers that both wait for the other to leave would wait for ever. Release the read lease
	// first, and look again at what it protected.
	ErrUpgrade = errors.New("a read lease cannot become a write lease")
	// ErrPermits is returned when a semaphore's members do not agree on the number of permits, or when a
	// number of permits cannot be had; see PermitsError.
	ErrPermits = errors.New("number of permits")
	// ErrNotClaim is returned when the node at a claim's path belongs to no session, such as the directory of
	// another lock: waiting for its end could last for ever.
	ErrNotClaim = errors.New("the path is taken by a node that belongs to no session")
	// ErrHolderGone is returned when a lease is to be revoked whose node does not exist any more.
	ErrHolderGone = errors.New("the holder is gone")
)
