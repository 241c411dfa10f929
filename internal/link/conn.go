package link

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const readBuffer = 16 << 10

// conn is one watched connection. The client library writes one whole frame a call and
// reads from one goroutine, which is what the parsing below relies on.
type conn struct {
	net.Conn
	m          *Monitor
	address    string
	generation int64
	sentAt     time.Duration
	ended      sync.Once
	over       chan struct{} // closed when the connection has ended
	greeted    atomic.Bool   // the connect request was answered
	unanswered atomic.Int64  // requests

	out outbox

	// The reading goroutine's own.
	br       *bufio.Reader
	left     int // bytes of the present frame not yet handed on
	session  int64
	deadline time.Time
	limit    time.Time // of the handshake

	rearm rearm

	mu      sync.Mutex
	wrote   bool // the connect request
	pending map[int32]*Trace
}

func newConn(m *Monitor, nc net.Conn, address string) *conn {
	c := &conn{Conn: nc, m: m, address: address, limit: time.Now().Add(m.cfg.HandshakeTimeout), pending: map[int32]*Trace{}, rearm: newRearm(), over: make(chan struct{})}
	c.br = bufio.NewReaderSize(reader{c}, readBuffer)
	c.out.start(nc, func(error) { c.end(nil) })
	return c
}

// Write queues one frame. Once the connection is established it never fails: go-zookeeper keeps a request
// whose write has failed, answers it twice and may block for ever. The reading side fails instead, which
// ends every request once.
func (c *conn) Write(frame []byte) (int, error) {
	t, err := c.sending(frame)
	if err != nil {
		c.end(err)
		return 0, err
	}
	if err := c.out.put(frame, c.unanswered.Add(1) == 1); err != nil {
		c.end(err)
		return len(frame), nil
	}
	if t != nil {
		t.wrote()
	}
	return len(frame), nil
}

// sending looks at a frame before it is queued.
func (c *conn) sending(frame []byte) (*Trace, error) {
	c.mu.Lock()
	first := !c.wrote
	c.wrote = true
	c.mu.Unlock()
	if first {
		id, err := parseGreeting(frame)
		if err != nil {
			return nil, err
		}
		return nil, c.m.greeting(c, id)
	}
	xid, op, path := parseRequest(frame)
	if op == int32(wire.OpSetWatches) {
		c.rearm.done()
	}
	t := c.m.traced(op, path)
	if t != nil {
		c.mu.Lock()
		c.pending[xid] = t
		c.mu.Unlock()
	}
	return t, nil
}

// Read hands bytes on and looks at the head of each frame as it starts.
func (c *conn) Read(b []byte) (int, error) {
	if c.left == 0 {
		if err := c.frame(); err != nil {
			c.end(err)
			return 0, err
		}
	}
	n, err := c.br.Read(b[:min(len(b), c.left)])
	c.left -= n
	if err != nil {
		c.end(err)
	}
	return n, err
}

// frame waits for the next frame's head.
func (c *conn) frame() error {
	size, err := peekSize(c.br, c.greeted.Load())
	if err != nil {
		return err
	}
	if !c.greeted.Load() {
		h, err := peekHandshake(c.br, size)
		if err != nil {
			return err
		}
		c.session = h.SessionID
		c.rearm.init(c.generation > 1 && c.m.rearms())
		c.greeted.Store(true)
		c.unanswered.Add(-1)
		c.m.greeted(c, h)
	} else if err := c.answer(); err != nil {
		return err
	}
	c.left = size + 4
	return nil
}

// answer settles the trace of the reply that has arrived.
func (c *conn) answer() error {
	xid, zxid, err := peekReply(c.br)
	if err != nil {
		return err
	}
	if xid == wire.XidNotify {
		return nil
	}
	c.unanswered.Add(-1)
	if zxid > 0 && xid >= 0 {
		if err := c.rearm.wait(c.over); err != nil {
			return err
		}
	}
	c.mu.Lock()
	t := c.pending[xid]
	delete(c.pending, xid)
	c.mu.Unlock()
	if t != nil {
		t.reply.Store(&Reply{Zxid: zxid, SessionID: c.session})
	}
	return nil
}

// Close breaks the connection; what is queued may be lost.
func (c *conn) Close() error {
	c.end(nil)
	return nil
}

func (c *conn) end(err error) {
	c.ended.Do(func() {
		c.out.stop()
		c.Conn.Close()
		close(c.over)
		c.m.broken(c, err)
	})
}

// SetDeadline and its kin are noted and applied only when a read has to wait: the library sets
// them twice a frame, and most frames are in the buffer already.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline notes t; a zero t leaves the former one, which only ever comes earlier.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.deadline = t
	}
	return nil
}

// SetWriteDeadline does nothing: writes only queue, and a connection that does not take them is cut.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// reader fills the buffer from the network.
type reader struct{ c *conn }

func (r reader) Read(b []byte) (int, error) {
	d := r.c.deadline
	if !r.c.greeted.Load() && (d.IsZero() || r.c.limit.Before(d)) {
		d = r.c.limit
	}
	if err := r.c.Conn.SetReadDeadline(d); err != nil {
		return 0, err
	}
	return r.c.Conn.Read(b)
}
