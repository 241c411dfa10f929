package locks

import (
	"context"
	"errors"
)

// Locker is implemented by every lock. RWLock and Semaphore have further Lockers, see
// RWLock.RLocker and Semaphore.Permits.
type Locker interface {
	// Path is the lock's path.
	Path() string
	// Lock waits until the lock is granted. Its error is that of ctx when that ended the wait, or
	// says why the lock cannot be granted. See Mutex.Lock.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock acquires the lock at once, or returns an error that wraps ErrNotAcquired.
	TryLock(ctx context.Context) (*Lease, error)
}

// Do runs f while it holds the lock, and then releases the lock, even if f panics. The context of f
// ends with the lease and with ctx; f must return soon after. Do waits for the release as Release
// does, also if ctx has ended. A release that the servers have not confirmed is logged: it does not
// change what f has done. The error is that of Lock or of f. If the lease has ended before f, the
// error wraps the cause too, even if f returned nil: the lock did not protect the last steps of f.
func Do(ctx context.Context, locker Locker, f func(ctx context.Context, lease *Lease) error) error {
	lease, err := locker.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		lost := lease.Err() // the log of the client and the error of Do tell of it
		if err := lease.Release(ctx); err != nil && lost == nil {
			lease.logger().Warn("a lock was given back, and the servers have not confirmed it", "path",
				locker.Path(), "error", err)
		}
	}()
	inside := lease.life.Child(lease.Context())
	defer inside.End(context.Canceled)
	stop := context.AfterFunc(ctx, func() { inside.End(context.Cause(ctx)) })
	defer stop()
	err = f(inside.Context(), lease)
	if lost := lease.Err(); lost != nil && !errors.Is(err, lost) {
		return errors.Join(err, lost)
	}
	return err
}
