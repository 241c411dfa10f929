package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// gate is closed while the queue is paused: nothing is handed out.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while open
	shut bool
	wake func() // called when it has opened, without a lock
}

func (g *gate) init(wake func()) { g.open, g.shut, g.wake = make(chan struct{}), true, wake }

func (g *gate) set(shut bool) {
	g.mu.Lock()
	changed := g.shut != shut
	g.shut = shut
	switch {
	case changed && shut:
		g.open = make(chan struct{})
	case changed:
		close(g.open)
	}
	g.mu.Unlock()
	if changed && !shut {
		g.wake()
	}
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.shut
}

// pass waits until the queue is not paused.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	default:
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch opens and closes the gate until ctx ends.
func (g *gate) watch(ctx context.Context, s *framework.Session, node string) error {
	for {
		_, w, err := s.WatchExists(ctx, node)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			g.set(false)
		case err != nil:
			return err
		default:
			g.set(true)
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			w.Stop()
			return context.Cause(ctx)
		}
	}
}
