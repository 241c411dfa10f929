package zkserver

import (
	"bufio"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const (
	// readBuffer holds many requests; there is one for each connection.
	readBuffer = 4 << 10
	// keepBuffer is the largest buffer that is kept for the next use.
	keepBuffer = 64 << 10
	// mostHandshake is the largest first frame. That of a Java client has 45 bytes.
	mostHandshake = 1 << 10
	// mostIdentities and mostNames bound what a connection may be known as, and the bytes of that.
	mostIdentities, mostNames = 64, 1 << 20
	// outgoingPause is how many bytes may wait to be written before the
	// connection's next request is left unread.
	outgoingPause = 1 << 20
)

// conn is a client's connection.
type conn struct {
	s  *Server
	nc net.Conn
	id int64 // in order of arrival

	opened time.Time

	// Guarded by the server's mutex.
	session        *session
	ids            []wire.Identity
	dead           bool // watches, session and reader are done with it
	received, sent int64

	mu      sync.Mutex
	wake    sync.Cond // the writer: there is something to do
	drained sync.Cond // the reader: something has been written
	out     []byte
	spare   []byte
	pending int // bytes in out, in late and being written
	late    []lateFrame
	timer   *time.Timer // for late[0]
	ending  bool        // close when all is written
	closed  bool
}

// lateFrame is a frame that waits, for an injected delay or behind one.
type lateFrame struct {
	due   time.Time
	bytes []byte
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	c := &conn{s: s, nc: nc, id: id, opened: time.Now(), ids: []wire.Identity{{Scheme: schemeIP, ID: addressOf(nc)}}}
	c.wake.L, c.drained.L = &c.mu, &c.mu
	_ = nc.SetDeadline(time.Now().Add(s.config.HandshakeTimeout))
	return c
}

// addressOf is the client's address; that of this machine where the network has
// no addresses.
func addressOf(nc net.Conn) string {
	if remote := nc.RemoteAddr(); remote != nil {
		if ap, err := netip.ParseAddrPort(remote.String()); err == nil {
			return ap.Addr().Unmap().String()
		}
	}
	return "127.0.0.1"
}

// readLoop takes one request after the other until the connection ends.
func (c *conn) readLoop() {
	defer c.s.drop(c)
	in := bufio.NewReaderSize(c.nc, readBuffer)
	if !c.begin(in) {
		return
	}
	frame := make([]byte, 0, 512)
	for {
		var err error
		if frame, err = wire.ReadFrame(in, frame, c.s.config.JuteMaxBuffer); err != nil {
			return
		}
		c.waitDrained()
		if !c.s.serve(c, frame) {
			return
		}
		if cap(frame) > keepBuffer {
			frame = nil
		}
	}
}

// begin reads what comes first: a four-letter word or a handshake.
func (c *conn) begin(in *bufio.Reader) bool {
	head, err := in.Peek(4)
	if err != nil {
		return false
	}
	if _, known := fourLetterWords[string(head)]; known {
		c.s.fourLetter(c, string(head), in)
		return false
	}
	frame, err := wire.ReadFrame(in, nil, min(mostHandshake, c.s.config.JuteMaxBuffer))
	return err == nil && c.s.connect(c, frame)
}

// waitDrained holds the next request back while the client does not read.
func (c *conn) waitDrained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending > outgoingPause && !c.closed && !c.ending {
		c.drained.Wait()
	}
}

// queue adds bytes to what is to be written, after the delay and after what was
// queued before. It returns false, and adds nothing, when more than limit bytes
// wait already.
func (c *conn) queue(b []byte, delay time.Duration, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending || c.closed {
		return true
	}
	if c.pending > limit {
		return false
	}
	c.pending += len(b)
	if delay <= 0 && len(c.late) == 0 {
		c.out = append(c.out, b...)
		c.wake.Signal()
		return true
	}
	c.queueLate(b, delay)
	return true
}

func (c *conn) queueLate(b []byte, delay time.Duration) {
	due := time.Now().Add(delay)
	if n := len(c.late); n > 0 && due.Before(c.late[n-1].due) {
		due = c.late[n-1].due
	}
	c.late = append(c.late, lateFrame{due, append([]byte(nil), b...)})
	if len(c.late) == 1 {
		c.timer = time.AfterFunc(time.Until(due), func() { c.s.releaseLate(c) })
	}
}

// release moves the late frames that are due to the writer.
func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for len(c.late) > 0 && !c.late[0].due.After(now) {
		c.out = append(c.out, c.late[0].bytes...)
		c.late = c.late[1:]
	}
	if len(c.late) > 0 {
		c.timer.Reset(c.late[0].due.Sub(now))
	}
	c.wake.Signal()
}

// finish closes the connection once all that is queued has been written. It
// does not wait for ever for a client that does not read.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.s.config.HandshakeTimeout))
	c.wake.Signal()
	c.drained.Broadcast()
}

// close closes the connection at once.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.out, c.late = nil, nil
	if c.timer != nil {
		c.timer.Stop()
	}
	_ = c.nc.Close()
	c.wake.Signal()
	c.drained.Broadcast()
}

// writeLoop writes all that has come together in one go.
func (c *conn) writeLoop() {
	defer c.s.forgetConn(c)
	defer c.close()
	for {
		b := c.takeOut()
		if len(b) == 0 {
			return
		}
		if _, err := c.nc.Write(b); err != nil {
			return
		}
		c.wrote(b)
	}
}

// takeOut waits for bytes to write; none means that the connection is over.
func (c *conn) takeOut() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) == 0 && !c.closed && !(c.ending && len(c.late) == 0) {
		c.wake.Wait()
	}
	b := c.out
	c.out, c.spare = c.spare, nil
	return b
}

func (c *conn) wrote(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending -= len(b)
	if cap(b) <= keepBuffer {
		c.spare = b[:0]
	}
	c.drained.Broadcast()
}
