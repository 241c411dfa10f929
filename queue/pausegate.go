package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// pauseGate is closed while the queue is paused: no items are handed out. It is closed until the
// servers have said that the queue is not paused.
type pauseGate struct {
	mu       sync.Mutex
	opened   chan struct{} // closed while the gate is open
	paused   bool
	onResume func() // called after the gate has opened, without a lock
}

func newPauseGate() *pauseGate { return &pauseGate{opened: make(chan struct{}), paused: true} }

// followNode opens and closes the gate with the node, until ctx ends.
func (g *pauseGate) followNode(ctx context.Context, s *framework.Session, node string) error {
	for {
		_, w, err := s.WatchExists(ctx, node)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			g.setPaused(false)
		case err != nil:
			return err
		default:
			g.setPaused(true)
		}
		if err := waitForWatch(ctx, w); err != nil {
			return err
		}
	}
}

func (g *pauseGate) setPaused(paused bool) {
	g.mu.Lock()
	changed := g.paused != paused
	g.paused = paused
	switch {
	case changed && paused:
		g.opened = make(chan struct{})
	case changed:
		close(g.opened)
	}
	g.mu.Unlock()
	if changed && !paused {
		g.onResume()
	}
}

func (g *pauseGate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.paused
}

// waitUntilOpen waits until the queue is not paused.
func (g *pauseGate) waitUntilOpen(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
