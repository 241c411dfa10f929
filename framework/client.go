package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/backgroundlog"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/cleanup"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/onsession"
)

// Client keeps a ZooKeeper session for a program and its recipes, and opens a new one when one is
// lost. It is safe for concurrent use.
type Client struct {
	cfg     Config
	userLog *slog.Logger
	log     *slog.Logger // hands records over in the background
	logging backgroundlog.Log
	clock   clock.Clock
	servers *serverList
	tel     *telemetry
	changes *broadcast[StateChange]
	sent    atomic.Int64 // requests
	dial    DialFunc     // of WithDialer, or nil

	setup    sessionSetup // of each session
	followed followedNodes

	ctx     context.Context // done when Close was called or the client was refused
	cancel  context.CancelCauseFunc
	start   sync.Once
	stopped chan struct{} // closed when no goroutine is left
	left    error         // once stopped: why the servers may still have the session, or nil

	mu      sync.Mutex
	granted time.Duration // the smallest session timeout that a server has granted
	session *Session
	changed chan struct{} // closed and replaced when session changes
	cause   error         // of the latest suspension or loss of a session
}

// New returns a client that does not connect before Start, so that a program can be put together
// while ZooKeeper is down. Connect calls New and Start. The error wraps ErrInvalid.
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
			return nil, fmt.Errorf("%w: %w", errInvalidConfig, err)
		}
	}
	for _, credential := range cfg.Auth {
		if credential.readableFile != "" {
			o.log.Warn("everybody on this machine can read the credentials; chmod 600 their file", "file",
				credential.readableFile)
		}
	}
	c := &Client{
		cfg: cfg, userLog: o.log, clock: o.clock, tel: o.tel,
		changes: newBroadcast[StateChange](), stopped: make(chan struct{}), changed: make(chan struct{}),
	}
	if o.dialed {
		c.dial = o.dial
	}
	c.log = c.logging.NewLogger(o.log)
	c.servers = newServerList(cfg, !o.dialed, c.log)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.setup = sessionSetup{
		cfg: cfg, ns: namespace(cfg.Root), log: c.log, clock: o.clock, dial: o.dial, servers: c.servers,
		stateChanged: c.recordState, sessionConnected: c.publishSession, timeoutGranted: c.checkGrantedTimeout,
		requests: &c.sent, measures: o.tel,
	}
	c.followed = followedNodes{cfg: cfg, log: c.log, onSessions: c.repeatOnSessions, nodes: map[string]*followedNode{}}
	if o.watchdog {
		if o.dialed {
			return nil, invalidConfig("WithWatchdog: another process cannot make the connections of WithDialer")
		}
		var err error
		if c.setup.watchdog, c.setup.dial, err = newWatchdogFeed(cfg, o.dial, o.clock, c.log); err != nil {
			return nil, fmt.Errorf("%w: %w", errInvalidConfig, err)
		}
	}
	return c, nil
}

// Connect returns a client with a session that is proven to be alive. It tries every server until
// ctx ends; the error, a *ConnectError, then lists each server with its last failure, and the
// client closes its connection in the background, within seconds. Refused credentials end Connect
// at once.
func Connect(ctx context.Context, cfg Config, opts ...Option) (*Client, error) {
	c, err := New(cfg, opts...)
	if err != nil {
		return nil, err
	}
	c.Start()
	if _, err := c.Session(ctx); err != nil {
		c.beginClose()
		select { // not as a cleanup: the call does not outlive its context
		case <-c.stopped:
		case <-ctx.Done():
		}
		return nil, &ConnectError{Err: err, Servers: c.servers.lastFailures()}
	}
	return c, nil
}

// Start begins to connect, once, and does not wait.
func (c *Client) Start() {
	c.start.Do(func() { go c.openSessions() })
}

// Session returns a connected or suspended session, and waits for one while there is none. Its
// error wraps ErrClosed, ErrAuthFailed or the reason that ctx ended.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	for {
		s, changed := c.currentSession()
		if s != nil && s.Err() == nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, failure.Ended(ctx)
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	}
}

// currentSession is the client's session, or nil, and a channel that is closed when that changes.
func (c *Client) currentSession() (*Session, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.changed
}

// publishSession makes s, or nil, the client's session, unless s has ended or the client has a
// later session.
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

// Close ends the session and waits until all goroutines of the client have ended. The servers
// delete the session's nodes at once if one of them gets the close within a second, otherwise when
// the session has timed out. It may be called more than once.
//
// Close is a cleanup, see CleanupContext: it waits also if ctx has ended, so that a program which a
// signal ends leaves nothing behind. It returns nil when a server has closed the session, or if
// there is none. Otherwise the error wraps ErrUnconfirmed. If it wraps context.DeadlineExceeded,
// too, Close goes on in the background. An error without ErrUnconfirmed says that the handler of
// the log has not taken all records.
func (c *Client) Close(ctx context.Context) error {
	c.beginClose()
	ctx, cancel := c.CleanupContext(ctx)
	defer cancel()
	stopped := func() <-chan struct{} { return c.stopped }
	for _, ended := range []func() <-chan struct{}{stopped, c.followed.tasks.Done} {
		select {
		case <-ended():
		case <-ctx.Done():
			return closeError(failure.Ended(ctx))
		}
	}
	select {
	case <-c.logging.Done():
		return closeError(c.left)
	case <-ctx.Done(): // the session may be closed all the same
		return errors.Join(closeError(c.left),
			fmt.Errorf("framework: close: the log's handler has not taken all records: %w", failure.Ended(ctx)))
	}
}

// closeError returns the error of a Close that the servers have not confirmed for this reason, or
// nil if there is none.
func closeError(reason error) error {
	if reason == nil {
		return nil
	}
	return fmt.Errorf("framework: close: %w", failure.Unconfirmed(reason))
}

// beginClose ends the session in the background.
func (c *Client) beginClose() {
	c.cancel(ErrClosed)
	c.start.Do(func() { close(c.stopped) })
}

// CleanupContext returns the context of a cleanup: of a call that gives back what its caller has,
// and tells the servers. It has the values of ctx, and ends after Config.CleanupTimeout, or at the
// deadline of ctx if that still lies ahead. All cleanups of this module use it: Close,
// Lease.Release, Term.Resign, Membership.Leave and the others. Use it for your own last writes.
//
// A cleanup does not end with ctx otherwise: it mostly runs because ctx has ended, by a signal for
// example, and what it does not give back others wait for until the session times out. A deadline
// that has passed is such an end, and does not bound the cleanup either. Call cancel when the
// cleanup is done.
func (c *Client) CleanupContext(ctx context.Context) (within context.Context, cancel context.CancelFunc) {
	c.mu.Lock()
	bound := c.cfg.CleanupTimeout
	if c.granted > 0 {
		bound = min(bound, c.granted/cleanupsInTimeout)
	}
	c.mu.Unlock()
	return cleanup.Context(ctx, bound)
}

// FollowState yields the changes of the client's sessions from now on, in order, until ctx ends or
// the client is closed. In the latter case the end of its session is the last change. A slow reader
// gets all changes, too.
func (c *Client) FollowState(ctx context.Context) iter.Seq[StateChange] {
	next := c.changes.subscribe()
	return func(yield func(StateChange) bool) {
		for {
			select {
			case <-next.ready:
			case <-ctx.Done():
				return
			case <-c.stopped:
				if !next.isReady() { // that was the last change
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

// Follow yields the value of a node, now and after each change, across lost connections and
// sessions. A missing node is a value.
//
// Guarantee: the first value is at least as new as every write that was committed before the loop
// began. Each value is newer than the one before it, also if the node was deleted and created
// again. After an outage, the latest value follows. A slow reader skips to the latest value. When
// the loop ends, it leaves no goroutine and no watch.
//
// Not guaranteed: that the loop yields each value. After the servers were restored from a backup,
// the loop keeps the newer value that it has seen, and logs a warning: end all loops of this client
// over the node, and begin again.
//
// All loops over one path of a client share one watch and its reads. After a reconnect and on a new
// session, the client reads again after a random part of Config.FollowSpread.
//
// The loop ends without an error when ctx ends. Otherwise it yields the error that ends it last: it
// wraps ErrClosed, ErrAuthFailed, ErrNoAuth, ErrInvalid or ErrTooLarge.
func (c *Client) Follow(ctx context.Context, path string) iter.Seq2[NodeValue, error] {
	return func(yield func(NodeValue, error) bool) {
		err := c.followed.yieldValues(ctx, c.ctx, path, func(v NodeValue) bool { return yield(v, nil) })
		if err = failure.LoopEnd(ctx, "follow", path, err); err != nil {
			yield(NodeValue{}, err)
		}
	}
}

// Config returns the client's configuration, with the defaults filled in.
func (c *Client) Config() Config { return c.cfg }

// Status is a client's state at one moment.
type Status struct {
	// State is the present session's, Connecting while there is none.
	State State
	// Epoch and SessionID are the present session's, 0 while there is none.
	Epoch     int64
	SessionID SessionID
	// LeaseRemaining is how long the session's holds last if no server answers any more; see
	// Session.LeaseRemaining.
	LeaseRemaining time.Duration
	// Cause is the reason of the latest suspension or loss of a session, with the server of its
	// connection, also after the client has recovered. It is nil if no session was suspended or
	// lost.
	Cause error
	// Awake says that the session proves its life. A session that is not awake has no holds.
	Awake bool
	// Servers are the addresses that the client tries, each with its last failure since the client
	// last used it.
	Servers []ServerError
	// EphemeralBytes is the number of bytes that count towards Config.MaxEphemeralBytes.
	EphemeralBytes int
	// Requests counts the requests that the client has sent on all sessions, with repetitions and
	// without pings.
	Requests int64
}

// Status reports how the client is connected, or why it is not. It sends no request.
func (c *Client) Status() Status {
	status := Status{Servers: c.servers.lastFailures(), Requests: c.sent.Load()}
	c.mu.Lock()
	status.Cause = c.cause
	c.mu.Unlock()
	if s, _ := c.currentSession(); s != nil {
		status.State, status.Epoch, status.SessionID = s.State(), s.Epoch(), s.ID()
		status.LeaseRemaining, status.EphemeralBytes = s.LeaseRemaining(), s.owned.totalBytes()
		status.Awake = s.isAwake()
	}
	return status
}

// recordState publishes a change of the present session, and keeps its cause for Status.
func (c *Client) recordState(change StateChange) {
	if change.Cause != nil && !errors.Is(change.Cause, ErrClosed) {
		c.mu.Lock()
		c.cause = change.Cause
		c.mu.Unlock()
	}
	c.changes.publish(change)
}

// SetServers replaces the client's servers, as Config.Servers lists them at the start. It does not
// wait, and closes no connection: the client makes its next connection to one of the new servers.
// The error wraps ErrInvalid. A watchdog keeps the servers of New, and the one that the
// client is connected to.
func (c *Client) SetServers(list ...string) error {
	cfg := c.cfg
	cfg.Servers = list
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.servers.replaceServers(cfg.WithDefaults().Servers)
	return nil
}

// Logger returns the log of the client and its recipes, for events that no call returns.
func (c *Client) Logger() *slog.Logger { return c.userLog }

// openSessions opens session after session until the client is closed.
func (c *Client) openSessions() {
	defer close(c.stopped)
	defer c.setup.watchdog.close()
	var old sync.WaitGroup
	var latest *Session
	defer func() {
		old.Wait()
		if latest != nil {
			c.left = latest.unclosed()
		}
	}()
	back := newConnectPauses(c.cfg)
	for epoch := int64(1); c.ctx.Err() == nil; epoch++ {
		s, err := newSession(c.setup, epoch)
		if err != nil {
			c.cancel(err)
			return
		}
		stop := context.AfterFunc(c.ctx, func() { s.endWith(context.Cause(c.ctx)) })
		latest = s
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

// removeSession makes the client forget an ended session.
func (c *Client) removeSession(s *Session) {
	c.publishSession(nil)
	cause := context.Cause(s.ctx)
	switch {
	case errors.Is(cause, ErrAuthFailed):
		c.cancel(cause)
	case !errors.Is(cause, ErrClosed):
		c.tel.sessionLost()
	}
}

// checkGrantedTimeout logs how the granted session timeout differs from the configured one: for the
// first connection, and when a server grants less than the others before.
func (c *Client) checkGrantedTimeout(t time.Duration) {
	c.mu.Lock()
	isSmallest := c.granted == 0 || t < c.granted
	if isSmallest {
		c.granted = t
	}
	c.mu.Unlock()
	if !isSmallest {
		return
	}
	switch asked := c.cfg.SessionTimeout; {
	case t < asked:
		c.log.Warn("the servers grant a shorter session timeout", "asked", asked, "granted", t, "survived",
			longestInterruption(t, c.cfg.extraHeartbeats()).Truncate(time.Millisecond),
			"advice", "longer interruptions end holds: raise the servers' maxSessionTimeout, or configure a shorter "+
				"SessionTimeout")
	case t > asked:
		c.log.Info("the servers grant a longer session timeout, so they will notice a crash later", "asked",
			asked, "granted", t)
	}
	if t < 8*time.Second {
		c.log.Warn("the session timeout is short: it should be at least 4 server ticks, 8 s with the usual tick",
			"granted", t)
	}
}

// Get reads a node's data and Stat; see Session.Get. When the session is lost meanwhile, Get reads
// on the next one, and so do the client's other reads.
func (c *Client) Get(ctx context.Context, path string) (data []byte, stat Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { data, stat, err = s.Get(ctx, path); return err })
	return data, stat, failure.Wrap("get", path, err)
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (c *Client) Exists(ctx context.Context, path string) (stat Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { stat, err = s.Exists(ctx, path); return err })
	return stat, failure.Wrap("exists", path, err)
}

// Children lists the names below a node, in no order; see Session.Children.
func (c *Client) Children(ctx context.Context, path string) (names []string, stat Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { names, stat, err = s.Children(ctx, path); return err })
	return names, stat, failure.Wrap("list", path, err)
}

// ACL reads who may do what with a node; see Session.ACL.
func (c *Client) ACL(ctx context.Context, path string) (acl []ACL, stat Stat, err error) {
	err = c.repeatOnSessions(ctx, func(s *Session) error { acl, stat, err = s.ACL(ctx, path); return err })
	return acl, stat, failure.Wrap("read ACL of", path, err)
}

// SetACL gives a node another ACL; see Session.SetACL.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.SetACL(ctx, path, acl) })
	return failure.Wrap("set ACL of", path, err)
}

// Sync waits until the client's server has applied everything that was committed before the call;
// see Session.Sync. What the client reads afterwards on the same session is at least as new.
func (c *Client) Sync(ctx context.Context, path string) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.Sync(ctx, path) })
	return failure.Wrap("sync", path, err)
}

// CreateIfMissing creates a node unless it exists; see Session.CreateIfMissing.
func (c *Client) CreateIfMissing(ctx context.Context, path string, data []byte, mode Mode) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.CreateIfMissing(ctx, path, data, mode) })
	return failure.Wrap("create", path, err)
}

// DeleteIfPresent deletes a node if it exists; see Session.DeleteIfPresent.
func (c *Client) DeleteIfPresent(ctx context.Context, path string) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.DeleteIfPresent(ctx, path) })
	return failure.Wrap("delete", path, err)
}

// Create creates a node; see Session.Create. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode Mode) error {
	return c.onceOnSession(ctx, "create", path, func(s *Session) error { return s.Create(ctx, path, data, mode) })
}

// MakeDirs makes a directory and those above it; see Session.MakeDirs.
func (c *Client) MakeDirs(ctx context.Context, dir string) error {
	err := c.repeatOnSessions(ctx, func(s *Session) error { return s.MakeDirs(ctx, dir) })
	return failure.Wrap("create", dir, err)
}

// Set writes a node's data; see Session.Set. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (stat Stat, err error) {
	err = c.onceOnSession(ctx, "set", path,
		func(s *Session) error { stat, err = s.Set(ctx, path, data, version); return err })
	return stat, err
}

// Delete deletes a node; see Session.Delete. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.onceOnSession(ctx, "delete", path, func(s *Session) error { return s.Delete(ctx, path, version) })
}

// Multi runs a transaction on the present session; see Session.Multi. A session lost meanwhile is
// ErrSessionLost, and ErrOutcomeUnknown if the request was sent. When a guard's hold has ended,
// Multi returns a *TxError without waiting for a session.
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

// repeatOnSessions runs f, which must be safe to repeat, on session after session, as long as it
// fails because its session is lost.
func (c *Client) repeatOnSessions(ctx context.Context, f func(*Session) error) error {
	return onsession.Repeat(ctx, c.Session, f, func(error) bool { return false },
		func(ctx context.Context, _ time.Time) error { return backoff.Pause(ctx, c.cfg.RetryBase) })
}

// onceOnSession runs f on the present session.
func (c *Client) onceOnSession(ctx context.Context, op, path string, f func(*Session) error) error {
	s, err := c.Session(ctx)
	if err != nil {
		return failure.Wrap(op, path, err)
	}
	return failure.Wrap(op, path, f(s))
}
