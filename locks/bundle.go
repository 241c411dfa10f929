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

// fill asks for one lease after the other, while those that were granted stand.
func (b *bundle) fill(ctx context.Context, lockers []Locker, lock func(Locker, context.Context) (*Lease, error)) error {
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, l := range lockers {
		lease, err := lock(l, asking)
		if err != nil {
			if errors.Is(context.Cause(asking), errPartLost) {
				return errPartLost
			}
			return err
		}
		b.parts = append(b.parts, lease)
		stop := context.AfterFunc(lease.Context(), func() { cancel(errPartLost) })
		defer stop()
	}
	for _, p := range b.parts {
		if p.Err() != nil {
			return errPartLost
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
	first, tenure := b.parts[0], newJoint(ctx, b.parts)
	lease := &Lease{path: m.Path(), node: first.node, fence: first.fence, parts: b.parts, session: first.session, tenure: tenure, back: b.giveBack}
	for _, p := range b.parts {
		lease.token = max(lease.token, p.token)
		p.join(func() { tenure.cancel(context.Cause(p.Context())) })
	}
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

// joint is the tenure of several leases.
type joint struct {
	parts  []*Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// newJoint is over as soon as one part is: before a part that ends alone is given back (see Lease.join), and with
// one that somebody else ends.
func newJoint(values context.Context, parts []*Lease) *joint {
	base, cancel := context.WithCancelCause(parts[0].Context())
	j := &joint{parts: parts, cancel: cancel}
	j.ctx = jointContext{framework.Standing(base, j.standing), values, parts}
	for _, p := range parts[1:] {
		context.AfterFunc(p.Context(), func() { cancel(context.Cause(p.Context())) })
	}
	return j
}

// jointContext has the values of the context that asked, and knows the leases that it belongs to.
type jointContext struct {
	context.Context
	values context.Context
	parts  []*Lease
}

func (c jointContext) Value(key any) any {
	if _, held := key.(heldKey); held {
		for _, p := range c.parts {
			if v := p.Context().Value(key); v != nil {
				return v
			}
		}
	}
	return withValues{c.Context, c.values}.Value(key)
}

func (j *joint) Context() context.Context { return j.ctx }

// Err tells what ended first, and asks the parts, which read the clock.
func (j *joint) Err() error {
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	return j.standing()
}

// standing ends the whole if a part has ended, and tells why.
func (j *joint) standing() error {
	for _, p := range j.parts {
		if err := p.Err(); err != nil {
			j.cancel(err)
			return err
		}
	}
	return nil
}

func (j *joint) End(cause error) { j.cancel(cause) }
