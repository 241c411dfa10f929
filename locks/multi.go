package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Multi is several locks that are held together or not at all, of any kinds.
//
// They are asked for one after the other in the order of their paths, whatever order they were given in,
// so that two multi-locks never wait for each other; keep to one Root for all clients, and take no
// other lock that a multi-lock may ask for while you wait for it. The lease ends when one of the
// locks' does, and its release releases all, last first. Its token is the highest of theirs, which
// rises with every grant of the same exclusive locks. A greatest hold (WithMaxHold) of one of them is counted
// from when all are held.
type Multi struct {
	lockers []Locker
	err     error
}

// NewMulti returns a lock of all lockers. Several of one path, or none, make every call return an error
// that says so.
func NewMulti(lockers ...Locker) *Multi {
	m := &Multi{}
	for _, l := range lockers {
		if inner, ok := l.(*Multi); ok && inner != nil { // its locks have their place in the order, too
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

// Path is all locks' paths, with commas between.
func (m *Multi) Path() string {
	paths := make([]string, len(m.lockers))
	for i, l := range m.lockers {
		if l != nil {
			paths[i] = l.Path()
		}
	}
	return strings.Join(paths, ",")
}

// Lock waits until all locks are held. When one fails the others are released, and the error names it. If
// the session is lost meanwhile, it begins again.
func (m *Multi) Lock(ctx context.Context) (*Lease, error) {
	return m.each(ctx, "acquire", Locker.Lock)
}

// TryLock holds all locks at once or returns an error that wraps ErrNotAcquired and names the first that
// could not be had.
func (m *Multi) TryLock(ctx context.Context) (*Lease, error) {
	return m.each(ctx, "try", Locker.TryLock)
}

// each asks again, with pauses, while a lease that was granted already ends before the last one is.
func (m *Multi) each(ctx context.Context, op string, lock func(Locker, context.Context) (*Lease, error)) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	var pauses lossPauses
	for {
		began := time.Now()
		lease, err := m.once(ctx, lock)
		if err == nil {
			return lease, nil
		}
		var lost *partLostError
		if errors.As(err, &lost) && ctx.Err() == nil {
			if pauses.retries == nil {
				pauses.retries = lost.session.Retries()
			}
			if pauses.wait(ctx, began) == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			err = framework.Ended(ctx)
		}
		return nil, fmt.Errorf("%s %s: %w", op, m.Path(), err)
	}
}

// once asks for all locks, and releases what was granted if that is not all, be it by a panic.
func (m *Multi) once(ctx context.Context, lock func(Locker, context.Context) (*Lease, error)) (lease *Lease, err error) {
	var b bundle
	defer func() {
		if lease == nil {
			b.giveUp(ctx)
		}
	}()
	if err := b.fill(ctx, m.lockers, lock); err != nil {
		return nil, err
	}
	return b.lease(m, ctx), nil
}

// partLostError says that a lease of this session ended while others were asked for.
type partLostError struct{ session *framework.Session }

func (*partLostError) Error() string { return "a lease ended meanwhile" }
