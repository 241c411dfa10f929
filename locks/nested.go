package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// heldKey is the key of the lease that a context belongs to, of one lock.
type heldKey struct {
	client any
	path   string
}

// heldIn returns the standing lease of the line's lock that ctx belongs to, or nil.
func heldIn(ctx context.Context, l *Line) *Lease {
	lease, _ := ctx.Value(heldKey{l.client, l.path}).(*Lease)
	if lease == nil || lease.Err() != nil {
		return nil
	}
	return lease
}

// under returns what may be had under a lease of the same lock.
func (l *Line) under(ctx context.Context, outer *Lease) (*Lease, error) {
	switch held := outer.kind; {
	case held == l.kind && l.reentry:
		return l.nest(ctx, outer), nil
	case held == WriteKind && l.kind == ReadKind:
		return l.goOn(ctx, outer)
	case held == ReadKind && l.kind == WriteKind:
		return nil, ErrUpgrade
	}
	return nil, ErrHeld
}

// nest returns a lease on the node of another, which ends with it.
func (l *Line) nest(ctx context.Context, outer *Lease) *Lease {
	lease := &Lease{path: l.name, kind: l.kind, node: outer.node, token: outer.token, turn: outer.turn, session: outer.session,
		contender: outer.contender, back: nothingToGiveBack}
	lease.tenure = newWithin(outer, context.WithValue(ctx, heldKey{l.client, l.path}, lease))
	return lease.start(l.maxHold)
}

// nothingToGiveBack is the way back of a lease whose node is another's.
func nothingToGiveBack(bool) returned { return returned{gone: over} }

// within is a tenure inside another lease's.
type within struct {
	outer  *Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newWithin(outer *Lease, values context.Context) *within {
	base, cancel := context.WithCancelCause(outer.Context())
	return &within{outer, withValues{framework.Standing(base, outer.Err), values}, cancel}
}

func (w *within) Context() context.Context { return w.ctx }

// Err tells what ended first, and asks the outer lease, which reads the clock.
func (w *within) Err() error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.outer.Err()
}

func (w *within) End(cause error) { w.cancel(cause) }

// withValues has the values of another context before its own.
type withValues struct {
	context.Context
	values context.Context
}

func (c withValues) Value(key any) any {
	if _, ours := key.(heldKey); ours {
		return c.values.Value(key)
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
