package locks

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// bundle is leases that belong together.
type bundle struct{ parts []*Lease }

// gathering is what waits until a multi-lock has all of its locks, or fails to have them.
type gathering struct {
	mu      sync.Mutex
	over    bool
	waiting []func()
}

// gatheringKey is the key of the gathering in the context with which a multi-lock asks.
type gatheringKey struct{}

// add has f called when the gathering is over, and reports whether it is not yet.
func (g *gathering) add(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.waiting = append(g.waiting, f)
	}
	return !g.over
}

func (g *gathering) end() {
	g.mu.Lock()
	waiting := g.waiting
	g.over, g.waiting = true, nil
	g.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// fill asks for one lease after the other, while those that were granted stand.
func (b *bundle) fill(ctx context.Context, lockers []Locker, lock func(Locker, context.Context) (*Lease, error)) error {
	all := new(gathering)
	defer all.end()
	asking, cancel := context.WithCancelCause(context.WithValue(ctx, gatheringKey{}, all))
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

// release releases all, last first, each as soon as the one before is on its way. Only parts of one session
// wait for each other: one that cannot be reached holds up no others.
func (b *bundle) release() {
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
		p.finish(ErrReleased, true)
		select {
		case <-p.given.written:
		case <-p.given.gone:
		}
	}
}

// lease is one lease on all.
func (b *bundle) lease(m *Multi, ctx context.Context) *Lease {
	first := b.parts[0]
	lease := &Lease{path: m.Path(), node: first.node, parts: b.parts, session: first.session, back: b.giveBack}
	lifetimes := make([]*framework.Lifetime, len(b.parts))
	for i, p := range b.parts {
		lease.token = max(lease.token, p.token)
		lifetimes[i] = p.life
	}
	lease.life = framework.JoinLifetimes(leaseContext{ctx, lease}, lifetimes...)
	return lease.start(0)
}

// giveUp releases what was granted so far, and waits for that until ctx ends.
func (b *bundle) giveUp(ctx context.Context) {
	select {
	case <-b.giveBack(false).gone:
	case <-ctx.Done():
	}
}

// giveBack releases all in the background.
func (b *bundle) giveBack(bool) returned {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		b.release()
		for _, p := range b.parts {
			<-p.given.gone
		}
	}()
	return returned{gone: gone}
}
