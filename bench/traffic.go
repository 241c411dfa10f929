package main

import (
	"context"
	"encoding/binary"
	"maps"
	"net"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
)

// traffic is a number of requests.
type traffic struct {
	Received int            // by the servers, from all clients; -1 if a server does not report it
	Sent     map[string]int // by this process, by operation; nil without -trace
}

// traffic returns the number of requests so far.
func (s settings) traffic() traffic {
	t := traffic{Received: -1, Sent: s.sent.snapshot()}
	if n, ok := requests(s); ok {
		t.Received = n
	}
	return t
}

func (t traffic) since(before traffic) traffic {
	for op, n := range before.Sent {
		t.Sent[op] -= n
	}
	if t.Received >= 0 {
		t.Received -= before.Received
	}
	return t
}

func (t traffic) plus(more traffic) traffic {
	sum := traffic{t.Received + more.Received, map[string]int{}}
	for _, part := range []traffic{t, more} {
		for op, n := range part.Sent {
			sum.Sent[op] += n
		}
	}
	return sum
}

// requestCounter counts requests by operation when they are sent, and the bytes of their answers. A
// nil counter does not count.
type requestCounter struct {
	mu       sync.Mutex
	counts   map[string]int
	answered atomic.Int64 // bytes of answers, and of events of watches
}

func newRequestCounter() *requestCounter { return &requestCounter{counts: map[string]int{}} }

func (c *requestCounter) snapshot() map[string]int {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// dialer counts the requests of a client's connections.
func (c *requestCounter) dialer() framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, sent: c}, nil
	})
}

// countedConn is a connection that counts the frames that are written to it. One write may have
// several frames.
type countedConn struct {
	net.Conn
	sent      *requestCounter
	rest      []byte // of the frame under way
	connected bool   // the first frame is the session's and no request
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.sent.answered.Add(int64(n))
	return n, err
}

// Write counts before it writes: the answer may arrive before the write returns.
func (c *countedConn) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for len(c.rest) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(c.rest))
		if len(c.rest) < end {
			break
		}
		if c.connected && end >= 12 {
			c.sent.count(c.rest[8:end])
		}
		c.connected = true
		c.rest = c.rest[end:]
	}
	return c.Conn.Write(b)
}

// operations are the names of ZooKeeper's operations, by their code in a request's header.
var operations = map[uint32]string{
	1: "create", 2: "delete", 3: "exists", 4: "get", 5: "set", 8: "list", 9: "sync", 11: "ping", 12: "list",
	14: "multi", 22: "multi read", 19: "create container",
}

// count counts one request, which begins with its operation. The last byte of a read says whether
// it sets a watch.
func (c *requestCounter) count(request []byte) {
	code := binary.BigEndian.Uint32(request)
	name, known := operations[code]
	switch {
	case !known:
		name = "other"
	case (name == "exists" || name == "get" || name == "list") && request[len(request)-1] == 1:
		name += "+watch"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name]++
}
