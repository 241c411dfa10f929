package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Errors of a dial or a write on a connection of a Transport.
var (
	// ErrClosed is returned when the Transport was closed.
	ErrClosed = errors.New("link: closed")
	// ErrSessionOver is returned when the session has ended and a connection would open another
	// one.
	ErrSessionOver = errors.New("link: the session is over")
)

// Status is a Transport's view of its session at one moment.
type Status struct {
	// Connection is the established connection, or nil while there is none.
	Connection *Connection
	// Handshaking says that a connection is open whose connect request is not answered: it may open
	// the session.
	Handshaking bool
	// Expired says that a server has declared the session over.
	Expired bool
	// Closed says that a server has answered the library's request to close the session.
	Closed bool
	// Handshake is that of the newest established connection.
	Handshake Handshake
}

// Transport carries the requests of one session over one connection after the other. It is safe for
// concurrent use.
type Transport struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	changed chan struct{}

	mu     sync.Mutex
	status Status
	cur    *conn

	seen atomic.Int64 // the newest transaction that an answer told of
	xids atomic.Int32 // how many requests have got a number
}

// New returns a Transport without a connection.
func New(cfg Config) *Transport {
	ctx, cancel := context.WithCancel(context.Background())
	return &Transport{cfg: cfg, ctx: ctx, cancel: cancel, changed: make(chan struct{}, 1)}
}

// Status returns the present view.
func (t *Transport) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// Changed gets a value after Status or PingPairs has changed; several changes may share one. It
// serves one reader.
func (t *Transport) Changed() <-chan struct{} { return t.changed }

// Dial opens a watched connection to address within timeout.
func (t *Transport) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if err := t.checkUsable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	nc, err := t.cfg.Dial(ctx, network, address)
	if err != nil {
		t.reportFailure(address, err)
		return nil, err
	}
	c := newConn(t, t.cfg, nc, address)
	if err := t.adoptConnection(c); err != nil {
		c.endOnce(nil)
		return nil, err
	}
	return c, nil
}

// Close breaks the present connection and refuses all later ones.
func (t *Transport) Close() {
	t.cancel()
	t.mu.Lock()
	c := t.cur
	t.mu.Unlock()
	if c != nil {
		c.endOnce(nil)
	}
}

// Context is done once Close was called.
func (t *Transport) Context() context.Context { return t.ctx }

// Over tells that no connection can be opened any more.
func (t *Transport) Over() bool { return t.checkUsable() != nil }

func (t *Transport) checkUsable() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ctx.Err() != nil:
		return ErrClosed
	case t.status.Expired:
		return ErrSessionOver
	}
	return nil
}

// adoptConnection makes c the present connection, unless the Transport was closed meanwhile.
func (t *Transport) adoptConnection(c *conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return ErrClosed
	}
	t.cur, t.status.Handshaking = c, true
	return nil
}

// handshakeBegins is called before c's connect request leaves.
func (t *Transport) handshakeBegins(c *conn, sessionID int64) error {
	now := t.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if sessionID == 0 && t.status.Handshake.SessionID != 0 {
		return ErrSessionOver
	}
	t.status.Connection = nil
	c.sentAt = now
	return nil
}

// handshakeAnswered is called when c's connect request was answered.
func (t *Transport) handshakeAnswered(c *conn, refused bool, h Handshake) {
	t.mu.Lock()
	if t.cur == c {
		t.status.Handshaking = false
	}
	if refused {
		t.status.Expired, t.status.Connection = true, nil
	} else if t.cur == c { // c has not ended
		t.status.Connection, t.status.Handshake = &Connection{h, t, c}, h
	}
	t.mu.Unlock()
	t.notifyChange()
}

// closeAnswered is called when a server has closed the session as the library has asked.
func (t *Transport) closeAnswered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Closed = true
}

// connectionEnded is called once when c has ended; err is nil when the library or the Transport has
// closed it.
func (t *Transport) connectionEnded(c *conn, err error) {
	switch {
	case err == nil || c.answered.Load() || c.handshakeDone.Load() && c.sessionID.Load() == 0:
		// the last has said that the session has expired
	case c.handshakeDone.Load(): // the session's owner may not have seen that the connection was there
		t.reportFailure(c.address, Unproven(err))
	default:
		t.reportFailure(c.address, err)
	}
	t.mu.Lock()
	if t.status.Connection != nil && t.status.Connection.conn == c {
		t.status.Connection = nil
	}
	if t.cur == c {
		t.cur, t.status.Handshaking = nil, false
	}
	t.mu.Unlock()
	t.notifyChange()
}

// takeXid returns the number of the next request. The numbers go on when the session moves to
// another connection: servers match transactions to waiting requests by session and number
// (docs/adr/0084-request-numbers-go-on.md).
func (t *Transport) takeXid() int32 { return firstXid | (t.xids.Add(1)-1)&(firstXid-1) }

func (t *Transport) notifyChange() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Unproven is the failure of a server that has answered a connect request. err is why the session's
// life was not proven then.
func Unproven(err error) error { return fmt.Errorf("it answers, but not to a proof of life: %w", err) }

func (t *Transport) reportFailure(address string, err error) {
	if t.cfg.Failed != nil && t.ctx.Err() == nil {
		t.cfg.Failed(address, err)
	}
}

// Send queues requests, in this order: what is sent later reaches the server later, unless it is
// urgent. It never waits for the network. Without an admitted connection it returns false, and they
// have been answered with ErrNotSent.
func (t *Transport) Send(calls ...*Call) (queued bool) { return t.sendCalls(calls, false) }

// Offer is Send for requests of any size: it refuses them with ErrFull while MaxQueued bytes wait
// to be written, unless the first is urgent. Room says when to try again.
func (t *Transport) Offer(calls ...*Call) (queued bool) { return t.sendCalls(calls, true) }

func (t *Transport) sendCalls(calls []*Call, bounded bool) (queued bool) {
	err := ErrNotSent
	if c := t.admittedConnection(calls[0].Op); c != nil {
		err = c.queueCalls(calls, bounded)
	}
	return answerUnqueued(t.cfg.Answered, calls, err)
}

// Room returns a channel that is closed once the connection takes more requests, or has ended.
func (t *Transport) Room() <-chan struct{} {
	t.mu.Lock()
	c := t.cur
	t.mu.Unlock()
	if c != nil {
		if room := c.awaitRoom(); room != nil {
			return room
		}
	}
	room := make(chan struct{})
	close(room)
	return room
}

// admittedConnection returns the connection that takes a request now, or nil.
func (t *Transport) admittedConnection(op wire.Op) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.status.Connection
	if c == nil || t.cur != c.conn || !c.conn.admitted && op != wire.OpAuth {
		return nil
	}
	return c.conn
}

// Seen is the newest transaction that an answer has told of.
func (t *Transport) Seen() int64 { return t.seen.Load() }

// recordSeen keeps the newest transaction that a server has told of.
func (t *Transport) recordSeen(zxid int64) {
	for {
		seen := t.seen.Load()
		if zxid <= seen || t.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// Connection is an established connection of a Transport, and what its handshake said.
type Connection struct {
	Handshake
	transport *Transport
	conn      *conn
}

// IsUp reports whether the connection is still the Transport's present one.
func (c *Connection) IsUp() bool { return c.transport.Status().Connection == c }

// Cut breaks the connection. The session lives on.
func (c *Connection) Cut() { c.conn.endOnce(nil) }

// Admit lets requests pass, and queues the first ones before all others. It makes the first ones
// urgent, so that no urgent request leaves before them. Until then the connection takes credentials
// alone, so that nothing is asked without them.
func (c *Connection) Admit(first ...*Call) {
	t := c.transport
	t.mu.Lock()
	err := ErrNotSent
	if t.cur == c.conn {
		err = nil
		for _, call := range first {
			call.Urgent = true
		}
		if len(first) > 0 {
			err = c.conn.queueCalls(first, false)
		}
		c.conn.admitted = true
	}
	t.mu.Unlock()
	answerUnqueued(t.cfg.Answered, first, err)
}

// IsStuck reports whether a call that was queued before a time has no answer yet.
func (c *Connection) IsStuck(before time.Duration) bool {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	for _, call := range c.conn.pending {
		if call.queuedAt < before {
			return true
		}
	}
	return false
}

// PingPairs returns the latest pairs of pings, in order, or none once the connection has ended. The
// Transport's Changed tells of each new one.
func (c *Connection) PingPairs() []PingPair {
	if !c.IsUp() {
		return nil
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	return append([]PingPair(nil), c.conn.pings.latest...)
}
