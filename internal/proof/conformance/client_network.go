package conformance

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// network is the connection of one client to its servers, which a test can cut.
type network struct {
	dialer    zk.Dialer
	rewatched chan struct{} // gets a value whenever a setWatches request has left

	mu   sync.Mutex
	down bool
	conn net.Conn
}

func newNetwork(dialer zk.Dialer) *network {
	return &network{dialer: dialer, rewatched: make(chan struct{}, 100)}
}

var errDown = errors.New("the network is down")

func (n *network) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errDown
	}
	conn, err := n.dialer(network, address, timeout)
	if err != nil {
		return nil, err
	}
	n.conn = watched{Conn: conn, rewatched: n.rewatched}
	return n.conn, nil
}

// watched is a connection that reports when setWatches was written. Every request is one
// Write.
type watched struct {
	net.Conn
	rewatched chan<- struct{}
}

func (w watched) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	const opAt = 8 // behind the frame's length and the xid
	if err == nil && len(b) >= opAt+4 && binary.BigEndian.Uint32(b[opAt:]) == uint32(wire.OpSetWatches) {
		w.rewatched <- struct{}{}
	}
	return n, err
}

// cut ends the connection, and refuses new ones until heal.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	if n.conn != nil {
		n.conn.Close()
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

// hosts returns the addresses one after the other. It looks up no names.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
}

func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

func (h *hosts) Len() int   { return len(h.servers) }
func (h *hosts) Connected() {}

// Next returns the next address. retryStart is true at the beginning of a round, when go-zookeeper
// pauses.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	retryStart = h.next > 0 && h.next%len(h.servers) == 0
	h.next++
	return server, retryStart
}

type silent struct{}

func (silent) Printf(string, ...any) {}
