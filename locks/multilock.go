package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// MultiLock is several locks of any kinds that are held all together or not at all.
//
// It acquires them one after the other in the order of their paths, not of the arguments, so that
// two multi-locks cannot wait for each other. Keep to one Root for all clients. While you wait for
// a multi-lock, hold no other lock that a multi-lock may acquire. The lease ends when one of the
// parts does, and its release releases all parts, last first. Its token is the highest of theirs,
// which rises with every grant of the same exclusive locks. The time of a part's WithMaxHold counts
// from the moment when all are held.
type MultiLock struct {
	lockers []Locker // in the order of their paths
	err     error    // of the arguments; every call returns it
}

// NewMultiLock returns a lock of all lockers. There must be at least one, and each must have a path
// of its own.
func NewMultiLock(lockers ...Locker) *MultiLock {
	m := &MultiLock{}
	for _, l := range lockers {
		if inner, ok := l.(*MultiLock); ok && inner != nil { // its locks have their place in the order, too
			m.lockers = append(m.lockers, inner.lockers...)
		} else {
			m.lockers = append(m.lockers, l)
		}
	}
	if len(m.lockers) == 0 {
		m.err = errors.New("a multi-lock of no locks")
	}
	if slices.Contains(m.lockers, nil) {
		m.err = errors.New("a multi-lock with a lock that is nil")
		return m
	}
	slices.SortStableFunc(m.lockers, func(a, b Locker) int { return cmp.Compare(a.Path(), b.Path()) })
	for i := 1; i < len(m.lockers); i++ {
		if path := m.lockers[i].Path(); path == m.lockers[i-1].Path() {
			m.err = fmt.Errorf("a multi-lock with %s twice: it would wait for itself", path)
		}
	}
	return m
}

// Validate returns what is wrong with the arguments of NewMultiLock or of one of the locks, as
// every call does, or nil. It sends no request.
func (m *MultiLock) Validate() error {
	if m.err != nil {
		return m.err
	}
	for _, l := range m.lockers {
		if v, ok := l.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Path is all locks' paths, with commas between.
func (m *MultiLock) Path() string {
	paths := make([]string, len(m.lockers))
	for i, l := range m.lockers {
		if l != nil {
			paths[i] = l.Path()
		}
	}
	return strings.Join(paths, ",")
}

// Lock waits until it holds all locks. When one fails it releases the others, waits for that until
// ctx ends, but no longer than framework.Config.CleanupTimeout, and the error names the lock. If
// the session is lost meanwhile, it begins again.
func (m *MultiLock) Lock(ctx context.Context) (*Lease, error) {
	return m.acquireWithRetries(ctx, "acquire", Locker.Lock)
}

// TryLock acquires all locks at once or returns an error that wraps ErrNotAcquired and names the
// first lock that was not free.
func (m *MultiLock) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquireWithRetries(ctx, "try", Locker.TryLock)
}

// acquireWithRetries begins again, with pauses, while a part that was granted ends before the last
// part is granted.
func (m *MultiLock) acquireWithRetries(ctx context.Context, op string,
	lock func(Locker, context.Context) (*Lease, error)) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	var pauses recipe.RetryPauses
	for {
		began := time.Now()
		lease, err := m.acquireOnce(ctx, lock)
		if err == nil {
			return lease, nil
		}
		var lost *partLostError
		if errors.As(err, &lost) && ctx.Err() == nil {
			pauses.Client = lost.part.client
			if pauses.Wait(ctx, began) == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			err = failure.Ended(ctx)
		}
		return nil, fmt.Errorf("%s %s: %w", op, m.Path(), err)
	}
}

// partLostError says that a part ended while others were acquired.
type partLostError struct{ part *Lease }

func (*partLostError) Error() string { return "a lease ended meanwhile" }

// acquireOnce acquires one part after the other, while those that were granted stand. It releases
// them if that fails or panics.
func (m *MultiLock) acquireOnce(ctx context.Context,
	lock func(Locker, context.Context) (*Lease, error)) (combined *Lease, err error) {
	var parts []*Lease
	defer func() {
		if combined == nil && len(parts) > 0 {
			// the servers may refuse it
			waiting, cancel := context.WithTimeout(ctx, parts[0].cleanupTimeout())
			defer cancel()
			select {
			case <-releaseInBackground(parts).Done():
			case <-waiting.Done():
			}
		}
	}()
	acquiring, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	holding := acquiring
	for _, l := range m.lockers {
		lease, err := lock(l, holding)
		if err != nil {
			var lost *partLostError
			if errors.As(context.Cause(acquiring), &lost) {
				return nil, lost
			}
			return nil, err
		}
		parts = append(parts, lease)
		lease.changeLimits((*Lease).stopLimit)                // until all are held
		holding = withHeldLocks(holding, lease.standingNodes) // a deadlock may have a part of it in it
		stop := context.AfterFunc(lease.Context(), func() { cancel(&partLostError{lease}) })
		defer stop()
	}
	for _, p := range parts {
		p.changeLimits((*Lease).startLimit)
		if p.Err() != nil {
			return nil, &partLostError{p}
		}
	}
	return m.combineLeases(ctx, parts), nil
}

// combineLeases returns one lease on all parts.
func (m *MultiLock) combineLeases(ctx context.Context, parts []*Lease) *Lease {
	first := firstOnZooKeeper(parts)
	lease := &Lease{client: first.client, path: m.Path(), node: first.node, parts: parts, session: first.session,
		otherStore: first.otherStore}
	lifetimes := make([]*lifetime.Lifetime, len(parts))
	for i, p := range parts {
		lease.token = max(lease.token, p.token)
		lifetimes[i] = p.life
	}
	lease.life = lifetime.Join(leaseContext{ctx, lease}, lifetimes...)
	return lease.watchEnd(0)
}
