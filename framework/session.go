package framework

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Session is one ZooKeeper session of a client, with the proof that it lives.
//
// Guarantee: while the session is awake, Context is done before any server can give away what
// belongs to this session, as long as this process is scheduled and its clock and the servers' run
// at the same rate within 2 %. Not guaranteed: that a process which was stopped and continued
// notices the end before it acts. Use fencing tokens to reject its writes.
//
// A session is awake, and proves its life, while it has a hold, or a recipe expects a grant soon,
// and for a session timeout after that. Otherwise it is dormant and sends no proofs. A dormant
// session may have expired on the servers without noticing. It ends when a server says that it has
// expired, when it is suspended for a session timeout, when credentials are refused, and by Close.
// It always wakes before a recipe grants anything on it. With Config.AlwaysAwake it is always
// awake.
//
// Operations on an ended session return an error that wraps ErrSessionLost. Operations on a
// suspended session wait. Paths are below the client's root.
type Session struct {
	setup  sessionSetup
	epoch  int64
	zk     *zkConn
	ctx    context.Context
	cancel context.CancelCauseFunc
	alarm  clock.Alarm

	transport *link.Transport
	caller    *caller
	watches   sharedWatches
	holds     heldNodes
	shared    sharedValues
	tasks     background.Tasks

	deletions pendingDeletions
	owned     ownedBytes
	bulk      bulkReads

	writesAnswered atomic.Int64

	mu    sync.Mutex
	id    int64
	state State
	ready chan struct{} // closed while connected
	lease sessionLease
	dormancy
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
	requests *atomic.Int64 // counts those of all sessions
	measures sessionMeasures

	stateChanged     func(StateChange)
	sessionConnected func(*Session)      // called each time that the session is connected
	timeoutGranted   func(time.Duration) // called for each connection
}

// sessionMeasures is the telemetry of sessions.
type sessionMeasures interface {
	sessionBegan()
	sessionEnters(before, after State)
	leaseExtended(left time.Duration)
	heartbeatEnded(took time.Duration, err error)
	countRequest(wire.Op, link.Reply)
}

func newSession(setup sessionSetup, epoch int64) (*Session, error) {
	s := &Session{setup: setup, epoch: epoch, ready: make(chan struct{}),
		dormancy: newDormancy(setup.cfg.AlwaysAwake || setup.cfg.ObserverMasters)}
	var base context.Context
	base, s.cancel = context.WithCancelCause(context.Background())
	s.ctx = sessionContext{base, s}
	s.lease.extraHeartbeats = setup.cfg.extraHeartbeats()
	s.shared.init()
	s.transport = link.New(link.Config{
		Dial: setup.dial, Now: setup.clock.Now, Failed: setup.servers.recordFailure,
		HandshakeTimeout: s.handshakeTimeout, Answered: s.countAnswer, Event: s.watches.onWatchEvent,
	})
	s.caller = &caller{transport: s.transport, ns: setup.ns, cfg: setup.cfg, session: s.ctx,
		whenConnected: s.connectedChannel, sessionID: s.ID, deleted: s.owned.removeDeleted, requests: setup.requests}
	s.watches.init(s.caller)
	s.bulk.init(s.caller)
	s.owned.init(s.caller, setup.clock, s.Timeout)
	s.deletions.init(s.caller, &s.owned, setup.log)
	s.alarm = setup.clock.NewAlarm(s.onAlarm)
	pause := func() error {
		return setup.servers.pauseBetweenRounds(s.ctx, s.transport.Context(), s.LeaseRemaining())
	}
	var err error
	if s.zk, err = openZK(setup.cfg, s.transport, setup.servers, setup.log, pause); err != nil {
		s.alarm.Stop()
		return nil, fmt.Errorf("framework: open a session: %w", err)
	}
	setup.measures.sessionBegan()
	return s, nil
}

// handshakeTimeout bounds the wait for a server that accepts a connection and then does not answer.
// Only a quarter of T may be left of a suspended session's lease, and there must be time for
// another server.
func (s *Session) handshakeTimeout() time.Duration {
	timeout := s.Timeout()
	if timeout == 0 { // none was granted yet
		timeout = s.setup.cfg.SessionTimeout
	}
	return max(s.setup.cfg.DialTimeout, min(timeout/3, 3*time.Second), timeout/8)
}

// Epoch counts the client's sessions from 1. The grants of earlier epochs have ended.
func (s *Session) Epoch() int64 { return s.epoch }

// ID is the servers' number of the session.
func (s *Session) ID() SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SessionID(s.id)
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

// sessionParent is a session as the parent of lifetimes. Lifetimes read the clock themselves, so
// BareContext leaves that out.
type sessionParent Session

func (p *sessionParent) Err() error { return (*Session)(p).Err() }

func (p *sessionParent) BareContext() context.Context { return p.ctx.(sessionContext).Context }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err is nil while the session stands, and then the reason for its end. It reads the clock, so
// that it is right at once in a process that was stopped and continued.
func (s *Session) Err() error {
	s.checkLease()
	return context.Cause(s.ctx)
}

// LeaseRemaining is the time until the lease lapses and the session's context is done, unless the
// ensemble acknowledges another proof of life before that. It is 0 for an ended and for a dormant
// session.
func (s *Session) LeaseRemaining() time.Duration {
	if s.Err() != nil {
		return 0
	}
	now := s.setup.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.lease.until-now)
}

// checkLease ends a session whose lease has lapsed, or makes it dormant if it has no holds.
func (s *Session) checkLease() {
	s.mu.Lock()
	now := s.setup.clock.Now()
	lapsed := s.lease.until != 0 && now >= s.lease.until
	late := now - s.lease.until
	if lapsed && s.holdCount == 0 {
		lapsed = false
		s.lease.endLease()
	}
	s.mu.Unlock()
	if lapsed {
		s.endWith(fmt.Errorf("%w: its proof of life lapsed %v ago", ErrSessionLost, late.Round(time.Millisecond)))
	}
}

// onAlarm checks the lease when the alarm rings. An alarm that has rung before the end of the lease
// is set again.
func (s *Session) onAlarm() {
	s.checkLease()
	s.setAlarm()
}

// setAlarm sets the alarm to the end of the lease, also if that changes meanwhile.
func (s *Session) setAlarm() {
	for set := time.Duration(0); ; {
		s.mu.Lock()
		until := s.lease.until
		s.mu.Unlock()
		if until == set || until == 0 {
			return
		}
		s.alarm.Set(until)
		set = until
	}
}

// endWith ends the session with a cause; only the first call counts.
func (s *Session) endWith(cause error) {
	s.cancel(cause)
	s.alarm.Stop()
}

// extendLease changes the lease by move and sets the alarm to its new end. A lease that has lapsed
// is not revived, even if the proof arrives before the alarm has fired.
func (s *Session) extendLease(move func(l *sessionLease, now time.Duration)) {
	s.mu.Lock()
	now, before := s.setup.clock.Now(), s.lease.until
	if before != 0 && now >= before {
		s.mu.Unlock()
		s.checkLease()
		return
	}
	move(&s.lease, now)
	until := s.lease.until
	if before == 0 && until != 0 {
		s.signalLeaseBegun(now)
	}
	s.mu.Unlock()
	if until != before {
		s.setAlarm()
		s.setup.watchdog.leaseExtended(s.epoch, until)
		if before != 0 && until != 0 {
			s.setup.measures.leaseExtended(before - now)
		}
	}
}

// stayAwake makes the session prove its life until maySleep is called with the same counter, and
// for a session timeout after that. The counter is one of dormancy's.
func (s *Session) stayAwake(counter *int) {
	s.mu.Lock()
	*counter++
	asleep := s.lease.until == 0
	s.mu.Unlock()
	if asleep {
		s.wakeLoop()
	}
}

// maySleep undoes one stayAwake.
func (s *Session) maySleep(counter *int) {
	now := s.setup.clock.Now()
	s.mu.Lock()
	*counter--
	s.lastNeeded = now
	s.mu.Unlock()
}

// beginHolding counts one hold. It first wakes a dormant session, and waits for its lease until ctx
// ends.
func (s *Session) beginHolding(ctx context.Context) error {
	if s.countHold() {
		return nil
	}
	s.stayAwake(&s.awakeRefs)
	defer s.maySleep(&s.awakeRefs)
	for {
		s.mu.Lock()
		awake := s.leaseBegun
		s.mu.Unlock()
		if err := s.Err(); err != nil {
			return err
		}
		if s.countHold() {
			return nil
		}
		select {
		case <-awake:
		case <-ctx.Done():
			return s.caller.callEnded(ctx)
		case <-s.Done():
			return s.Err()
		}
	}
}

// countHold counts a hold if the session has a lease. From then on the session ends with its lease.
func (s *Session) countHold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.until == 0 || s.setup.clock.Now() >= s.lease.until || s.ctx.(sessionContext).Context.Err() != nil {
		return false
	}
	s.holdCount++
	return true
}

// endHolding undoes one beginHolding.
func (s *Session) endHolding() {
	s.maySleep(&s.holdCount)
}

// isAwake reports whether the session has a lease.
func (s *Session) isAwake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.until != 0
}

// fallAsleep makes the session dormant if it was not needed for a session timeout. It reports
// whether the session is dormant and not needed.
func (s *Session) fallAsleep() bool {
	now := s.setup.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isNeeded() {
		return false
	}
	if now-s.lastNeeded >= s.lease.timeout {
		s.lease.endLease()
	}
	return s.lease.until == 0
}

// countAnswer counts the answers to requests that need the ensemble's leader: writes and syncs.
func (s *Session) countAnswer(op wire.Op, r link.Reply) {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpDelete, wire.OpSetData,
		wire.OpMulti, wire.OpSync:
		if r.Err == nil && r.Code == wire.OK {
			s.writesAnswered.Add(1)
		}
	}
	s.setup.measures.countRequest(op, r)
}

// recordSuspension records when the connection was lost.
func (s *Session) recordSuspension() {
	now := s.setup.clock.Now()
	s.mu.Lock()
	s.suspendedSince = now
	s.mu.Unlock()
}

// suspensionLeft returns how long a suspended session still waits for a connection. ends is false
// for a session that is not suspended, which waits without a limit.
func (s *Session) suspensionLeft() (left time.Duration, ends bool) {
	now := s.setup.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.suspendedSince+s.lease.timeout, s.lease.until) - now, s.state == Suspended
}

// GuardCommand announces a command that this process runs because it holds something. Call it under
// the hold, before the command is started. If this process dies before Started is called, the
// session lasts until its timeout.
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
	s.mu.Lock()
	now := s.lease.until
	s.mu.Unlock()
	if now < until { // meanwhile a server has granted a smaller timeout
		g.feed.leaseShortened(s.epoch, now)
	}
	return g
}

// enterState moves to a state and publishes it to the client's subscribers.
func (s *Session) enterState(state State, cause error) {
	s.mu.Lock()
	if s.state == state || s.state == Lost {
		s.mu.Unlock()
		return
	}
	if s.state == Connected {
		s.ready = make(chan struct{})
	}
	before := s.state
	s.state = state
	if state == Connected {
		close(s.ready)
	}
	id := s.id
	s.mu.Unlock()
	s.logState(before, state, id, cause)
	s.setup.measures.sessionEnters(before, state)
	s.setup.stateChanged(StateChange{Epoch: s.epoch, SessionID: SessionID(id), State: state, Cause: cause})
	if state == Connected {
		s.setup.sessionConnected(s)
	}
}

// logState logs a change of the state. Only a loss that no call of the client has asked for is a
// warning.
func (s *Session) logState(before, state State, id int64, cause error) {
	level, text := slog.LevelInfo, "session "+state.String()
	switch {
	case state == Lost && errors.Is(cause, ErrSessionLost):
		level = slog.LevelWarn
	case state == Lost:
		text = "session closed"
	}
	attributes := []any{"session", fmt.Sprintf("%#x", id), "epoch", s.epoch, "before", before.String()}
	if cause != nil {
		attributes = append(attributes, "cause", cause)
	}
	s.setup.log.Log(context.Background(), level, text, attributes...)
}

// connectedChannel is closed while the session is connected.
func (s *Session) connectedChannel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// sessionContext is a session's context. Its Err checks the clock first.
type sessionContext struct {
	context.Context
	s *Session
}

func (c sessionContext) Err() error {
	c.s.checkLease()
	return c.Context.Err()
}
