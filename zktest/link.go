package zktest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Link is one client's way to the server. Its levers break that way only; its
// connections share its fate. All methods may be called at any time.
type Link struct {
	srv  *Server
	name string

	mu       sync.Mutex
	cut      bool
	halfOpen bool
	holdUp   bool
	holdDown bool
	delay    time.Duration
	changed  chan struct{} // closed when a dial should look again
	conns    map[*pair]struct{}
	dials    int
	made     int // connections
}

// Link makes a link, which is whole. The name shows in the connections'
// addresses only; two links may share one.
func (s *Server) Link(name string) *Link {
	return &Link{srv: s, name: name, changed: make(chan struct{}), conns: map[*pair]struct{}{}}
}

// Name is the name the link was made with.
func (k *Link) Name() string { return k.name }

// Dial connects to the server, whatever the address says; it is a
// go-zookeeper zk.Dialer. It returns ErrRefused while the link is cut or the
// server closed. While bytes are held in either direction it waits, and returns
// a timeout error (os.ErrDeadlineExceeded) if that lasts.
func (k *Link) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return k.DialContext(ctx, network, address)
}

// DialContext is Dial for framework.WithDialer: it waits no longer than ctx.
func (k *Link) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	k.mu.Lock()
	k.dials++
	k.mu.Unlock()
	for {
		p, wait, err := k.tryDial()
		switch {
		case err != nil:
			return nil, err
		case p != nil:
			return k.handOver(p)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			err := context.Cause(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				err = os.ErrDeadlineExceeded
			}
			return nil, &net.OpError{Op: "dial", Net: "zktest", Err: err}
		}
	}
}

// tryDial dials, or returns what to wait for before the next try.
func (k *Link) tryDial() (p *pair, wait <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cut:
		return nil, nil, errDialRefused
	case k.halfOpen:
		return k.newPair(true), nil, nil
	case k.holdUp || k.holdDown:
		return nil, k.changed, nil
	}
	return k.newPair(false), nil, nil
}

// handOver gives the server its end. The link is not locked, since the server
// calls it back when it closes a connection.
func (k *Link) handOver(p *pair) (net.Conn, error) {
	if !p.nobody && k.srv.core.ServeConn(p.server) != nil {
		_ = p.client.Close()
		return nil, errDialRefused
	}
	return p.client, nil
}

var errDialRefused = &net.OpError{Op: "dial", Net: "zktest", Err: ErrRefused}

// newPair makes a connection in the link's present state.
func (k *Link) newPair(nobody bool) *pair {
	k.made++
	p := newPair(k, k.made, nobody)
	p.set(k.holdUp, k.holdDown, k.delay)
	k.conns[p] = struct{}{}
	return p
}

// Cut resets the link's connections and refuses dials until Heal, as when the
// server's host answers that nobody listens.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = true
	k.lookAgain()
	k.reset(func(*pair) bool { return true })
}

// Reset resets the link's connections. Dials succeed as before.
func (k *Link) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reset(func(*pair) bool { return true })
}

// BlackHole holds the bytes that go up to the server, down to the client, both
// or, with two falses, none. Nobody is told. Held bytes are not lost: they
// arrive when the direction opens, as TCP would send them again. While a
// direction is held, dials hang.
func (k *Link) BlackHole(up, down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdUp, k.holdDown = up, down
	k.apply()
}

// HalfOpen lets dials succeed, when it is on, without anybody at the other end, as
// with a proxy whose server is gone: what is written is swallowed, and nothing
// is answered. Present connections stay as they are. When off, such
// connections are reset.
func (k *Link) HalfOpen(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.halfOpen = on
	if !on {
		k.resetHalfOpen()
	}
	k.lookAgain()
}

// Delay makes bytes take so long from now on, in either direction. Order is
// kept. Zero ends it.
func (k *Link) Delay(oneWay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay = max(oneWay, 0)
	k.apply()
}

// Heal ends Cut, BlackHole and HalfOpen. A Delay stays.
func (k *Link) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut, k.halfOpen, k.holdUp, k.holdDown = false, false, false, false
	k.resetHalfOpen()
	k.apply()
}

// Dials is the number of times Dial was called.
func (k *Link) Dials() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dials
}

// Connections is the number of connections that one end at least has open.
func (k *Link) Connections() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.conns)
}

func (k *Link) apply() {
	for _, p := range k.byAge() {
		p.set(k.holdUp, k.holdDown, k.delay)
	}
	k.lookAgain()
}

func (k *Link) lookAgain() {
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *Link) resetHalfOpen() { k.reset(func(p *pair) bool { return p.nobody }) }

func (k *Link) reset(which func(*pair) bool) {
	for _, p := range k.byAge() {
		if which(p) {
			delete(k.conns, p)
			p.fail(ErrReset)
		}
	}
}

// byAge makes what happens to several connections happen in one order.
func (k *Link) byAge() []*pair {
	return slices.SortedFunc(maps.Keys(k.conns), func(a, b *pair) int { return cmp.Compare(a.id, b.id) })
}

// closed notes that one end of a connection has closed. A connection is
// forgotten when both have: until then the other is to learn of it.
func (k *Link) closed(e *end) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.closed = true
	if e.pair.client.closed && e.pair.server.closed {
		delete(k.conns, e.pair)
	}
}
