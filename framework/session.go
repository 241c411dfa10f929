package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

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

	watches watches
	holds   holds
	shared  shared
	tasks   tasks

	deletions deletions
	owned     owned

	mu    sync.Mutex
	id    int64
	state State
	ready chan struct{} // closed while connected
	lease lease
}

func newSession(c *Client, epoch int64) (*Session, error) {
	s := &Session{client: c, epoch: epoch, ready: make(chan struct{})}
	var base context.Context
	base, s.cancel = context.WithCancelCause(context.Background())
	s.ctx = proven{base, s}
	s.watches.init()
	s.shared.init()
	s.mon = link.New(link.Config{
		Dial: c.dial, Now: c.clock.Now, Failed: c.servers.fail,
		HandshakeTimeout: max(c.cfg.DialTimeout, c.cfg.SessionTimeout/3),
	})
	s.watches.send = s.mon.Send
	s.deletions.init(s)
	s.owned.init(s)
	s.alarm = c.clock.NewAlarm(func() { s.standing() })
	var err error
	if s.zk, err = openZK(s.ctx, c.cfg, s.mon, c.servers, c.log, s.watches.fire); err != nil {
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

// ends is the session's context for lifetimes within it, which read the clock themselves.
func (s *Session) ends() context.Context { return s.ctx.(proven).Context }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err is nil while the session's proof of life stands, else why it ended. It reads the clock, so
// that it is right at once in a process that was stopped and continued.
func (s *Session) Err() error {
	s.standing()
	return context.Cause(s.ctx)
}

// LeaseRemaining is the time until the proof of life lapses, and the session's context is done, unless
// the ensemble acknowledges it again before. It is never negative.
func (s *Session) LeaseRemaining() time.Duration {
	if !s.standing() {
		return 0
	}
	now := s.client.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.lease.until-now)
}

// standing ends the session if its proof of life has lapsed, and tells whether it stands.
func (s *Session) standing() bool {
	now := s.client.clock.Now()
	s.mu.Lock()
	lapsed := s.lease.until != 0 && now >= s.lease.until
	late := now - s.lease.until
	s.mu.Unlock()
	if lapsed {
		s.end(fmt.Errorf("%w: its proof of life lapsed %v ago", ErrSessionLost, late))
	}
	return !lapsed
}

// end ends the session with a cause; only the first call counts.
func (s *Session) end(cause error) {
	s.cancel(cause)
	s.alarm.Stop()
}

// lived moves the lease on and re-arms the alarm. What has lapsed stays so, even if the proof
// arrives before the alarm was heard.
func (s *Session) lived(move func(*lease)) {
	if !s.standing() {
		return
	}
	s.mu.Lock()
	before := s.lease.until
	move(&s.lease)
	until := s.lease.until
	s.mu.Unlock()
	if until != before {
		s.alarm.Set(until)
		s.client.follower.proven(s.epoch, until)
	}
}

// enter moves to a state and tells the client's subscribers.
func (s *Session) enter(state State, cause error) {
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
	s.client.changes.put(StateChange{Epoch: s.epoch, SessionID: id, State: state, Cause: cause})
	if state == Connected {
		s.client.publish(s)
	}
}

// connected is closed while the session is connected.
func (s *Session) connected() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// proven is a session's context: asked for its error, it checks the clock first.
type proven struct {
	context.Context
	s *Session
}

func (c proven) Err() error {
	c.s.standing()
	return c.Context.Err()
}
