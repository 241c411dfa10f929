package ensemble

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is a direction through a proxy, or both.
type Direction uint8

// Up leads from the side that connected to the target, Down back to it.
const (
	Up Direction = 1 << iota
	Down
	Both = Up | Down
)

// Proxy is a TCP proxy on a loopback port. Each direction can be held, and connections
// can be cut. All its methods may be called at any time.
type Proxy struct {
	ln       net.Listener
	targets  []string      // each connection leads to the first that listens
	patience time.Duration // while none listens
	up, down pauseGate
	delay    atomic.Int64 // of each piece; see Slow
	closed   chan struct{}
	tasks    sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	filter func(io.Reader) io.Reader // of what travels up
	pairs  map[*proxiedConn]struct{}
}

// NewProxy listens on a free port of 127.0.0.1 and connects every client it gets to
// target (host:port). The caller closes it.
func NewProxy(target string) (*Proxy, error) {
	return newProxy(0, target)
}

func newProxy(patience time.Duration, targets ...string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("ensemble: proxy to %s: %w", targets, err)
	}
	p := &Proxy{
		ln:       ln,
		targets:  targets,
		patience: patience,
		closed:   make(chan struct{}),
		filter:   func(sent io.Reader) io.Reader { return sent },
		pairs:    map[*proxiedConn]struct{}{},
	}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns the address to connect to, as host:port.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Hold holds everything in direction d: bytes, the end of a connection and new
// connections, as a network that loses every packet does. A client that connects
// meanwhile has a half-open connection: the proxy accepts it and does not answer.
func (p *Proxy) Hold(d Direction) {
	if d&Up != 0 {
		p.up.hold()
	}
	if d&Down != 0 {
		p.down.hold()
	}
}

// Release ends the hold of direction d. The held bytes arrive now, in order.
func (p *Proxy) Release(d Direction) {
	if d&Up != 0 {
		p.up.release()
	}
	if d&Down != 0 {
		p.down.release()
	}
}

// HoldsUp reports whether the hold of the direction Up has stopped something.
func (p *Proxy) HoldsUp() bool { return p.up.holds() }

// Connections returns the number of connections. A connection counts until all that its
// client has sent was written to the target, or the target has refused it.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// Reset ends every connection with a TCP reset on both sides. The proxy accepts new
// connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		pair.reset()
	}
}

// Cut ends every connection as Reset does, and each new connection until Heal is called.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.Reset()
}

// Heal ends a Cut and releases both directions.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.cut = false
	p.mu.Unlock()
	p.Release(Both)
}

// Close stops listening, ends every connection, and waits until all goroutines of the
// proxy have ended. It may be called twice.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !isClosed(p.closed) {
		close(p.closed)
		p.ln.Close()
	}
	p.mu.Unlock()
	p.Reset()
	p.tasks.Wait()
}

// filterUp sets the filter of the upward bytes of new connections.
func (p *Proxy) filterUp(filter func(io.Reader) io.Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = filter
}

func (p *Proxy) accept() {
	for {
		conn, err := p.ln.Accept()
		if err != nil {
			return
		}
		pair := &proxiedConn{proxy: p, client: conn, done: make(chan struct{})}
		if !p.add(pair) {
			pair.reset()
			continue
		}
		p.tasks.Go(pair.run)
	}
}

func (p *Proxy) add(pair *proxiedConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || isClosed(p.closed) {
		return false
	}
	pair.sent = p.filter(pair.client)
	p.pairs[pair] = struct{}{}
	return true
}

// connected returns the targets of the present connections.
func (p *Proxy) connected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var targets []string
	for pair := range p.pairs {
		if target := pair.connectedTo(); target != "" {
			targets = append(targets, target)
		}
	}
	return targets
}

func (p *Proxy) remove(pair *proxiedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pairs, pair)
}
