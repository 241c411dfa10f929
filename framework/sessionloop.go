package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// sessionPhase is what a session's loop does.
type sessionPhase int

const (
	phaseWaiting   sessionPhase = iota // until a connection is established
	phaseBeginning                     // prove the session's life on a new connection
	phaseProving                       // until the connection is lost
	phaseEnded
)

// runLoop runs the session, and returns when the session and all of its goroutines have ended.
func (s *Session) runLoop() {
	h := heartbeats{s: s}
	for phase := phaseWaiting; phase != phaseEnded; {
		var err error
		switch phase {
		case phaseWaiting:
			h.conn, phase = s.waitForServer()
			continue
		case phaseBeginning:
			phase, err = phaseProving, h.beginConnection()
		case phaseProving:
			err = h.keepProving()
		}
		if err != nil {
			phase = s.giveUpConnection(h.conn, err)
		}
	}
	s.enterState(Lost, context.Cause(s.ctx))
	s.closeConnection()
}

// waitForServer waits for an established connection. A dormant session ends when it has waited for
// a session timeout: the servers have very likely expired it, and its calls must not wait longer
// for that news.
func (s *Session) waitForServer() (*link.Connection, sessionPhase) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		status := s.transport.Status()
		switch {
		case s.ctx.Err() != nil:
			return nil, phaseEnded
		case status.Expired:
			s.setup.servers.markAnswered()
			s.endWith(fmt.Errorf("%w: expired by the server", ErrSessionLost))
			return nil, phaseEnded
		case status.Connection != nil:
			return status.Connection, phaseBeginning
		}
		if left, ends := s.suspensionLeft(); ends && left <= 0 {
			s.endWith(fmt.Errorf("%w: no connection for a session timeout", ErrSessionLost))
			return nil, phaseEnded
		} else if ends {
			t.Reset(left)
		}
		select {
		case <-t.C:
		case <-s.transport.Changed():
		case <-s.ctx.Done():
		}
	}
}

// giveUpConnection cuts a connection and suspends the session, unless the session has ended.
func (s *Session) giveUpConnection(conn *link.Connection, cause error) sessionPhase {
	if s.ctx.Err() != nil { // closeConnection may use the connection to close the session
		return phaseEnded
	}
	conn.Cut()
	if errors.Is(cause, ErrAuthFailed) {
		s.endWith(cause)
		return phaseEnded
	}
	if s.State() == Connected {
		s.recordSuspension()
		s.enterState(Suspended, fmt.Errorf("%s: %w", conn.Server, cause))
	}
	return phaseWaiting
}

// onHandshake records what the connect request's answer said. A lease that ends earlier than
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

// closeGrace is how long an ended session waits for a connection on which it can send its close.
const closeGrace = time.Second

// closeConnection closes the session on a server that can be reached, so that the servers delete
// its nodes at once. Then it ends the connection, and waits until the library has stopped.
func (s *Session) closeConnection() {
	if s.transport.Status().Connection == nil {
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
	s.transport.Close()
	s.deletions.endAll()
	<-closeSent
	<-s.zk.gone
	<-s.tasks.Done()
}

// unclosed returns why the servers may still have a session that Client.Close has ended, after
// runLoop: no server has answered its close. It returns nil for a session that was never opened.
func (s *Session) unclosed() error {
	status := s.transport.Status()
	if !errors.Is(context.Cause(s.ctx), ErrClosed) || status.Handshake.SessionID == 0 || status.Closed ||
		status.Expired {
		return nil
	}
	return fmt.Errorf("no server has closed session %#x: it lasts until its timeout of %v",
		status.Handshake.SessionID, s.Timeout())
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
		status := s.transport.Status()
		suspended := closed && status.Handshake.SessionID != 0
		if status.Connection != nil || s.transport.Over() || !status.Handshaking && !suspended {
			return status.Connection != nil
		}
		select {
		case <-s.transport.Changed():
		case <-t.C:
			if !more || !s.transport.Status().Handshaking {
				return s.transport.Status().Connection != nil
			}
			more = false
			t.Reset(closeGrace)
		}
	}
}

// serverAnswers reports whether the server answers on the present connection. On a connection that
// was not admitted, which takes no requests, it assumes so.
func (s *Session) serverAnswers() bool {
	call, f := newRequest(wire.OpSync, &wire.PathRequest{Path: s.caller.ns.serverPath("/")}, decodePath)
	if !s.transport.Send(call) {
		return s.transport.Status().Connection != nil
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
