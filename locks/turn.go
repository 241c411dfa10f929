package locks

import (
	"context"
	"sync"
)

// turn is a lease within a slice, and its tenure. There may be a million a second, so its context is made
// only when somebody asks for it.
type turn struct {
	Lease
	node   *Lease
	values context.Context

	state  sync.Mutex
	cause  error
	within *within
}

// Context is the turn's context, within that of the node's lease.
func (t *turn) Context() context.Context {
	t.state.Lock()
	defer t.state.Unlock()
	if t.within == nil {
		t.within = newWithin(t.node, context.WithValue(t.values, heldKey{t.contender.line.client, t.contender.line.path}, &t.Lease))
		if t.cause != nil {
			t.within.End(t.cause)
		}
	}
	return t.within.ctx
}

// Err tells the turn's own end first: the node's lease goes on.
func (t *turn) Err() error {
	t.state.Lock()
	cause := t.cause
	t.state.Unlock()
	if cause != nil {
		return cause
	}
	return t.node.Err()
}

// End ends the turn; without a cause, the node's lease has ended.
func (t *turn) End(cause error) {
	if cause == nil {
		cause = t.node.Err()
	}
	t.state.Lock()
	defer t.state.Unlock()
	if t.cause != nil {
		return
	}
	t.cause = cause
	if t.within != nil {
		t.within.End(cause)
	}
}
