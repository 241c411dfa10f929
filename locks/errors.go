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
)
