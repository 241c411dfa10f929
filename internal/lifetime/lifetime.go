// Package lifetime has the type on which all grants are built: a session's hold, a lease within
// another lease, a turn of a slice, a term, and a lease of several locks.
package lifetime

import (
	"context"
	"sync"
)

// Lifetime is the time for which a grant stands. It ends when End is called, or when its parent
// ends: a session or another lifetime. A lifetime made by Join has several parents, and ends when
// the first of them ends.
//
// Guarantee: Err, and the error of Context, read the clock. So they are right at once in a process
// that was stopped and continued, before any timer has fired. (Contexts that are derived from
// Context end by timers.) From the first call of End on, Err of the lifetime and of all lifetimes
// that Join has made from it returns the cause. When that call returns, their contexts are done,
// too.
type Lifetime struct {
	within       Parent
	otherParents []*Lifetime     // more parents, of a lifetime made by Join; nil for any other
	values       context.Context // its values are those of the context

	mu         sync.Mutex
	cause      error           // why the lifetime ended; nil until Err, End or the end of a part notices the end
	bare       context.Context // made by BareContext
	cancel     context.CancelCauseFunc
	stops      []func() bool // stop the callbacks at the ends of the contexts of otherParents
	dependents []*Lifetime   // lifetimes that Join has made from this one
}

// Parent is what a lifetime is within: it ends at the latest with its parent.
type Parent interface {
	// Err is nil until the parent ends. It reads the clock.
	Err() error
	// BareContext is done when the parent has ended, and carries no values.
	BareContext() context.Context
}

// Init puts a zero Lifetime within a parent. Its context carries the values of values, and no
// others.
func (l *Lifetime) Init(within Parent, values context.Context) { l.within, l.values = within, values }

// Child returns a lifetime within l. Its context carries the values of values, and no others.
func (l *Lifetime) Child(values context.Context) *Lifetime {
	return &Lifetime{within: l, values: values}
}

// Join returns a lifetime that ends when the first of its parts ends. There must be at least one
// part. Call End when the lifetime is not needed any more, so that the parts forget it. Its context
// carries the values of values, and no others.
func Join(values context.Context, parts ...*Lifetime) *Lifetime {
	l := &Lifetime{within: parts[0], otherParents: parts[1:], values: values}
	l.addToParts(parts)
	return l
}

// addToParts makes l a dependent of its parts. One of them may end l before l was added to the
// next.
func (l *Lifetime) addToParts(parts []*Lifetime) {
	for _, p := range parts {
		p.mu.Lock()
		p.dependents = append(p.dependents, l)
		p.mu.Unlock()
	}
	l.mu.Lock()
	ended := l.cause != nil
	l.mu.Unlock()
	if ended {
		l.removeFromParts()
	}
}

// removeFromParts makes the parts of a lifetime made by Join forget it.
func (l *Lifetime) removeFromParts() {
	for _, p := range l.otherParents {
		p.removeDependent(l)
	}
	if p, ok := l.within.(*Lifetime); ok && l.otherParents != nil { // Join has added l to its first part, too
		p.removeDependent(l)
	}
}

// Context is done when the lifetime has ended. Its cause says why.
func (l *Lifetime) Context() context.Context { return lifetimeContext{l.BareContext(), l} }

// Of returns the innermost lifetime whose context ctx is derived from, or nil if there is none.
func Of(ctx context.Context) *Lifetime {
	l, _ := ctx.Value(lifetimeKey{}).(*Lifetime)
	return l
}

// lifetimeKey is the context key of the lifetime.
type lifetimeKey struct{}

// Err is nil until the lifetime ends, and then says why it ended. It reads the clock.
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
	for _, p := range l.otherParents {
		if err := p.Err(); err != nil {
			return l.end(err)
		}
	}
	return nil
}

// End ends the lifetime, and returns when the lifetimes that Join has made from it have ended too.
// Only the first call counts: a later one may return while the first still cancels contexts. If the
// parent has ended, the cause is that of the parent's end, so that a release does not hide the loss
// of a session. If cause is nil, it is context.Canceled.
func (l *Lifetime) End(cause error) {
	if l.Err() == nil && cause == nil {
		cause = context.Canceled
	}
	_ = l.end(cause)
}

// end ends the lifetime with a cause, unless it has ended already. It returns the cause of its end.
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
	l.removeFromParts()
	return cause
}

// removeDependent removes a dependent that has ended from the list.
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

// BareContext makes the context at its first call, since most short lifetimes need none.
func (l *Lifetime) BareContext() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bare != nil {
		return l.bare
	}
	if l.cause != nil { // the parent may have ended meanwhile, and its context would pass on another cause
		l.bare, l.cancel = context.WithCancelCause(context.Background())
		l.cancel(l.cause)
		return l.bare
	}
	l.bare, l.cancel = context.WithCancelCause(l.within.BareContext())
	for _, p := range l.otherParents {
		l.stops = append(l.stops, context.AfterFunc(p.BareContext(), func() { l.End(nil) }))
	}
	return l.bare
}

// lifetimeContext is the context of a lifetime. Its Err reads the clock, and its values are those
// of Lifetime.values.
type lifetimeContext struct {
	context.Context // the bare context: it carries no values, and package context knows its type
	life            *Lifetime
}

func (c lifetimeContext) Err() error {
	ended := c.life.Err() // ends the lifetime if its parent has ended
	err := c.Context.Err()
	if err == nil && ended != nil { // another goroutine ends the lifetime now, and cancels the context next
		<-c.Done()
		err = c.Context.Err()
	}
	return err
}

func (c lifetimeContext) Value(key any) any {
	if key == (lifetimeKey{}) {
		return c.life
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.life.values.Value(key)
}
