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
	greeted    atomic.Bool // the connect request was answered

	// The reading goroutine's own.
	br       *bufio.Reader
	left     int // bytes of the present frame not yet handed on
	deadline time.Time
	limit    time.Time // of the handshake

	session  atomic.Int64
	admitted bool // requests may pass; guarded by m.mu

	mu      sync.Mutex
	work    sync.Cond // there is something to write, or the connection has ended
	wrote   bool      // the connect request
	xid     int32
	pending map[int32]*Call // nil once the connection has ended
	out     outbox
	room    chan struct{} // closed when the outbox takes more requests; nil while nobody waits
}

func newConn(m *Monitor, nc net.Conn, address string) *conn {
	c := &conn{Conn: nc, m: m, address: address, limit: time.Now().Add(m.cfg.HandshakeTimeout), xid: firstXid, pending: map[int32]*Call{}}
	c.work.L = &c.mu
	c.br = bufio.NewReaderSize(reader{c}, readBuffer)
	go c.drain()
	return c
}

// drain writes what is queued until the connection has ended. It is the only goroutine that writes: whoever asks for something
// never waits for the network, and an urgent request never waits for more than the chunk that is being written.
func (c *conn) drain() {
	for {
		next := c.next()
		if next == nil {
			return
		}
		n, err := c.Conn.Write(next.frames.Bytes())
		c.mu.Lock()
		if err == nil {
			c.out.keep(next)
		} else if c.pending != nil {
			next.brokeOff(n)
		}
		c.mu.Unlock()
		if err != nil {
			c.end(err)
			return
		}
	}
}

// next waits for something to write. It returns nil once the connection has ended.
func (c *conn) next() *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending != nil {
		if next := c.out.take(); next != nil {
			c.tellRoom()
			return next
		}
		c.work.Wait()
	}
	return nil
}

// tellRoom tells those who wait for room in the outbox, when half of it is free or the connection has ended.
func (c *conn) tellRoom() {
	if c.room != nil && (c.pending == nil || c.out.waiting <= MaxQueued/2) {
		close(c.room)
		c.room = nil
	}
}

// Write queues one frame of the library's. Once the connection is established it never fails: go-zookeeper
// keeps a request whose write has failed, answers it twice and may block for ever. The reading side
// fails instead, which ends every request once.
func (c *conn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	first := !c.wrote
	c.wrote = true
	c.mu.Unlock()
	out := frame
	if first {
		var err error
		if out, err = c.greet(frame); err != nil {
			c.end(err)
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != nil {
		c.out.put(out)
		c.work.Signal()
	}
	return len(frame), nil
}

// greet returns the connect request with the newest transaction that the session was told of: the library
// does not see the answers to our calls, and a server that is behind them must not take the session.
func (c *conn) greet(frame []byte) ([]byte, error) {
	id, err := parseGreeting(frame)
	if err != nil {
		return nil, err
	}
	if err := c.m.greeting(c, id); err != nil {
		return nil, err
	}
	return withZxidSeen(frame, c.m.seen.Load()), nil
}

// Read hands the library its frames, and looks at the head of each as it starts. The answers to our calls
// are taken out.
func (c *conn) Read(b []byte) (int, error) {
	for c.left == 0 {
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

// frame waits for the next frame's head. It leaves none to be read when the frame was the answer to a call.
func (c *conn) frame() error {
	size, err := peekSize(c.br, c.greeted.Load())
	if err != nil {
		return err
	}
	if !c.greeted.Load() {
		if err := c.welcome(size); err != nil {
			return err
		}
	} else if ours, err := c.answer(size); ours || err != nil {
		return err
	}
	if size > MaxAnswer {
		return errNotZooKeeper(uint32(size))
	}
	c.left = size + sizeLen
	return nil
}

// welcome takes in the connect request's answer.
func (c *conn) welcome(size int) error {
	h, err := peekHandshake(c.br, size)
	if err != nil {
		return err
	}
	c.session.Store(h.SessionID)
	c.greeted.Store(true)
	c.m.greeted(c, h)
	return nil
}

// answer looks at a reply, and hands it over if it is one to a call.
func (c *conn) answer(size int) (ours bool, err error) {
	h, err := peekReply(c.br)
	if err != nil || h.Xid == wire.XidNotify {
		return false, err
	}
	if h.Xid < 0 {
		return false, nil
	}
	c.m.saw(h.Zxid)
	if h.Xid < firstXid {
		return false, nil
	}
	return true, c.settle(h, size)
}

// Close breaks the connection; what is queued may be lost.
func (c *conn) Close() error {
	c.end(nil)
	return nil
}

func (c *conn) end(err error) {
	c.ended.Do(func() {
		c.Conn.Close()
		c.m.broken(c, err)
		c.fail()
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
