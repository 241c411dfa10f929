package locks

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// WithLocalSlice lets the goroutines that share a Mutex pass one node's lease among them for up to d, before
// the lock goes to the next in the line: an exchange in memory instead of requests. Within a slice the
// leases share the token, and Turn rises: what the lock protects compares both, as a pair. The goroutines
// take turns in the order in which they asked. Among processes the line stays fair, with up to d for each.
func WithLocalSlice(d time.Duration) Option {
	return func(l *Line) error {
		if d <= 0 {
			return fmt.Errorf("WithLocalSlice: %v, it must be more than 0", d)
		}
		l.slice = newSlice(l, d)
		return nil
	}
}

// slice is one node's lease, with which goroutines take turns.
type slice struct {
	line    *Line
	length  time.Duration
	back    func(early bool) returned
	waiting atomic.Int64
	present atomic.Pointer[Lease]
	turn    chan struct{} // has room for the one whose turn it is, which guards what follows

	node  *Lease // nil when there is none
	until time.Time
	turns int64
}

func newSlice(l *Line, length time.Duration) *slice {
	s := &slice{line: l, length: length, turn: make(chan struct{}, 1)}
	s.back = s.giveBack
	return s
}

// lock waits for the goroutine's turn, and for the node's if there is no lease to take turns with.
func (s *slice) lock(ctx context.Context) (*Lease, error) {
	s.waiting.Add(1)
	select {
	case s.turn <- struct{}{}:
		s.waiting.Add(-1)
		return s.enter(ctx, s.line.Acquire)
	case <-ctx.Done():
		s.waiting.Add(-1)
		s.abandon()
		return nil, framework.Wrap("acquire", s.line.name, framework.Ended(ctx))
	}
}

// tryLock takes the turn if nobody has it.
func (s *slice) tryLock(ctx context.Context) (*Lease, error) {
	select {
	case s.turn <- struct{}{}:
		return s.enter(ctx, s.line.TryAcquire)
	default:
		return nil, framework.Wrap("try", s.line.name, ErrNotAcquired)
	}
}

// enter begins a turn.
func (s *slice) enter(ctx context.Context, acquire func(context.Context) (*Lease, error)) (*Lease, error) {
	if s.node != nil && s.node.Err() != nil {
		s.node = nil
	}
	if s.node == nil {
		node, err := acquire(ctx)
		if err != nil {
			<-s.turn
			return nil, err
		}
		s.open(node)
	}
	s.turns++
	t := &Lease{path: s.line.name, kind: s.line.kind, node: s.node.node, token: s.node.token, turn: s.turns, session: s.node.session,
		key: s.node.key, within: s.node, contender: s.node.contender, back: s.back}
	t.life = s.node.life.Child(leaseContext{ctx, t})
	s.present.Store(t)
	if t.within.Context().Err() != nil { // open's function may have looked before
		t.end(nil)
	}
	return t, nil
}

// open begins a slice. When its node's lease ends, so does the turn: others need not wait for its release.
func (s *slice) open(node *Lease) {
	s.node, s.until, s.turns = node, time.Now().Add(s.length), 0
	context.AfterFunc(node.Context(), func() {
		if t := s.present.Load(); t != nil && t.within == node {
			t.end(nil)
		}
	})
}

// giveBack ends a turn, and the slice if it has lasted long enough or nobody here waits.
func (s *slice) giveBack(early bool) returned {
	if s.waiting.Load() > 0 && time.Now().Before(s.until) {
		<-s.turn
		s.abandon()
		return returned{gone: over}
	}
	node := s.end(early)
	<-s.turn
	return node.given
}

// end ends the slice.
func (s *slice) end(early bool) *Lease {
	node := s.node
	s.node = nil
	node.finish(ErrReleased, early)
	return node
}

// abandon ends a slice that was left to a goroutine which has given up meanwhile. Both who leaves it and who gives
// up call it, for neither knows who is later.
func (s *slice) abandon() {
	for over := false; !over && s.waiting.Load() == 0; { // else who waits takes the turn, or gives up
		select {
		case s.turn <- struct{}{}:
		default:
			return // somebody has the turn, and looks when it ends
		}
		if s.node != nil && s.waiting.Load() == 0 {
			s.end(false)
		}
		over = s.node == nil
		<-s.turn
	}
}

// over is the way of what needs no way.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
