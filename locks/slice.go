package locks

import (
	"container/list"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// WithLocalHandoff lets the goroutines that share a Mutex pass one node's lease among them for up to d, before
// the lock goes to the next in the line: an exchange in memory instead of requests. Within a slice the
// leases share the token, and Turn rises: what the lock protects compares both, as a pair. The goroutines
// take turns in the order in which they asked, and wait in the line together: who gives up loses no other's place.
// Among processes the line stays fair, with up to d for each.
//
// On the servers nothing tells the turns of a slice apart. So a turn whose Guard or Guards was called is the last of its
// slice: its node is deleted with it, and the next goroutine waits in the line.
func WithLocalHandoff(d time.Duration) Option {
	return func(l *Line) error {
		if d <= 0 {
			return fmt.Errorf("WithLocalHandoff: %v, it must be more than 0", d)
		}
		l.slice = &localSlice{line: l, length: d}
		l.slice.back = l.slice.endTurn
		return nil
	}
}

// localSlice is one node's lease, with which goroutines take turns.
//
// Between two calls it is in one of these states: nobody needs it; some wait and the node is asked for; or it is
// somebody's turn, with a node or, once that was lost, without.
type localSlice struct {
	line   *Line
	length time.Duration
	back   func(early bool) releaseProgress

	mu      sync.Mutex // taken behind a turn's own and before the node's
	waiting list.List  // of *sliceWaiter, in the order in which they asked
	asking  bool       // for a node
	giveUp  func()     // ends the ask, which nobody may be waiting for any more; nil of a try
	node    *Lease     // nil while there is none
	until   time.Time
	turns   int64
	present *Lease // whose turn it is, or nil
}

// sliceWaiter is one goroutine that waits for its turn.
type sliceWaiter struct {
	ctx     context.Context
	outcome chan sliceOutcome // has room for the one that comes
}

// sliceOutcome is what a goroutine has waited for: a lease, an error, or the end of the goroutine that asked for all.
type sliceOutcome struct {
	lease *Lease
	err   error
	abort func()
}

// waitForTurn waits for the goroutine's turn, and for the node's if there is no lease to take turns with.
func (s *localSlice) waitForTurn(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, framework.Wrap("acquire", s.line.name, framework.Ended(ctx))
	}
	w := &sliceWaiter{ctx, make(chan sliceOutcome, 1)}
	s.mu.Lock()
	place := s.waiting.PushBack(w)
	s.acquireNodeIfWanted()
	s.mu.Unlock()
	select {
	case o := <-w.outcome:
		if o.abort != nil {
			o.abort()
		}
		return o.lease, o.err
	case <-ctx.Done():
		s.abandonWait(w, place)
		return nil, framework.Wrap("acquire", s.line.name, framework.Ended(ctx))
	}
}

// abandonWait is the end of a wait that was given up.
func (s *localSlice) abandonWait(w *sliceWaiter, place *list.Element) {
	s.mu.Lock()
	s.waiting.Remove(place) // does nothing if the waiter was told meanwhile
	if s.waiting.Len() == 0 && s.giveUp != nil {
		s.giveUp()
	}
	s.mu.Unlock()
	select {
	case o := <-w.outcome:
		if o.lease != nil {
			o.lease.endOnce(ErrReleased)
		}
	default:
	}
}

// tryTurn takes the turn if nobody has it or waits for it.
func (s *localSlice) tryTurn(ctx context.Context) (*Lease, error) {
	s.mu.Lock()
	if s.present != nil || s.asking || s.waiting.Len() > 0 {
		s.mu.Unlock()
		return nil, framework.Wrap("try", s.line.name, ErrNotAcquired)
	}
	s.asking = true
	s.mu.Unlock()
	node, err := s.line.TryAcquire(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if err != nil {
		s.acquireNodeIfWanted() // for those who came meanwhile
		return nil, err
	}
	s.startSlice(node)
	return s.newTurnLease(ctx), nil
}

// acquireNodeIfWanted has a node asked for if somebody waits for one, on behalf of all who wait: while one of them does, the place in the
// line is kept.
func (s *localSlice) acquireNodeIfWanted() {
	if s.present != nil || s.asking || s.waiting.Len() == 0 {
		return
	}
	first := s.waiting.Front().Value.(*sliceWaiter)
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.ctx))
	s.asking, s.giveUp = true, cancel
	go func() {
		defer cancel()
		o := sliceOutcome{abort: runtime.Goexit}
		defer func() { // WithOnWait's function may panic, or end its goroutine
			if p := recover(); p != nil {
				o = sliceOutcome{abort: func() { panic(p) }}
			}
			s.nodeAcquired(ctx, o)
		}()
		node, err := s.line.Acquire(ctx)
		o = sliceOutcome{lease: node, err: err}
	}()
}

// nodeAcquired is the end of an ask: the first who waits has the first turn, all have the error.
func (s *localSlice) nodeAcquired(asked context.Context, o sliceOutcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking, s.giveUp = false, nil
	switch {
	case o.abort != nil:
		s.wakeFirst(o)
		s.acquireNodeIfWanted()
	case o.err != nil && asked.Err() != nil: // all had given up; others may have come since
		s.acquireNodeIfWanted()
	case o.err != nil:
		for s.waiting.Len() > 0 {
			s.wakeFirst(o)
		}
	case s.waiting.Len() == 0:
		o.lease.endOnce(ErrReleased)
	default:
		s.startSlice(o.lease)
		s.passTurn()
	}
}

// wakeFirst tells the first who waits, if there is one.
func (s *localSlice) wakeFirst(o sliceOutcome) {
	if first := s.waiting.Front(); first != nil {
		s.waiting.Remove(first).(*sliceWaiter).outcome <- o
	}
}

// startSlice begins a slice. When its node's lease ends, so does the turn: others need not wait for its release.
func (s *localSlice) startSlice(node *Lease) {
	s.node, s.until, s.turns = node, time.Now().Add(s.length), 0
	context.AfterFunc(node.Context(), func() {
		s.mu.Lock()
		present := s.present
		if present == nil || present.within != node {
			s.mu.Unlock()
			return
		}
		s.node = nil
		s.mu.Unlock()
		present.endOnce(nil)
	})
}

// passTurn gives the turn to the first who waits.
func (s *localSlice) passTurn() {
	s.wakeFirst(sliceOutcome{lease: s.newTurnLease(s.waiting.Front().Value.(*sliceWaiter).ctx)})
}

// newTurnLease makes the lease of a turn.
func (s *localSlice) newTurnLease(ctx context.Context) *Lease {
	s.turns++
	t := &Lease{path: s.line.name, kind: s.line.kind, node: s.node.node, token: s.node.token, turn: s.turns, session: s.node.session,
		key: s.node.key, within: s.node, contender: s.node.contender, back: s.back}
	t.life = s.node.life.Child(leaseContext{ctx, t})
	s.present = t
	return t
}

// endTurn ends the present turn, and the slice if it has lasted long enough, nobody here waits, or the servers are to refuse
// what the turn guards from now on.
func (s *localSlice) endTurn(early bool) releaseProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	guarded := s.present.guarded.Load()
	s.present = nil
	node := s.node
	if node != nil && node.Err() == nil && !guarded && s.waiting.Len() > 0 && time.Now().Before(s.until) {
		s.passTurn()
		return releaseProgress{gone: closedChannel}
	}
	given := releaseProgress{gone: closedChannel}
	if s.node = nil; node != nil {
		node.finishRelease(ErrReleased, early)
		given = node.given
	}
	s.acquireNodeIfWanted()
	return given
}

// closedChannel is the way of what needs no way.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
