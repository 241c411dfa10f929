package locks

import (
	"context"
	"errors"
)

// Locker is what all kinds of locks are, in one of their forms.
type Locker interface {
	// Path is where the lock is.
	Path() string
	// Lock waits until the lock is granted, or returns the error of ctx or of a refusal.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock is granted the lock at once or returns an error that wraps ErrNotAcquired.
	TryLock(ctx context.Context) (*Lease, error)
}

// Do runs f while holding the lock, and releases it whatever happens, a panic included. f gets the lease's
// context, which ends with the lease and with ctx, and must return soon after. Do waits for the release until ctx
// ends; the rest is done in the background, as Release does. The error is that of
// the ask or of f. If the lease has ended before f, the error wraps the cause too, even if f returned
// nil: what f did last was not protected.
func Do(ctx context.Context, locker Locker, f func(ctx context.Context, lease *Lease) error) error {
	lease, err := locker.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(ctx) }() // has no error
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
