package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/clock"
)

// Client keeps a ZooKeeper session for a program and its recipes, and opens a new one when one is lost.
// It is safe for concurrent use.
type Client struct {
	cfg     Config
	log     *slog.Logger
	clock   clock.Clock
	servers *serverList
	tel     *telemetry
	changes *broadcast[StateChange]
	warn    sync.Once

	setup sessionSetup // of each session

	ctx     context.Context // done when Close was called or the client was refused
	cancel  context.CancelCauseFunc
	start   sync.Once
	stopped chan struct{} // closed when no goroutine is left

	mu      sync.Mutex
	session *Session
	changed chan struct{} // closed and replaced when session changes
}

// New returns a client that has not begun to connect, so that a program can be put together while
// ZooKeeper is down. Start or Connect begins. The error wraps ErrInvalidConfig.
func New(cfg Config, opts ...Option) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	o := options{log: slog.Default(), clock: clock.System(), dial: newDialer(cfg), tel: newTelemetry()}
	for _, set := range opts {
		if set == nil {
			continue
		}
		if err := set(&o); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
		}
	}
	c := &Client{
		cfg: cfg, log: o.log, clock: o.clock, tel: o.tel, servers: newServers(cfg, !o.dialed, o.log),
		changes: newFeed[StateChange](), stopped: make(chan struct{}), changed: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.setup = sessionSetup{
		cfg: cfg, ns: namespace(cfg.Root), log: o.log, clock: o.clock, dial: o.dial, servers: c.servers,
		stateChanged: c.changes.publish, connected: c.publishSession, timeoutGranted: c.checkGrantedTimeout,
	}
	if o.watchdog {
		if o.dialed {
			return nil, invalidConfig("WithWatchdog: another process cannot make the connections of WithDialer")
		}
		var err error
		if c.setup.watchdog, c.setup.dial, err = newWatchdogFeed(cfg, o.dial, o.clock, o.log); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
		}
	}
	return c, nil
}

// Connect returns a client with a session that is proven to be alive. It tries every server until ctx ends;
// the error, a *ConnectError, then lists each server with the last reason it gave. What is left of a connection is closed in the
// background then, within seconds. Refused credentials end it at once.
func Connect(ctx context.Context, cfg Config, opts ...Option) (*Client, error) {
	c, err := New(cfg, opts...)
	if err != nil {
		return nil, err
	}
	c.Start()
	if _, err := c.Session(ctx); err != nil {
		_ = c.Close(ctx) // the rest ends in the background if ctx has ended
		return nil, &ConnectError{Err: err, Servers: c.servers.lastFailures()}
	}
	return c, nil
}

// Start begins to connect, once, and does not wait.
func (c *Client) Start() {
	c.start.Do(func() { go c.openSessions() })
}

// Session returns a connected or suspended session, and waits for one while there is none. Its error
// wraps ErrClosed, ErrAuthFailed or the reason that ctx ended.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	for {
		s, changed := c.currentSession()
		if s != nil && s.Err() == nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, Ended(ctx)
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	}
}

// currentSession is the client's session, or nil, and a channel that is closed when there is another.
func (c *Client) currentSession() (*Session, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.changed
}

// publishSession makes s, or nil, the client's session, unless it has ended or been followed already.
func (c *Client) publishSession(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != nil && (s.ctx.Err() != nil || c.session != nil && c.session.epoch > s.epoch) {
		return
	}
	if c.session != s {
		c.session = s
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Close ends the session and waits until all goroutines of the client have ended. The session's nodes are deleted
// at once if the servers can be told within a second, else when it has timed out. When ctx ends first its error
// is returned and the rest goes on in the background. It may be called more than once.
func (c *Client) Close(ctx context.Context) error {
	c.cancel(ErrClosed)
	c.start.Do(func() { close(c.stopped) })
	select {
	case <-c.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("framework: close: %w", Ended(ctx))
	}
}

// States yields the changes of the client's sessions from now on, in order, until ctx ends or the
// client was closed: then the end of its session is the last one. A slow reader misses none.
func (c *Client) States(ctx context.Context) iter.Seq[StateChange] {
	next := c.changes.subscribe()
	return func(yield func(StateChange) bool) {
		for {
			select {
			case <-next.ready:
			case <-ctx.Done():
				return
			case <-c.stopped:
				if !next.isReady() { // no change comes any more
					return
				}
			}
			if !yield(next.value) {
				return
			}
			next = next.next
		}
	}
}

// Config is the configuration that the client was made with, with its defaults filled in.
func (c *Client) Config() Config { return c.cfg }

// Status is what is known of a client at one moment.
type Status struct {
	// State is the present session's, Connecting while there is none.
	State State
	// Epoch and SessionID are the present session's, 0 while there is none.
	Epoch, SessionID int64
	// Servers are the addresses that are tried, each with the last reason why it could not be used, if it has not been used since.
	Servers []ServerError
	// EphemeralBytes is what counts towards Config.MaxEphemeralBytes.
	EphemeralBytes int
}

// Status tells how the client is connected, and if it is not, why. It sends no request.
func (c *Client) Status() Status {
	st := Status{Servers: c.servers.lastFailures()}
	if s, _ := c.currentSession(); s != nil {
		st.State, st.Epoch, st.SessionID, st.EphemeralBytes = s.State(), s.Epoch(), s.ID(), s.owned.totalBytes()
	}
	return st
}

// SetServers makes these the client's servers, host:port or host, as Config.Servers at the start. It does not wait: a connection stays, also to a server that
// is not among them, and the next one is made to one of them. The error wraps ErrInvalidConfig. A watchdog goes on with the servers that the client was made
// with, and the one that it is connected to.
func (c *Client) SetServers(list ...string) error {
	cfg := c.cfg
	cfg.Servers = list
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.servers.replaceServers(cfg.WithDefaults().Servers)
	return nil
}

// Logger gets the reports of the client and its recipes about events that no call returns.
func (c *Client) Logger() *slog.Logger { return c.log }

// openSessions opens session after session until the client is closed.
func (c *Client) openSessions() {
	defer close(c.stopped)
	defer c.setup.watchdog.close()
	var old sync.WaitGroup
	defer old.Wait()
	back := backoff.New(c.cfg.RetryBase, c.cfg.RetryMax)
	for epoch := int64(1); c.ctx.Err() == nil; epoch++ {
		s, err := newSession(c.setup, epoch)
		if err != nil {
			c.cancel(err)
			return
		}
		stop := context.AfterFunc(c.ctx, func() { s.endWith(context.Cause(c.ctx)) })
		old.Go(s.runLoop)
		began := c.clock.Now()
		<-s.Done()
		stop()
		c.removeSession(s)
		if c.clock.Now()-began > c.cfg.SessionTimeout {
			back.Reset()
		}
		if epoch > 1 {
			_ = back.Pause(c.ctx) // the loop sees it
		}
	}
}

// removeSession takes the ended session away.
func (c *Client) removeSession(s *Session) {
	c.publishSession(nil)
	cause := context.Cause(s.ctx)
	switch {
	case errors.Is(cause, ErrAuthFailed):
		c.cancel(cause)
	case !errors.Is(cause, ErrClosed):
		c.tel.sessionLost()
		c.log.Warn("session lost", "session", fmt.Sprintf("%#x", s.ID()), "epoch", s.epoch, "cause", cause)
	}
}

// checkGrantedTimeout compares the granted session timeout with what was asked for, once.
func (c *Client) checkGrantedTimeout(t time.Duration) {
	c.warn.Do(func() {
		if t != c.cfg.SessionTimeout {
			c.log.Warn("the servers grant another session timeout", "asked", c.cfg.SessionTimeout, "granted", t)
		}
		if t < 8*time.Second {
			c.log.Warn("the session timeout is short: it should be at least 4 server ticks, 8 s with the usual tick", "granted", t)
		}
	})
}

// Get reads a node's data, on the present session.
func (c *Client) Get(ctx context.Context, path string) (data []byte, st Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { data, st, err = s.Get(ctx, path); return err })
	return data, st, Wrap("get", path, err)
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { st, err = s.Exists(ctx, path); return err })
	return st, Wrap("exists", path, err)
}

// Children lists the names below a node, in no order.
func (c *Client) Children(ctx context.Context, path string) (names []string, st Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { names, st, err = s.Children(ctx, path); return err })
	return names, st, Wrap("list", path, err)
}

// CreateIfMissing creates a node unless there is one; see Session.CreateIfMissing.
func (c *Client) CreateIfMissing(ctx context.Context, path string, data []byte, mode Mode) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.CreateIfMissing(ctx, path, data, mode) })
	return Wrap("create", path, err)
}

// DeleteIfPresent deletes a node if there is one; see Session.DeleteIfPresent.
func (c *Client) DeleteIfPresent(ctx context.Context, path string) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.DeleteIfPresent(ctx, path) })
	return Wrap("delete", path, err)
}

// Create creates a node; see Session.Create. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode Mode) error {
	return c.onceOnSession(ctx, "create", path, func(s *Session) error { return s.Create(ctx, path, data, mode) })
}

// MakeDirs makes a directory and those above it; see Session.MakeDirs.
func (c *Client) MakeDirs(ctx context.Context, dir string) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.MakeDirs(ctx, dir) })
	return Wrap("create", dir, err)
}

// Set writes a node's data; see Session.Set. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (st Stat, err error) {
	err = c.onceOnSession(ctx, "set", path, func(s *Session) error { st, err = s.Set(ctx, path, data, version); return err })
	return st, err
}

// Delete deletes a node; see Session.Delete. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.onceOnSession(ctx, "delete", path, func(s *Session) error { return s.Delete(ctx, path, version) })
}

// Multi runs a transaction; see Session.Multi. It does not wait for a session when a condition of
// this process's own refuses it already.
func (c *Client) Multi(ctx context.Context, ops ...Op) (rs []OpResult, err error) {
	if err := checkConditions(ops); err != nil {
		return nil, err
	}
	s, err := c.Session(ctx)
	if err != nil {
		return nil, err
	}
	return s.Multi(ctx, ops...)
}

// repeatOnSessions runs f, which may be repeated, on session after session until one answers.
func (c *Client) repeatOnSessions(ctx context.Context, f func(*Session) error) error {
	for {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		err = f(s)
		if err != nil && ctx.Err() != nil {
			return Ended(ctx)
		}
		if !errors.Is(err, ErrSessionLost) {
			return err
		}
	}
}

// onceOnSession runs f on the present session.
func (c *Client) onceOnSession(ctx context.Context, op, path string, f func(*Session) error) error {
	s, err := c.Session(ctx)
	if err != nil {
		return Wrap(op, path, err)
	}
	return Wrap(op, path, f(s))
}
