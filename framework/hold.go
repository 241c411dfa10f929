package framework

import (
	"context"
	"sync"
)

// Hold is what a session was granted: a node of its own and a context that is done when the node or
// the session is gone.
type Hold struct {
	s      *Session
	node   string
	full   string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Hold returns a hold on a node that this session has created. Its context carries the values of
// values and ends with the session, with the node (noticed by the next proofs of life, within about
// T/4 per 100 nodes held), or by End. It fails when the session has ended.
func (s *Session) Hold(values context.Context, node string) (*Hold, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	h := &Hold{s: s, node: node, full: s.client.ns.full(node)}
	base, cancel := context.WithCancelCause(s.ctx)
	h.ctx, h.cancel = holdContext{proven{base, s}, values}, cancel
	s.holds.add(h)
	return h, nil
}

// Context is done when the hold has ended; its cause says why.
func (h *Hold) Context() context.Context { return h.ctx }

// Session is the session that holds.
func (h *Hold) Session() *Session { return h.s }

// Err is nil while the hold stands, else why it ended. It reads the clock.
func (h *Hold) Err() error {
	if h.ctx.Err() == nil {
		return nil
	}
	return context.Cause(h.ctx)
}

// End ends the hold with a cause; only the first call counts. The node stays.
func (h *Hold) End(cause error) {
	h.s.holds.remove(h)
	h.cancel(cause)
}

// holdContext adds the values of the context that asked for the hold.
type holdContext struct {
	context.Context
	values context.Context
}

func (c holdContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// holds are a session's holds, in the rotation in which beats check them.
type holds struct {
	mu    sync.Mutex
	index map[*Hold]int
	list  []*Hold
	next  int
}

func (hs *holds) init() { hs.index = map[*Hold]int{} }

func (hs *holds) add(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.index[h] = len(hs.list)
	hs.list = append(hs.list, h)
}

func (hs *holds) remove(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	i, ok := hs.index[h]
	if !ok {
		return
	}
	last := hs.list[len(hs.list)-1]
	hs.list[i], hs.index[last] = last, i
	hs.list[len(hs.list)-1] = nil
	hs.list = hs.list[:len(hs.list)-1]
	delete(hs.index, h)
}

// some returns the next n holds of the rotation.
func (hs *holds) some(n int) []*Hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	n = min(n, len(hs.list))
	out := make([]*Hold, 0, n)
	for range n {
		hs.next = (hs.next + 1) % len(hs.list)
		out = append(out, hs.list[hs.next])
	}
	return out
}
