package ensemble

import "sync"

// pauseGate holds or passes the bytes of one direction.
type pauseGate struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes may pass; nil means never held
	held int           // callers of wait
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

// wait waits until bytes may pass, and returns true. It returns false if done is closed first.
func (g *pauseGate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	open := g.open
	if open == nil {
		g.mu.Unlock()
		return true
	}
	g.held++
	g.mu.Unlock()
	defer g.leave()
	select {
	case <-open:
		return true
	case <-done:
		return false
	}
}

func (g *pauseGate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held--
}

func (g *pauseGate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0 && !isClosed(g.open)
}
