package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
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
	client *Client
	epoch  int64
	mon    *link.Monitor
	zk     *zkConn
	ctx    context.Context
	cancel context.CancelCauseFunc
	alarm  Alarm

	watches sharedWatches
	holds   heldNodes
	shared  sharedValues
	tasks   background.Tasks

	deletions pendingDeletions
	owned     ownedBytes

	mu    sync.Mutex
	id    int64
	state State
	ready chan struct{} // closed while connected
	lease sessionLease
}

func newSession(c *Client, epoch int64) (*Session, error) {
	s := &Session{client: c, epoch: epoch, ready: make(chan struct{})}
	var base context.Context
	base, s.cancel = context.WithCancelCause(context.Background())
	s.ctx = sessionContext{base, s}
	s.watches.init()
	s.shared.init()
	s.mon = link.New(link.Config{
		Dial: c.dial, Now: c.clock.Now, Failed: c.servers.recordFailure,
		HandshakeTimeout: max(c.cfg.DialTimeout, c.cfg.SessionTimeout/3),
	})
	s.watches.send = s.mon.Send
	s.deletions.init(s)
	s.owned.init(s)
	s.alarm = c.clock.NewAlarm(func() { s.checkLease() })
	var err error
	if s.zk, err = openZK(s.ctx, c.cfg, s.mon, c.servers, c.log, s.watches.onLibraryEvent); err != nil {
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

// parentContext is the session's context for lifetimes within it, which read the clock themselves.
func (s *Session) parentContext() context.Context { return s.ctx.(sessionContext).Context }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err is nil while the session's proof of life stands, else why it ended. It reads the clock, so
// that it is right at once in a process that was stopped and continued.
func (s *Session) Err() error {
	s.checkLease()
	return context.Cause(s.ctx)
}

// LeaseRemaining is the time until the proof of life lapses, and the session's context is done, unless
// the ensemble acknowledges it again before. It is never negative.
func (s *Session) LeaseRemaining() time.Duration {
	if !s.checkLease() {
		return 0
	}
	now := s.client.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.lease.until-now)
}

// checkLease ends the session if its proof of life has lapsed, and reports whether it stands.
func (s *Session) checkLease() bool {
	now := s.client.clock.Now()
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
		s.client.follower.leaseExtended(s.epoch, until)
	}
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
	s.client.changes.publish(StateChange{Epoch: s.epoch, SessionID: id, State: state, Cause: cause})
	if state == Connected {
		s.client.publishSession(s)
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

// callEnded tells why a call is over whose context is done, perhaps since the session has ended.
func (s *Session) callEnded(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return Ended(ctx)
}

// waitConnected waits until the session is connected.
func (s *Session) waitConnected(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.callEnded(ctx)
	}
	select {
	case <-s.connectedChannel():
		return nil
	case <-ctx.Done():
		return s.callEnded(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// repeatUntilKnown runs f, which must be safe to repeat, until its outcome is known: each time that the
// connection is lost, it waits for the next one.
func repeatUntilKnown[T any](ctx context.Context, s *Session, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, s, f, func(err error) bool { return errors.Is(err, ErrSuspended) || wasNotExecuted(err) })
}

// repeatUntilSent runs f until its request was sent. A request that no server has seen, or that the servers have put off, is repeated.
func repeatUntilSent[T any](ctx context.Context, s *Session, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, s, f, wasNotExecuted)
}

// wasNotExecuted tells that a request has certainly not been carried out and may be sent again as it is.
func wasNotExecuted(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, errQueueFull) || errors.Is(err, ErrOverloaded)
}

// repeatWhile runs f as long as its error is one to be repeated, ctx lasts and the session stands.
func repeatWhile[T any](ctx context.Context, s *Session, f func(a requester) (T, error), repeatable func(error) bool) (T, error) {
	var zero T
	back := newBackoff(s.client.cfg)
	for tries := 1; ; tries++ {
		if err := s.waitConnected(ctx); err != nil {
			return zero, err
		}
		v, err := f(requester{ctx: ctx, s: s})
		if !repeatable(err) {
			return v, err
		}
		switch {
		case errors.Is(err, errQueueFull):
			err = s.waitForQueueRoom(ctx)
		case tries == 1 && errors.Is(err, ErrSuspended): // most often the connection has just been replaced
			err = nil
		default:
			err = s.pauseBeforeRetry(ctx, back)
		}
		if err != nil {
			return zero, err
		}
	}
}

// waitForQueueRoom waits until the connection takes more requests, or has ended.
func (s *Session) waitForQueueRoom(ctx context.Context) error {
	select {
	case <-s.mon.Room():
		return nil
	case <-ctx.Done():
		return s.callEnded(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// pauseBeforeRetry waits before the next try.
func (s *Session) pauseBeforeRetry(ctx context.Context, back *Backoff) error {
	t := time.NewTimer(back.nextPause())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return s.callEnded(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
