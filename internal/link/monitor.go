package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a dial or a write on a connection of a Monitor.
var (
	// ErrClosed is returned when the Monitor was closed.
	ErrClosed = errors.New("link: closed")
	// ErrSessionOver is returned when the session has ended and a connection would open another
	// one.
	ErrSessionOver = errors.New("link: the session is over")
)

// Status is a Monitor's view of its session at one moment.
type Status struct {
	// Generation counts connect requests; it rises with each one written.
	Generation int64
	// Handshaking says that a connection is open whose connect request is not answered: it may open
	// the session.
	Handshaking bool
	// Up says that the connection of this generation is established and not yet broken.
	Up bool
	// Expired says that a server has declared the session over.
	Expired bool
	// Closed says that a server has answered the library's request to close the session.
	Closed bool
	// Handshake is that of the newest established connection.
	Handshake Handshake
}

// Monitor follows the connections of one session. It is safe for concurrent use.
type Monitor struct {
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

// New returns a Monitor without a connection.
func New(cfg Config) *Monitor {
	ctx, cancel := context.WithCancel(context.Background())
	return &Monitor{cfg: cfg, ctx: ctx, cancel: cancel, changed: make(chan struct{}, 1)}
}

// Status returns the present view.
func (m *Monitor) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// Changed gets a value after Status or PingPairs has changed; several changes may share one. It
// serves one reader.
func (m *Monitor) Changed() <-chan struct{} { return m.changed }

// Dial opens a watched connection to address within timeout.
func (m *Monitor) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if err := m.checkUsable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	nc, err := m.cfg.Dial(ctx, network, address)
	if err != nil {
		m.reportFailure(address, err)
		return nil, err
	}
	c := newConn(m, m.cfg, nc, address)
	if err := m.adoptConnection(c); err != nil {
		c.endOnce(nil)
		return nil, err
	}
	return c, nil
}

// Cut breaks the connection of a generation, if it is still there. The session lives on.
func (m *Monitor) Cut(generation int64) {
	m.cutMatching(func(c *conn) bool { return c.generation == generation })
}

func (m *Monitor) cutMatching(which func(*conn) bool) {
	m.mu.Lock()
	c := m.cur
	if c != nil && !which(c) {
		c = nil
	}
	m.mu.Unlock()
	if c != nil {
		c.endOnce(nil)
	}
}

// Close breaks the present connection and refuses all later ones.
func (m *Monitor) Close() {
	m.cancel()
	m.cutMatching(func(*conn) bool { return true })
}

// Context is done once Close was called.
func (m *Monitor) Context() context.Context { return m.ctx }

// Over tells that no connection can be opened any more.
func (m *Monitor) Over() bool { return m.checkUsable() != nil }

func (m *Monitor) checkUsable() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case m.status.Expired:
		return ErrSessionOver
	}
	return nil
}

// adoptConnection makes c the present connection, unless the Monitor was closed meanwhile.
func (m *Monitor) adoptConnection(c *conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return ErrClosed
	}
	m.cur, m.status.Handshaking = c, true
	return nil
}

// handshakeBegins is called before c's connect request leaves.
func (m *Monitor) handshakeBegins(c *conn, sessionID int64) error {
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if sessionID == 0 && m.status.Handshake.SessionID != 0 {
		return ErrSessionOver
	}
	m.status.Generation++
	m.status.Up = false
	c.generation, c.sentAt = m.status.Generation, now
	return nil
}

// handshakeAnswered is called when c's connect request was answered.
func (m *Monitor) handshakeAnswered(c *conn, refused bool, h Handshake) {
	m.mu.Lock()
	if m.cur == c {
		m.status.Handshaking = false
	}
	if refused {
		m.status.Expired, m.status.Up = true, false
	} else if m.cur == c && c.generation == m.status.Generation { // c has not ended
		m.status.Up, m.status.Handshake = true, h
	}
	m.mu.Unlock()
	m.notifyChange()
}

// closeAnswered is called when a server has closed the session as the library has asked.
func (m *Monitor) closeAnswered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Closed = true
}

// connectionEnded is called once when c has ended; err is nil when the library or the Monitor has
// closed it.
func (m *Monitor) connectionEnded(c *conn, err error) {
	switch {
	case err == nil || c.answered.Load() || c.handshakeDone.Load() && c.sessionID.Load() == 0:
		// the last has said that the session has expired
	case c.handshakeDone.Load(): // the session's owner may not have seen that the connection was there
		m.reportFailure(c.address, Unproven(err))
	default:
		m.reportFailure(c.address, err)
	}
	m.mu.Lock()
	if c.generation == m.status.Generation {
		m.status.Up = false
	}
	if m.cur == c {
		m.cur, m.status.Handshaking = nil, false
	}
	m.mu.Unlock()
	m.notifyChange()
}

// takeXid returns the number of the next request. The numbers go on when the session moves to
// another connection: servers match transactions to waiting requests by session and number
// (docs/adr/0084-request-numbers-go-on.md).
func (m *Monitor) takeXid() int32 { return firstXid | (m.xids.Add(1)-1)&(firstXid-1) }

func (m *Monitor) notifyChange() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Unproven is the failure of a server that has answered a connect request. err is why the session's
// life was not proven then.
func Unproven(err error) error { return fmt.Errorf("it answers, but not to a proof of life: %w", err) }

func (m *Monitor) reportFailure(address string, err error) {
	if m.cfg.Failed != nil && m.ctx.Err() == nil {
		m.cfg.Failed(address, err)
	}
}
