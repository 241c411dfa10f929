package ensemble

import "sync"

// pauseGate holds or passes the bytes of one direction.
type pauseGate struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes may pass; nil means never held
}

func (g *pauseGate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil || isClosed(g.open) {
		g.open = make(chan struct{})
	}
}

func (g *pauseGate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil && !isClosed(g.open) {
		close(g.open)
	}
}

// wait returns true once bytes may pass and false when done ends first.
func (g *pauseGate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open == nil {
		return true
	}
	select {
	case <-open:
		return true
	case <-done:
		return false
	}
}
