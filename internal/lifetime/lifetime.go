// Package lifetime holds the type from which everything that is granted derives: a session's hold, a lease within another, a turn of a slice, a term, several
// leases together.
package lifetime

import (
	"context"
	"sync"
)

// Lifetime is how long something that was granted stands. It ends by End, or with what it lies within: a session, a
// hold or other lifetimes, whichever ends first.
//
// Guarantee: Err, and the error of Context, read the clock: they are right at once in a process that was stopped and
// continued, before any timer has fired. (Contexts that are derived from Context end by timers.) What depends on
// several lifetimes has ended when End of one of them returns.
type Lifetime struct {
	within Parent
	beside []*Lifetime // more that it ends with; see Join
	values context.Context

	mu         sync.Mutex
	cause      error // why it ended, once that is known here
	bare       context.Context
	cancel     context.CancelCauseFunc
	stops      []func() bool
	dependents []*Lifetime
}

// Parent is what a lifetime lies within.
type Parent interface {
	// Err is nil while it stands. It reads the clock.
	Err() error
	// BareContext is done when it has ended, and carries no values.
	BareContext() context.Context
}

// Init makes a zero Lifetime one within a parent. Its context carries the values of values, and no others.
func (l *Lifetime) Init(within Parent, values context.Context) { l.within, l.values = within, values }

// Child returns a lifetime within l. Its context carries the values of values, and no others.
func (l *Lifetime) Child(values context.Context) *Lifetime {
	return &Lifetime{within: l, values: values}
}

// Join returns a lifetime that ends with the first of several, of which there is at least one. End it when
// it is of no use any more. Its context carries the values of values, and no others.
func Join(values context.Context, parts ...*Lifetime) *Lifetime {
	l := &Lifetime{within: parts[0], beside: parts[1:], values: values}
	for _, p := range parts {
		p.mu.Lock()
		p.dependents = append(p.dependents, l)
		p.mu.Unlock()
	}
	return l
}

// Context is done when the lifetime has ended; its cause says why.
func (l *Lifetime) Context() context.Context { return lifetimeContext{l.BareContext(), l} }

// Of returns the lifetime that a grant's context belongs to: the innermost one, or nil.
func Of(ctx context.Context) *Lifetime {
	l, _ := ctx.Value(lifetimeKey{}).(*Lifetime)
	return l
}

// lifetimeKey asks a context for its lifetime.
type lifetimeKey struct{}

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

// BareContext makes the context when it is needed first: most short lifetimes have none.
func (l *Lifetime) BareContext() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bare != nil {
		return l.bare
	}
	l.bare, l.cancel = context.WithCancelCause(l.within.BareContext())
	if l.cause != nil {
		l.cancel(l.cause)
		return l.bare
	}
	for _, p := range l.beside {
		l.stops = append(l.stops, context.AfterFunc(p.BareContext(), func() { l.End(nil) }))
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
	if key == (lifetimeKey{}) {
		return c.life
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.life.values.Value(key)
}
