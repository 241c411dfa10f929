package link

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// conn is one watched connection. The client library writes one whole frame a call and
// reads from one goroutine, which is what the parsing below relies on.
type conn struct {
	net.Conn
	session       sessionOwner
	cfg           Config
	address       string
	sentAt        time.Duration
	ended         sync.Once
	handshakeDone atomic.Bool // the connect request was answered
	answered      atomic.Bool // and another packet

	// Of the library's goroutine that writes the first frame and reads its answer.
	handshakeBegun bool
	connectRequest wire.ConnectRequest

	// The reading goroutine's own.
	br                *bufio.Reader
	frameBytesLeft    int // of the present frame, not yet handed on
	deadline          time.Time
	handshakeDeadline time.Time
	extraReadTime     time.Duration // how long to wait past the library's deadline

	sessionID atomic.Int64
	admitted  bool // requests may pass; guarded by the Transport's mutex

	mu      sync.Mutex
	work    sync.Cond       // there is something to write, or the connection has ended
	pending map[int32]*Call // nil once the connection has ended
	out     outbox
	room    chan struct{} // closed when the outbox takes more requests; nil while nobody waits
	pings   pingPairs
}

// sessionOwner is told what happens on a connection of its session.
type sessionOwner interface {
	// handshakeBegins is called before c's connect request leaves. It sets c's sentAt,
	// or refuses the request.
	handshakeBegins(c *conn, sessionID int64) error
	// handshakeAnswered is called when c's connect request was answered. refused says that the
	// session has ended.
	handshakeAnswered(c *conn, refused bool, h Handshake)
	// closeAnswered is called when a server has closed the session as the library has asked.
	closeAnswered()
	// connectionEnded is called once when c has ended; err is nil when the library or the Transport
	// has closed it.
	connectionEnded(c *conn, err error)
	// notifyChange is called after the answer to the second ping of a pair.
	notifyChange()
	// recordSeen keeps the newest transaction that a server has told of.
	recordSeen(zxid int64)
	// Seen is the newest transaction that an answer has told of.
	Seen() int64
	// takeXid returns the number of the next request.
	takeXid() int32
}

func newConn(session sessionOwner, cfg Config, nc net.Conn, address string) *conn {
	c := &conn{Conn: nc, session: session, cfg: cfg, address: address,
		handshakeDeadline: time.Now().Add(cfg.HandshakeTimeout()), pending: map[int32]*Call{}}
	c.work.L = &c.mu
	c.br = bufio.NewReaderSize(reader{c}, readBuffer)
	go c.writeQueued()
	return c
}

// writeQueued writes what is queued until the connection has ended. It is the only goroutine that
// writes: callers never wait for the network, and an urgent request waits only
// for the chunk that is being written and for the urgent ones before it.
func (c *conn) writeQueued() {
	for {
		next := c.nextChunk()
		if next == nil {
			return
		}
		n, err := c.Conn.Write(next.frames.Bytes())
		c.mu.Lock()
		if err == nil {
			c.out.keepForLater(next)
		} else if c.pending != nil {
			next.markUnsent(n)
		}
		c.mu.Unlock()
		if err != nil {
			c.endOnce(err)
			return
		}
	}
}

// nextChunk waits for something to write. It returns nil once the connection has ended.
func (c *conn) nextChunk() *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending != nil {
		if next := c.out.takeChunk(); next != nil {
			c.tellRoom()
			return next
		}
		c.work.Wait()
	}
	return nil
}

// tellRoom tells those who wait for room in the outbox, when half of it is free or the connection
// has ended.
func (c *conn) tellRoom() {
	if c.room != nil && (c.pending == nil || c.out.waiting <= MaxQueued/2) {
		close(c.room)
		c.room = nil
	}
}

// Write queues one frame of the library's, except for its pings: sendPings sends others. Once the
// connection is established it never fails: go-zookeeper keeps a request whose write has failed,
// answers it twice and may block for ever. The reading side fails instead, which ends every request
// once.
func (c *conn) Write(frame []byte) (int, error) {
	if isPing(frame) {
		return len(frame), nil
	}
	if !c.handshakeBegun {
		c.handshakeBegun = true
		if err := c.beginHandshake(frame); err != nil {
			c.endOnce(err)
			return 0, err
		}
		return len(frame), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != nil {
		c.out.putFrame(frame)
		c.work.Signal()
	}
	return len(frame), nil
}

// beginHandshake queues the connect request, with the newest transaction that the session was told
// of: the library does not see the answers to our calls, and a server that is behind them must not
// take the session.
func (c *conn) beginHandshake(frame []byte) error {
	request := &c.connectRequest
	if err := request.DecodeFrame(frame); err != nil {
		return err
	}
	if err := c.session.handshakeBegins(c, request.Session); err != nil {
		return err
	}
	request.LastZxid = max(request.LastZxid, c.session.Seen())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != nil {
		c.out.putConnectRequest(request)
		c.work.Signal()
	}
	return nil
}

// sendPings sends a pair of pings after each interval until the connection has ended.
func (c *conn) sendPings(interval time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings.next = time.AfterFunc(interval, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pending == nil {
			return
		}
		c.pings.recordSent(c.cfg.Now())
		c.out.putPingPair()
		c.work.Signal()
		c.pings.next.Reset(interval)
	})
}

// Read hands the library its frames, and looks at the head of each as it starts. The answers to our
// calls and the watch events are taken out.
func (c *conn) Read(b []byte) (int, error) {
	for c.frameBytesLeft == 0 {
		if err := c.readFrameHead(); err != nil {
			c.endOnce(err)
			return 0, err
		}
	}
	n, err := c.br.Read(b[:min(len(b), c.frameBytesLeft)])
	c.frameBytesLeft -= n
	if err != nil {
		c.endOnce(err)
	}
	return n, err
}

// readFrameHead waits for the next frame's head. It leaves none to be read when the frame was the
// answer to a call.
func (c *conn) readFrameHead() error {
	size, err := peekSize(c.br, c.handshakeDone.Load())
	if err != nil {
		return err
	}
	if !c.handshakeDone.Load() {
		if err := c.readConnectResponse(size); err != nil {
			return err
		}
	} else if taken, err := c.readReply(size); taken || err != nil {
		return err
	}
	if size > MaxAnswer {
		return errFrameLength(uint32(size))
	}
	c.frameBytesLeft = size + sizeLen
	return nil
}

// readConnectResponse looks at the answer to the connect request.
func (c *conn) readConnectResponse(size int) error {
	b, err := c.br.Peek(sizeLen + size)
	if err != nil {
		return err
	}
	r, err := c.connectRequest.DecodeResponse(b[sizeLen:])
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	timeout := time.Duration(r.Timeout) * time.Millisecond
	c.sessionID.Store(r.Session)
	c.extraReadTime = extraReadTime(timeout)
	c.handshakeDone.Store(true)
	c.session.handshakeAnswered(c, r.Refused(), Handshake{SentAt: c.sentAt, SessionID: r.Session,
		Password: bytes.Clone(r.Password), Timeout: timeout, Server: c.address})
	if !r.Refused() {
		c.sendPings(PingInterval(timeout))
	}
	return nil
}

// readReply looks at a reply. It takes the frame if it is a watch event, the answer to a call or
// the answer that completes a pair of pings, so that the library reads only short frames.
func (c *conn) readReply(size int) (taken bool, err error) {
	h, err := peekReply(c.br)
	if err != nil {
		return false, err
	}
	if h.Xid == wire.XidNotify {
		return true, c.deliverEvent(size)
	}
	c.answered.Store(true)
	if h.Xid == wire.XidPing && c.pingAnswered() {
		_, err := c.br.Discard(sizeLen + size)
		return true, err
	}
	if h.Xid < 0 {
		return false, nil
	}
	c.session.recordSeen(h.Zxid)
	if h.Xid < firstXid { // besides the connect request, the library sends only the close
		if h.Err == wire.OK {
			c.session.closeAnswered()
		}
		return false, nil
	}
	return true, c.deliverAnswer(h, size)
}

// pingAnswered records the answer to a ping, and reports whether it completes a pair. The library
// reads only the answer to the first ping of a pair, as the answer to its own ping.
func (c *conn) pingAnswered() (completesPair bool) {
	now := c.cfg.Now()
	c.mu.Lock()
	completesPair = c.pings.recordAnswered(now)
	c.mu.Unlock()
	if completesPair {
		c.session.notifyChange()
	}
	return completesPair
}

// queueCalls queues the calls and has their answers awaited, unless the connection has ended or, if
// bounded, is full.
func (c *conn) queueCalls(calls []*Call, bounded bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pending == nil:
		return ErrNotSent
	case bounded && !calls[0].Urgent && c.out.waiting >= MaxQueued:
		return ErrFull
	}
	now := c.cfg.Now()
	for _, call := range calls {
		call.queuedAt = now
		xid := c.session.takeXid()
		c.pending[xid] = call
		c.out.putCall(call, xid)
	}
	c.work.Signal()
	return nil
}

// awaitRoom returns a channel that is closed when half of the outbox is free or the connection has
// ended, or nil if the outbox is not full.
func (c *conn) awaitRoom() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil || c.out.waiting < MaxQueued {
		return nil
	}
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room
}

// takeCall takes a call out of those that wait, or returns nil.
func (c *conn) takeCall(xid int32) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.pending[xid]
	delete(c.pending, xid)
	return call
}

// failPending fails all pending calls; later ones get ErrNotSent.
func (c *conn) failPending() {
	c.mu.Lock()
	pending := c.pending
	c.pending, c.out = nil, outbox{}
	c.tellRoom()
	c.work.Signal()
	if c.pings.next != nil {
		c.pings.next.Stop()
	}
	c.mu.Unlock()
	for _, call := range pending {
		err := ErrNotSent
		if call.sent {
			err = ErrDown
		}
		call.finish(c.cfg.Answered, Reply{SessionID: c.sessionID.Load(), Err: err})
	}
}

// deliverAnswer reads the answer to a call and hands it over.
func (c *conn) deliverAnswer(h wire.ReplyHeader, size int) error {
	r := Reply{Zxid: h.Zxid, SessionID: c.sessionID.Load(), Code: h.Err}
	call := c.takeCall(h.Xid)
	if call == nil {
		call = &Call{Done: func(Reply) {}} // of no request: read over it
	}
	frame := sizeLen + size
	switch {
	case size > MaxAnswer:
		r.Err = ErrTooLong
	case frame <= readBuffer:
		b, err := c.br.Peek(frame)
		if err != nil {
			c.failLost(call)
			return err
		}
		r.Body = b[sizeLen+replyHead:]
	default:
		return c.deliverLongAnswer(call, r, size)
	}
	call.finish(c.cfg.Answered, r)
	_, err := c.br.Discard(frame)
	return err
}

// deliverLongAnswer hands over an answer that the buffer does not hold.
func (c *conn) deliverLongAnswer(call *Call, r Reply, size int) error {
	if _, err := c.br.Discard(sizeLen + replyHead); err != nil {
		c.failLost(call)
		return err
	}
	var err error
	if r.Body, err = wire.ReadBody(c.br, nil, int32(size-replyHead), MaxAnswer); err != nil {
		c.failLost(call)
		return err
	}
	call.finish(c.cfg.Answered, r)
	return nil
}

// deliverEvent reads a watch event and hands it over.
func (c *conn) deliverEvent(size int) error {
	if _, err := c.br.Discard(sizeLen + replyHead); err != nil {
		return err
	}
	body, err := wire.ReadBody(c.br, nil, int32(size-replyHead), MaxAnswer)
	if err != nil {
		return err
	}
	d := wire.NewDecoder(body)
	var event wire.WatchEvent
	event.Decode(&d)
	if d.Err() == nil && c.cfg.Event != nil {
		c.cfg.Event(event)
	}
	return d.Err()
}

// failLost answers a call whose answer broke off.
func (c *conn) failLost(call *Call) {
	call.finish(c.cfg.Answered, Reply{SessionID: c.sessionID.Load(), Err: ErrDown})
}

// Close breaks the connection; what is queued may be lost.
func (c *conn) Close() error {
	c.endOnce(nil)
	return nil
}

func (c *conn) endOnce(err error) {
	c.ended.Do(func() {
		c.Conn.Close()
		c.session.connectionEnded(c, err)
		c.failPending()
	})
}

// SetDeadline and its kin are kept, and applied only when a read has to wait: the library sets
// them twice a frame, and most frames are in the buffer already.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline keeps t. A zero t is ignored: go-zookeeper clears the deadline after each frame
// and sets one before the next.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.deadline = t
	}
	return nil
}

// SetWriteDeadline does nothing: writes only queue, and a connection that does not take them is
// cut.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// reader fills the buffer from the network.
type reader struct{ c *conn }

func (r reader) Read(b []byte) (int, error) {
	d := r.c.deadline
	if !d.IsZero() {
		d = d.Add(r.c.extraReadTime)
	}
	if !r.c.handshakeDone.Load() && (d.IsZero() || r.c.handshakeDeadline.Before(d)) {
		d = r.c.handshakeDeadline
	}
	if err := r.c.Conn.SetReadDeadline(d); err != nil {
		return 0, err
	}
	return r.c.Conn.Read(b)
}
