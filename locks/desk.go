package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// desk lets one goroutine of a session at a time claim a path and hold it. So a node that the session owns
// shows that a create whose reply was lost was applied.
type desk struct {
	s    *framework.Session
	line *Line
	turn chan struct{} // has room for one; the session's goroutines share it
}

// deskKey finds the desk of a path in a session.
type deskKey struct{ path string }

// deskOf returns the session's desk, for one visit.
func deskOf(s *framework.Session, l *Line) *desk {
	turn := s.Share(deskKey{l.path}, func() any { return make(chan struct{}, 1) }).(chan struct{})
	return &desk{s, l, turn}
}

// tryEnter enters the desk if nobody is there; else the visit is over.
func (d *desk) tryEnter() bool {
	select {
	case d.turn <- struct{}{}:
		return true
	default:
		d.s.Unshare(deskKey{d.line.path})
		return false
	}
}

// enter waits until nobody else is there. With an error the visit is over.
func (d *desk) enter(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		d.s.Unshare(deskKey{d.line.path})
		return framework.Ended(ctx)
	case <-d.s.Done():
		return context.Cause(d.s.Context())
	}
}

// leave ends the visit and lets the next goroutine enter.
func (d *desk) leave() {
	<-d.turn
	d.s.Unshare(deskKey{d.line.path})
}

// vacate deletes the fence and the node, if it is still this one, and leaves when they are gone.
func (d *desk) vacate(early bool, node claimed) returned {
	r, discarded := d.line.giving(early, nil, func(queued func()) *framework.Discarded {
		return d.s.DiscardOwn(queued, node.Created, node.fence)
	})
	gone := make(chan struct{})
	r.gone = gone
	go func() {
		defer close(gone)
		<-discarded.Done()
		d.leave()
	}()
	return r
}
