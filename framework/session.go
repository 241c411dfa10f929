package framework

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/link"
)

// Session is one ZooKeeper session of a client, with the proof that it lives.
//
// Guarantee: Context is done before any server can give away what belongs to this session, as long
// as this process is scheduled and its clock and the servers' run at the same rate within 2 %.
// Not guaranteed: that a process which was stopped and continued notices before it acts; that is
// what fencing tokens are for.
//
// Its operations end with an error that wraps ErrSessionLost once the session has ended, and wait
// while it is suspended. Paths are below the client's root.
type Session struct {
	setup  sessionSetup
	epoch  int64
	zk     *zkConn
	ctx    context.Context
	cancel context.CancelCauseFunc
	alarm  clock.Alarm

	transport *transport
	watches   sharedWatches
	holds     heldNodes
	shared    sharedValues
	tasks     background.Tasks

	deletions pendingDeletions
	owned     ownedBytes

	mu    sync.Mutex
	id    int64
	state State
	ready chan struct{} // closed while connected
	lease sessionLease
}

// sessionSetup is what a session needs of its client.
type sessionSetup struct {
	cfg      Config
	ns       namespace
	log      *slog.Logger
	clock    clock.Clock
	dial     DialFunc
	servers  *serverList
	watchdog *watchdogFeed // nil without a watchdog

	stateChanged   func(StateChange)
	connected      func(*Session)      // called each time that the session is connected
	timeoutGranted func(time.Duration) // called for the first connection
}

func newSession(setup sessionSetup, epoch int64) (*Session, error) {
	s := &Session{setup: setup, epoch: epoch, ready: make(chan struct{})}
	var base context.Context
	base, s.cancel = context.WithCancelCause(context.Background())
	s.ctx = sessionContext{base, s}
	s.shared.init()
	mon := link.New(link.Config{
		Dial: setup.dial, Now: setup.clock.Now, Failed: setup.servers.recordFailure,
		HandshakeTimeout: max(setup.cfg.DialTimeout, setup.cfg.SessionTimeout/3),
	})
	s.transport = &transport{mon: mon, ns: setup.ns, cfg: setup.cfg, session: s.ctx, connected: s.connectedChannel, sessionID: s.ID, deleted: s.owned.removeDeleted}
	s.watches.init(s.transport)
	s.owned.init(s.transport, setup.clock, s.Timeout)
	s.deletions.init(s.transport, &s.owned, setup.log)
	s.alarm = setup.clock.NewAlarm(func() { s.checkLease() })
	var err error
	if s.zk, err = openZK(s.ctx, setup.cfg, mon, setup.servers, setup.log, s.watches.onLibraryEvent); err != nil {
		s.alarm.Stop()
		return nil, fmt.Errorf("framework: open a session: %w", err)
	}
	return s, nil
}

// Epoch counts the client's sessions from 1: what was granted in another epoch is gone.
func (s *Session) Epoch() int64 { return s.epoch }

// ID is the server's number of the session.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout is the smallest session timeout that a server has granted to the session.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.timeout
}

// State is the session's present state.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Context is done when the session has ended; its cause wraps ErrSessionLost or ErrClosed.
func (s *Session) Context() context.Context { return s.ctx }

// sessionParent is a session as the parent of lifetimes, which read the clock themselves.
type sessionParent Session

func (p *sessionParent) Err() error { return (*Session)(p).Err() }

func (p *sessionParent) BareContext() context.Context { return p.ctx.(sessionContext).Context }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err is nil while the session's proof of life stands, else why it ended. It reads the clock, so
// that it is right at once in a process that was stopped and continued.
func (s *Session) Err() error {
	s.checkLease()
	return context.Cause(s.ctx)
}

// LeaseRemaining is the time until the proof of life lapses, and the session's context is done, unless
// the ensemble acknowledges it again before. It is 0 then.
func (s *Session) LeaseRemaining() time.Duration {
	if !s.checkLease() {
		return 0
	}
	now := s.setup.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.lease.until-now)
}

// checkLease ends the session if its proof of life has lapsed, and reports whether it stands.
func (s *Session) checkLease() bool {
	now := s.setup.clock.Now()
	s.mu.Lock()
	lapsed := s.lease.until != 0 && now >= s.lease.until
	late := now - s.lease.until
	s.mu.Unlock()
	if lapsed {
		s.endWith(fmt.Errorf("%w: its proof of life lapsed %v ago", ErrSessionLost, late))
	}
	return !lapsed
}

// endWith ends the session with a cause; only the first call counts.
func (s *Session) endWith(cause error) {
	s.cancel(cause)
	s.alarm.Stop()
}

// extendLease moves the lease on and re-arms the alarm. What has lapsed stays so, even if the proof
// arrives before the alarm was heard.
func (s *Session) extendLease(move func(*sessionLease)) {
	if !s.checkLease() {
		return
	}
	s.mu.Lock()
	before := s.lease.until
	move(&s.lease)
	until := s.lease.until
	s.mu.Unlock()
	if until != before {
		s.alarm.Set(until)
		s.setup.watchdog.leaseExtended(s.epoch, until)
	}
}

// GuardCommand announces a command that the session's holds allow. To be called before the command is started; if
// this process dies between that and Started, the session lasts until its timeout.
func (s *Session) GuardCommand() *CommandGuard {
	g := &CommandGuard{feed: s.setup.watchdog}
	if g.feed == nil {
		return g
	}
	g.id = g.feed.keeper.BeginCommand(s.epoch)
	s.mu.Lock()
	until := s.lease.until
	s.mu.Unlock()
	g.feed.leaseExtended(s.epoch, until)
	return g
}

// enterState moves to a state and tells the client's subscribers.
func (s *Session) enterState(state State, cause error) {
	s.mu.Lock()
	if s.state == state || s.state == Lost {
		s.mu.Unlock()
		return
	}
	if s.state == Connected {
		s.ready = make(chan struct{})
	}
	s.state = state
	if state == Connected {
		close(s.ready)
	}
	id := s.id
	s.mu.Unlock()
	s.setup.stateChanged(StateChange{Epoch: s.epoch, SessionID: id, State: state, Cause: cause})
	if state == Connected {
		s.setup.connected(s)
	}
}

// connectedChannel is closed while the session is connected.
func (s *Session) connectedChannel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// sessionContext is a session's context: asked for its error, it checks the clock first.
type sessionContext struct {
	context.Context
	s *Session
}

func (c sessionContext) Err() error {
	c.s.checkLease()
	return c.Context.Err()
}
