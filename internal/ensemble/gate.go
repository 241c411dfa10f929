package ensemble

import "sync"

// gate holds or passes the bytes of one direction.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes may pass; nil means never held
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil || isClosed(g.open) {
		g.open = make(chan struct{})
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil && !isClosed(g.open) {
		close(g.open)
	}
}

// wait returns true once bytes may pass and false when done ends first.
func (g *gate) wait(done <-chan struct{}) bool {
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
