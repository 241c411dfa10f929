package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/lifetime"
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
	return m.acquireWithRetries(ctx, "acquire", Locker.Lock)
}

// TryLock holds all locks at once or returns an error that wraps ErrNotAcquired and names the first that
// could not be had.
func (m *Multi) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquireWithRetries(ctx, "try", Locker.TryLock)
}

// acquireWithRetries asks again, with pauses, while a lease that was granted already ends before the last one is.
func (m *Multi) acquireWithRetries(ctx context.Context, op string, lock func(Locker, context.Context) (*Lease, error)) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	var pauses lossPauses
	for {
		began := time.Now()
		lease, err := m.acquireOnce(ctx, lock)
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

// acquireOnce asks for all locks, and releases what was granted if that is not all, be it by a panic.
func (m *Multi) acquireOnce(ctx context.Context, lock func(Locker, context.Context) (*Lease, error)) (lease *Lease, err error) {
	var b heldLeases
	defer func() {
		if lease == nil {
			b.releaseAndWait(ctx)
		}
	}()
	if err := b.acquireAll(ctx, m.lockers, lock); err != nil {
		return nil, err
	}
	return b.combinedLease(m, ctx), nil
}

// partLostError says that a lease of this session ended while others were asked for.
type partLostError struct{ session *framework.Session }

func (*partLostError) Error() string { return "a lease ended meanwhile" }

// heldLeases is leases that belong together.
type heldLeases struct{ parts []*Lease }

// multiAcquire is what waits until a multi-lock has all of its locks, or fails to have them.
type multiAcquire struct {
	mu      sync.Mutex
	over    bool
	waiting []func()
}

// multiAcquireKey is the key of the gathering in the context with which a multi-lock asks.
type multiAcquireKey struct{}

// onOver has f called when the gathering is over, and reports whether it is not yet.
func (g *multiAcquire) onOver(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.waiting = append(g.waiting, f)
	}
	return !g.over
}

func (g *multiAcquire) finish() {
	g.mu.Lock()
	waiting := g.waiting
	g.over, g.waiting = true, nil
	g.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// acquireAll asks for one lease after the other, while those that were granted stand.
func (b *heldLeases) acquireAll(ctx context.Context, lockers []Locker, lock func(Locker, context.Context) (*Lease, error)) error {
	all := new(multiAcquire)
	defer all.finish()
	asking, cancel := context.WithCancelCause(context.WithValue(ctx, multiAcquireKey{}, all))
	defer cancel(nil)
	for _, l := range lockers {
		lease, err := lock(l, asking)
		if err != nil {
			var lost *partLostError
			if errors.As(context.Cause(asking), &lost) {
				return lost
			}
			return err
		}
		b.parts = append(b.parts, lease)
		stop := context.AfterFunc(lease.Context(), func() { cancel(&partLostError{lease.session}) })
		defer stop()
	}
	for _, p := range b.parts {
		if p.Err() != nil {
			return &partLostError{p.session}
		}
	}
	return nil
}

// releaseAll releases all, last first, each as soon as the one before is on its way. Only parts of one session
// wait for each other: one that cannot be reached holds up no others.
func (b *heldLeases) releaseAll() {
	sessions := map[*framework.Session][]*Lease{}
	for _, p := range slices.Backward(b.parts) {
		sessions[p.session] = append(sessions[p.session], p)
	}
	var all sync.WaitGroup
	for _, parts := range sessions {
		all.Go(func() { releaseInOrder(parts) })
	}
	all.Wait()
}

func releaseInOrder(parts []*Lease) {
	for _, p := range parts {
		p.finishRelease(ErrReleased, true)
		select {
		case <-p.given.written:
		case <-p.given.gone:
		}
	}
}

// combinedLease is one lease on all.
func (b *heldLeases) combinedLease(m *Multi, ctx context.Context) *Lease {
	first := b.parts[0]
	lease := &Lease{path: m.Path(), node: first.node, parts: b.parts, session: first.session, back: b.releaseInBackground}
	lifetimes := make([]*lifetime.Lifetime, len(b.parts))
	for i, p := range b.parts {
		lease.token = max(lease.token, p.token)
		lifetimes[i] = p.life
	}
	lease.life = lifetime.Join(leaseContext{ctx, lease}, lifetimes...)
	return lease.startTimers(0)
}

// releaseAndWait releases what was granted so far, and waits for that until ctx ends.
func (b *heldLeases) releaseAndWait(ctx context.Context) {
	select {
	case <-b.releaseInBackground(false).gone:
	case <-ctx.Done():
	}
}

// releaseInBackground releases all in the background.
func (b *heldLeases) releaseInBackground(bool) releaseProgress {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		b.releaseAll()
		for _, p := range b.parts {
			<-p.given.gone
		}
	}()
	return releaseProgress{gone: gone}
}
