package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// heldKey is the key of the lease that a context belongs to, of one lock.
type heldKey struct {
	client *framework.Client
	path   string
}

// leaseContext has the values of the context that a lease was asked for with, and knows the lease.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c leaseContext) Value(key any) any {
	if key, ok := key.(heldKey); ok {
		if lease := c.lease.of(key); lease != nil {
			return lease
		}
	}
	return c.Context.Value(key)
}

// of returns the lease itself or the part of it that holds the lock of this key, or nil.
func (l *Lease) of(key heldKey) *Lease {
	if l.key == key {
		return l
	}
	for _, p := range l.parts {
		if found := p.of(key); found != nil {
			return found
		}
	}
	return nil
}

// callerKey is the key of the context that a lock was asked for with, in the context of the ask's own span.
type callerKey struct{}

// callerOf returns the context whose values a lease carries: the span of the ask has ended when the lease begins.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
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
		key: outer.key, within: outer, contender: outer.contender, back: nothingToGiveBack}
	lease.life = outer.life.Child(leaseContext{callerOf(ctx), lease})
	return lease.start(l.maxHold)
}

// nothingToGiveBack is the way back of a lease whose node is another's.
func nothingToGiveBack(bool) returned { return returned{gone: over} }
