package framework

import (
	"context"
	"sync"
)

// Hold is what a session was granted: nodes of its own and a context that is done when one of them or
// the session is gone.
type Hold struct {
	s     *Session
	nodes []heldNode
	one   [1]heldNode // of most holds
	life  Lifetime
}

// heldNode is one node of a hold.
type heldNode struct {
	hold  *Hold
	path  string
	full  string
	place int // in the rotation
}

// Hold returns a hold on nodes that this session has created. Its context carries the values of
// values and ends with the session, with any of the nodes (noticed by the next proofs of life, within about
// T/4 per 100 nodes held), or by End. It fails when the session has ended.
func (s *Session) Hold(values context.Context, nodes ...string) (*Hold, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	h := &Hold{s: s, life: Lifetime{within: s, values: values}}
	h.nodes = h.one[:0]
	for _, path := range nodes {
		h.nodes = append(h.nodes, heldNode{hold: h, path: path, full: s.client.ns.serverPath(path)})
	}
	s.holds.add(h)
	return h, nil
}

// Context is done when the hold has ended; its cause says why.
func (h *Hold) Context() context.Context { return h.life.Context() }

// Lifetime is how long the hold stands, for what lies within it. End the hold itself.
func (h *Hold) Lifetime() *Lifetime { return &h.life }

// Session is the session that holds.
func (h *Hold) Session() *Session { return h.s }

// Err is nil while the hold stands, else why it ended. It reads the clock.
func (h *Hold) Err() error { return h.life.Err() }

// End ends the hold with a cause; only the first call counts. The nodes stay.
func (h *Hold) End(cause error) {
	h.s.holds.remove(h)
	h.life.End(cause)
}

// heldNodes are the nodes that a session's holds name, in the rotation in which beats check them.
type heldNodes struct {
	mu   sync.Mutex
	list []*heldNode
	next int
}

const notInRotation = -1

func (hs *heldNodes) add(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		h.nodes[i].place = len(hs.list)
		hs.list = append(hs.list, &h.nodes[i])
	}
}

func (hs *heldNodes) remove(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		hs.swapRemove(&h.nodes[i])
	}
}

// swapRemove puts the last of the list into a node's place.
func (hs *heldNodes) swapRemove(n *heldNode) {
	if n.place == notInRotation {
		return
	}
	end := len(hs.list) - 1
	last := hs.list[end]
	hs.list[n.place], last.place = last, n.place
	hs.list[end] = nil
	hs.list = hs.list[:end]
	n.place = notInRotation
}

// nextNodes returns the next n nodes of the rotation.
func (hs *heldNodes) nextNodes(n int) []*heldNode {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	n = min(n, len(hs.list))
	out := make([]*heldNode, 0, n)
	for range n {
		hs.next = (hs.next + 1) % len(hs.list)
		out = append(out, hs.list[hs.next])
	}
	return out
}

// Lifetime is how long something that was granted stands. It ends by End, or with what it lies within: a session, a
// hold or other lifetimes, whichever ends first.
//
// Guarantee: Err, and the error of Context, read the clock: they are right at once in a process that was stopped and
// continued, before any timer has fired. (Contexts that are derived from Context end by timers.) What depends on
// several lifetimes has ended when End of one of them returns.
type Lifetime struct {
	within parentLifetime
	beside []*Lifetime // more that it ends with; see JoinLifetimes
	values context.Context

	mu         sync.Mutex
	cause      error // why it ended, once that is known here
	bare       context.Context
	cancel     context.CancelCauseFunc
	stops      []func() bool
	dependents []*Lifetime
}

// parentLifetime is what a lifetime lies within.
type parentLifetime interface {
	// Err is nil while it stands. It reads the clock.
	Err() error
	// ends is done when it has ended, and carries no values.
	parentContext() context.Context
}

// Child returns a lifetime within l. Its context carries the values of values, and no others.
func (l *Lifetime) Child(values context.Context) *Lifetime {
	return &Lifetime{within: l, values: values}
}

// JoinLifetimes returns a lifetime that ends with the first of several, of which there is at least one. End it when
// it is of no use any more. Its context carries the values of values, and no others.
func JoinLifetimes(values context.Context, parts ...*Lifetime) *Lifetime {
	l := &Lifetime{within: parts[0], beside: parts[1:], values: values}
	for _, p := range parts {
		p.mu.Lock()
		p.dependents = append(p.dependents, l)
		p.mu.Unlock()
	}
	return l
}

// Context is done when the lifetime has ended; its cause says why.
func (l *Lifetime) Context() context.Context { return lifetimeContext{l.parentContext(), l} }

// Err is nil while the lifetime stands, else why it ended. It reads the clock.
func (l *Lifetime) Err() error {
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	if cause != nil {
		return cause
	}
	if err := l.within.Err(); err != nil {
		return l.end(err)
	}
	for _, p := range l.beside {
		if err := p.Err(); err != nil {
			return l.end(err)
		}
	}
	return nil
}

// End ends the lifetime, and before that those that depend on it and on others. Only the first call counts. A nil cause
// stands for that of what it lies within.
func (l *Lifetime) End(cause error) {
	if cause == nil && l.Err() == nil {
		cause = context.Canceled
	}
	_ = l.end(cause)
}

// end returns why the lifetime ended, which was an earlier cause if there was one.
func (l *Lifetime) end(cause error) error {
	l.mu.Lock()
	if l.cause != nil {
		defer l.mu.Unlock()
		return l.cause
	}
	l.cause = cause
	dependents, cancel, stops := l.dependents, l.cancel, l.stops
	l.dependents, l.stops = nil, nil
	l.mu.Unlock()
	for _, d := range dependents {
		_ = d.end(cause)
	}
	for _, stop := range stops {
		stop()
	}
	if cancel != nil {
		cancel(cause)
	}
	for _, p := range l.beside {
		p.removeDependent(l)
	}
	if p, ok := l.within.(*Lifetime); ok && l.beside != nil {
		p.removeDependent(l)
	}
	return cause
}

// removeDependent takes a dependent that has ended from the list.
func (l *Lifetime) removeDependent(dependent *Lifetime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, d := range l.dependents {
		if d == dependent {
			last := len(l.dependents) - 1
			l.dependents[i] = l.dependents[last]
			l.dependents[last] = nil
			l.dependents = l.dependents[:last]
			return
		}
	}
}

// parentContext makes the context when it is asked for first: most short lifetimes need none.
func (l *Lifetime) parentContext() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bare != nil {
		return l.bare
	}
	l.bare, l.cancel = context.WithCancelCause(l.within.parentContext())
	if l.cause != nil {
		l.cancel(l.cause)
		return l.bare
	}
	for _, p := range l.beside {
		l.stops = append(l.stops, context.AfterFunc(p.parentContext(), func() { l.End(nil) }))
	}
	return l.bare
}

// lifetimeContext reads the clock when it is asked for its error, and has the values of whoever asked.
type lifetimeContext struct {
	context.Context // carries no values, but is known to package context
	life            *Lifetime
}

func (c lifetimeContext) Err() error {
	_ = c.life.Err() // ends it if its time is over
	return c.Context.Err()
}

func (c lifetimeContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.life.values.Value(key)
}
