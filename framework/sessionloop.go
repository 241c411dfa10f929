package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// loopState is one state of a session's life; it returns the next, or nil at the end.
type loopState func(*Session) loopState

// runLoop runs the session, and returns when the session and all of its goroutines have ended.
func (s *Session) runLoop() {
	for st := loopState((*Session).waitForServer); st != nil; {
		st = st(s)
	}
	s.enterState(Lost, context.Cause(s.ctx))
	s.closeConnection()
}

// waitForServer waits for an established connection. A dormant session ends when it has waited for
// a session timeout: the servers have very likely expired it, and its calls must not wait longer
// for that news.
func (s *Session) waitForServer() loopState {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		st := s.transport.mon.Status()
		switch {
		case s.ctx.Err() != nil:
			return nil
		case st.Expired:
			s.setup.servers.markAnswered()
			s.endWith(fmt.Errorf("%w: expired by the server", ErrSessionLost))
			return nil
		case st.Up:
			return s.proveFirst(st)
		}
		if left, ends := s.suspensionLeft(); ends && left <= 0 {
			s.endWith(fmt.Errorf("%w: no connection for a session timeout", ErrSessionLost))
			return nil
		} else if ends {
			t.Reset(left)
		}
		select {
		case <-t.C:
		case <-s.transport.mon.Changed():
		case <-s.ctx.Done():
		}
	}
}

// proveFirst returns the state that proves the session's life on the connection just established,
// or only that its server answers while the session is dormant.
func (s *Session) proveFirst(st link.Status) loopState {
	return func(s *Session) loopState {
		s.onHandshake(st.Handshake)
		err := s.presentCredentials(st)
		if err == nil {
			err = s.proveOrAsk(st.Generation)
		}
		if err != nil {
			// a server that takes connections and then refuses requests is tried as seldom as one
			// that is down
			s.setup.servers.recordFailure(st.Handshake.Server, link.Unproven(err))
			return s.giveUpConnection(st.Generation, err)
		}
		s.setup.servers.markProven()
		s.watches.onReconnect() // before the first watch of this connection, which it must not end
		s.enterState(Connected, nil)
		return s.keepProving(st.Generation)
	}
}

// keepProving returns the state that lasts as long as the connection stands: it sends heartbeats
// while the session is awake. A proof that is overdue ends the connection, unless nothing is at
// stake and the servers are only slow: then the session falls asleep
// (docs/adr/0102-slow-servers-are-not-left-without-need.md).
func (s *Session) keepProving(generation int64) loopState {
	return func(s *Session) loopState {
		for {
			s.watchHeldNodes(generation)
			wait := s.waitWhileDormant
			if s.isAwake() {
				wait = s.waitForNextHeartbeat
			}
			err := wait(generation)
			if err == nil && !s.fallAsleep() {
				err = s.proveOrAsk(generation)
			}
			if err != nil && !(errors.Is(err, errOverdue) && s.sleepUnproven()) {
				return s.giveUpConnection(generation, err)
			}
		}
	}
}

// proveOrAsk proves the life of an awake session. It wakes a dormant session that is needed, if
// that is possible at once; otherwise it asks the server for an answer of the leader.
func (s *Session) proveOrAsk(generation int64) error {
	if s.isAwake() {
		return s.sendHeartbeat(generation)
	}
	if packet, wait, found := s.nextPacket(generation); found && wait == 0 {
		return s.beginLease(generation, packet)
	}
	return s.proofSync(generation)
}

// giveUpConnection cuts a connection and suspends the session. It returns nil if the session has
// ended.
func (s *Session) giveUpConnection(generation int64, cause error) loopState {
	if s.ctx.Err() != nil { // closeConnection may use the connection to close the session
		return nil
	}
	s.transport.mon.Cut(generation)
	if errors.Is(cause, ErrAuthFailed) {
		s.endWith(cause)
		return nil
	}
	if s.State() == Connected {
		s.noteSuspension()
		s.enterState(Suspended, fmt.Errorf("%s: %w", s.transport.mon.Status().Handshake.Server, cause))
	}
	return (*Session).waitForServer
}

// onHandshake takes in what the connect request's answer said. A lease that ends earlier than
// before, since the server grants a smaller timeout, may have lapsed by now.
func (s *Session) onHandshake(h link.Handshake) {
	s.mu.Lock()
	s.id = h.SessionID
	before := s.lease.until
	s.lease.phase = phaseOf(h.SessionID)
	s.lease.beginConnection(h.SentAt, h.Timeout)
	until := s.lease.until
	s.mu.Unlock()
	s.setup.timeoutGranted(h.Timeout)
	s.setup.watchdog.sessionConnected(s.epoch, h)
	if until < before {
		s.setAlarm()
		s.setup.watchdog.leaseShortened(s.epoch, until)
	}
}

// presentCredentials sends the credentials, which each new connection needs, and then lets requests
// pass.
func (s *Session) presentCredentials(st link.Status) error {
	ctx, cancel := context.WithTimeout(s.ctx, heartbeatTimeout(st.Handshake.Timeout, s.setup.cfg.furtherBack()))
	defer cancel()
	for _, c := range s.setup.cfg.Auth {
		if err := (requester{ctx, s.transport, true}).addAuth(c); err != nil {
			return err
		}
	}
	s.deletions.resendAll(func(calls []*link.Call) { s.transport.mon.Admit(st.Generation, calls...) })
	return nil
}

// waitForNextHeartbeat waits until the next heartbeat is due, or the connection is gone, or the
// session has ended.
func (s *Session) waitForNextHeartbeat(generation int64) error {
	pairs := s.transport.mon.PingPairs(generation)
	s.mu.Lock()
	t := time.NewTimer(s.lease.nextHeartbeat(pairs, s.setup.clock.Now()))
	s.mu.Unlock()
	defer t.Stop()
	for {
		if due, err := s.waitOnConnection(generation, t.C); due || err != nil {
			return err
		}
	}
}

// waitWhileDormant waits until the dormant session is needed and can be woken. The server may be
// cut off from its ensemble and leave requests unanswered: when a request has waited for a
// heartbeat's interval, it sends a sync.
func (s *Session) waitWhileDormant(generation int64) error {
	interval := heartbeatInterval(s.Timeout())
	for {
		_, wait, found := s.nextPacket(generation)
		if found && wait == 0 {
			return nil
		}
		if !found && s.setup.cfg.ObserverMasters { // only another connection can begin a lease
			return errOverdue
		}
		if !found {
			wait = interval
		}
		if err := s.waitForChange(generation, wait); err != nil {
			return err
		}
		if s.transport.mon.IsStuck(generation, s.setup.clock.Now()-interval) {
			if err := s.proofSync(generation); err != nil {
				return err
			}
		}
	}
}

// waitForChange waits until something may have changed, for no longer than d.
func (s *Session) waitForChange(generation int64, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	_, err := s.waitOnConnection(generation, t.C)
	return err
}

// waitOnConnection waits until something may have changed, or the time is due. It fails when the
// connection is gone, or the session has ended.
func (s *Session) waitOnConnection(generation int64, timer <-chan time.Time) (due bool, err error) {
	if !s.isCurrentConnection(generation) {
		return false, errConnectionGone
	}
	select {
	case <-timer:
		return true, nil
	case <-s.transport.mon.Changed():
	case <-s.wakeUps:
	case <-s.ctx.Done():
		return false, context.Cause(s.ctx)
	}
	return false, nil
}

// closeGrace is how long an ended session waits for a connection on which it can send its close.
const closeGrace = time.Second

// closeConnection closes the session on a server that can be reached, so that the servers delete
// its nodes at once. Then it ends the connection, and waits until the library has stopped.
func (s *Session) closeConnection() {
	if !s.transport.mon.Status().Up {
		s.deletions.endAll()
	}
	connected := s.waitForConnection()
	closeSent := make(chan struct{})
	go func() {
		defer close(closeSent)
		up := connected
		if up { // requests in flight get their answers first
			waitClosed(time.Second, s.tasks.Done())
		}
		for up && !s.serverAnswers() { // the library asks once, perhaps on a lost connection
			up = s.waitForConnection()
		}
		s.zk.close()
	}()
	if connected {
		waitClosed(2*time.Second, closeSent)
	}
	s.transport.mon.Close()
	s.deletions.endAll()
	<-closeSent
	<-s.zk.gone
	<-s.tasks.Done()
}

// unclosed returns why the servers may still have a session that Client.Close has ended, after
// runLoop: no server has answered its close. It returns nil for a session that was never opened.
func (s *Session) unclosed() error {
	st := s.transport.mon.Status()
	if !errors.Is(context.Cause(s.ctx), ErrClosed) || st.Handshake.SessionID == 0 || st.Closed || st.Expired {
		return nil
	}
	return fmt.Errorf("no server has closed session %#x: it lasts until its timeout of %v", st.Handshake.SessionID,
		s.Timeout())
}

// waitForConnection waits for the connection that is being made: the servers may open the session
// on it, or keep the session for another whole timeout. A session that was closed while it was
// suspended waits for a connection, too. A handshake that is under way after closeGrace gets
// closeGrace once more. It reports whether there is a connection.
func (s *Session) waitForConnection() (up bool) {
	closed := errors.Is(context.Cause(s.ctx), ErrClosed)
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	for more := true; ; {
		st := s.transport.mon.Status()
		suspended := closed && st.Handshake.SessionID != 0
		if st.Up || s.transport.mon.Over() || !st.Handshaking && !suspended {
			return st.Up
		}
		select {
		case <-s.transport.mon.Changed():
		case <-t.C:
			if !more || !s.transport.mon.Status().Handshaking {
				return s.transport.mon.Status().Up
			}
			more = false
			t.Reset(closeGrace)
		}
	}
}

// serverAnswers reports whether the server answers on the present connection. On a connection that
// was not admitted, which takes no requests, it assumes so.
func (s *Session) serverAnswers() bool {
	call, f := newRequest(wire.OpSync, &wire.PathRequest{Path: s.transport.ns.serverPath("/")}, decodePath)
	if !s.transport.mon.Send(call) {
		return s.transport.mon.Status().Up
	}
	answer := <-f
	return !answer.lost && !errors.Is(answer.err, errNotSent)
}

// waitClosed waits until c is closed, for no longer than d.
func waitClosed(d time.Duration, c <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	}
}
