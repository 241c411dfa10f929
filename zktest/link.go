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

// Link is one client's network to the server. Its levers affect the connections of this link only.
// All methods may be called at any time, from several goroutines.
type Link struct {
	srv  *Server
	name string

	mu           sync.Mutex
	cut          bool
	halfOpen     bool
	holdToServer bool
	holdToClient bool
	delay        time.Duration
	dialsChanged chan struct{} // closed and replaced when a dial that waits should try again
	pairs        map[*connectionPair]struct{}
	dials        int
	pairsMade    int // the number of connections so far
}

// Link makes a link without faults. The name is part of the connections'
// addresses; two links may have the same name.
func (s *Server) Link(name string) *Link {
	return &Link{srv: s, name: name, dialsChanged: make(chan struct{}), pairs: map[*connectionPair]struct{}{}}
}

// Name returns the link's name.
func (k *Link) Name() string { return k.name }

// Dial connects to the server and ignores the address; it is a
// go-zookeeper zk.Dialer. It returns syscall.ECONNREFUSED while the link is cut or the
// server closed. While BlackHole holds bytes in either direction, it waits, and
// returns os.ErrDeadlineExceeded after the timeout.
func (k *Link) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return k.DialContext(ctx, network, address)
}

// DialContext is Dial for framework.WithDialer. It waits until ctx ends at most.
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
			return k.connectToServer(p)
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

// tryDial returns a connection, or a channel that is closed when the next try makes sense.
func (k *Link) tryDial() (p *connectionPair, wait <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cut:
		return nil, nil, errDialRefused
	case k.halfOpen:
		return k.newLinkPair(true), nil, nil
	case k.holdToServer || k.holdToClient:
		return nil, k.dialsChanged, nil
	}
	return k.newLinkPair(false), nil, nil
}

// connectToServer gives the server its end of the connection. The link must not be locked: the
// server calls it when it closes a connection.
func (k *Link) connectToServer(p *connectionPair) (net.Conn, error) {
	if !p.halfOpen && k.srv.core.ServeConn(p.server) != nil {
		_ = p.client.Close()
		return nil, errDialRefused
	}
	return p.client, nil
}

var errDialRefused = &net.OpError{Op: "dial", Net: "zktest", Err: errRefused}

// newLinkPair makes a connection with the link's present faults.
func (k *Link) newLinkPair(halfOpen bool) *connectionPair {
	k.pairsMade++
	p := newConnectionPair(k, k.pairsMade, halfOpen)
	p.setFaults(k.holdToServer, k.holdToClient, k.delay)
	k.pairs[p] = struct{}{}
	return p
}

// Cut resets the link's connections and refuses dials until Heal, as a host
// without a listening server does.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = true
	k.wakeDials()
	k.resetPairs(func(*connectionPair) bool { return true })
}

// Reset resets the link's connections. Dials succeed as before.
func (k *Link) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.resetPairs(func(*connectionPair) bool { return true })
}

// BlackHole holds the bytes to the server (up), to the client (down), or both. Both ends wait
// without an error. BlackHole(false, false) ends it: the held bytes arrive, as TCP would send
// them again. While a direction is held, dials hang.
func (k *Link) BlackHole(up, down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdToServer, k.holdToClient = up, down
	k.applyToPairs()
}

// HalfOpen lets dials succeed without a server at the other end, like a
// proxy that has lost its server: writes succeed, and no answer comes.
// Existing connections stay as they are. HalfOpen(false) resets half-open
// connections.
func (k *Link) HalfOpen(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.halfOpen = on
	if !on {
		k.resetHalfOpen()
	}
	k.wakeDials()
}

// Delay delays the bytes in both directions from now on. Their order stays. Zero ends the
// delay.
func (k *Link) Delay(oneWay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay = max(oneWay, 0)
	k.applyToPairs()
}

// Heal ends Cut, BlackHole and HalfOpen. A Delay stays.
func (k *Link) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut, k.halfOpen, k.holdToServer, k.holdToClient = false, false, false, false
	k.resetHalfOpen()
	k.applyToPairs()
}

// Dials returns the number of calls of Dial and DialContext.
func (k *Link) Dials() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dials
}

// Connections returns the number of connections that are open at one end or both.
func (k *Link) Connections() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pairs)
}

func (k *Link) applyToPairs() {
	for _, p := range k.pairsByAge() {
		p.setFaults(k.holdToServer, k.holdToClient, k.delay)
	}
	k.wakeDials()
}

func (k *Link) wakeDials() {
	close(k.dialsChanged)
	k.dialsChanged = make(chan struct{})
}

func (k *Link) resetHalfOpen() { k.resetPairs(func(p *connectionPair) bool { return p.halfOpen }) }

func (k *Link) resetPairs(which func(*connectionPair) bool) {
	for _, p := range k.pairsByAge() {
		if which(p) {
			delete(k.pairs, p)
			p.failBothEnds(errReset)
		}
	}
}

// pairsByAge returns the connections in the order of their dials, so that faults affect them in the
// same order in every run.
func (k *Link) pairsByAge() []*connectionPair {
	return slices.SortedFunc(maps.Keys(k.pairs), func(a, b *connectionPair) int { return cmp.Compare(a.id, b.id) })
}

// removeIfClosed records that one end of a connection has closed, and removes the connection
// when both have. Until then, faults still apply to the other end.
func (k *Link) removeIfClosed(e *connectionEnd) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.closed = true
	if e.pair.client.closed && e.pair.server.closed {
		delete(k.pairs, e.pair)
	}
}
