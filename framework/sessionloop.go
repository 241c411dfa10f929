package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// loopState is one state of a session's life; it returns the next, or nil at the end.
type loopState func(*Session) loopState

// runLoop runs the session until it has ended, and all of its goroutines.
func (s *Session) runLoop() {
	for st := loopState((*Session).waitForServer); st != nil; {
		st = st(s)
	}
	s.enterState(Lost, context.Cause(s.ctx))
	s.closeConnection()
}

// waitForServer waits for an established connection.
func (s *Session) waitForServer() loopState {
	for {
		st := s.transport.mon.Status()
		switch {
		case s.ctx.Err() != nil:
			return nil
		case st.Expired:
			s.endWith(fmt.Errorf("%w: expired by the server", ErrSessionLost))
			return nil
		case st.Up:
			return s.proveFirst(st)
		}
		select {
		case <-s.transport.mon.Changed():
		case <-s.ctx.Done():
		}
	}
}

// proveFirst returns the state that proves the session's life on the connection just established.
func (s *Session) proveFirst(st link.Status) loopState {
	return func(s *Session) loopState {
		s.onHandshake(st.Handshake)
		err := s.authenticate(st)
		if err == nil {
			err = s.beat(st.Generation)
		}
		if err != nil { // a server that greets and then refuses is tried no faster than one that is down
			s.setup.servers.recordFailure(st.Handshake.Server, fmt.Errorf("it answers, but not to a proof of life: %w", err))
			return s.disconnected(st.Generation, err)
		}
		s.setup.servers.markProven()
		s.watches.reconnected() // before anybody can set a watch on this connection and have it forgotten
		s.enterState(Connected, nil)
		return s.keepProving(st.Generation)
	}
}

// keepProving returns the state that beats for as long as the connection stands.
func (s *Session) keepProving(generation int64) loopState {
	return func(s *Session) loopState {
		for {
			if err := s.waitForNextBeat(generation); err != nil {
				return s.disconnected(generation, err)
			}
			if err := s.beat(generation); err != nil {
				return s.disconnected(generation, err)
			}
		}
	}
}

// disconnected gives a connection up, and the session if it has ended.
func (s *Session) disconnected(generation int64, cause error) loopState {
	if s.ctx.Err() != nil { // the connection may still serve to say so
		return nil
	}
	s.transport.mon.Cut(generation)
	if errors.Is(cause, ErrAuthFailed) {
		s.endWith(cause)
		return nil
	}
	if s.State() == Connected {
		s.enterState(Suspended, cause)
	}
	return (*Session).waitForServer
}

// onHandshake takes in what the connect request's answer said.
func (s *Session) onHandshake(h link.Handshake) {
	s.mu.Lock()
	first := s.id == 0
	s.id = h.SessionID
	s.lease.beginConnection(h.SentAt, h.Timeout)
	s.mu.Unlock()
	if first {
		s.setup.timeoutGranted(h.Timeout)
	}
	s.setup.watchdog.sessionConnected(s.epoch, h)
}

// authenticate presents the credentials and lets requests pass: each connection knows none at first.
func (s *Session) authenticate(st link.Status) error {
	ctx, cancel := context.WithTimeout(s.ctx, beatInterval(st.Handshake.Timeout))
	defer cancel()
	for _, c := range s.setup.cfg.Auth {
		if err := (requester{ctx, s.transport, true}).addAuth(c); err != nil {
			return err
		}
	}
	s.deletions.resend(func(calls []*link.Call) { s.transport.mon.Admit(st.Generation, calls...) })
	return nil
}

var errConnectionGone = errors.New("connection lost")

// waitForNextBeat waits until the next beat is due, or the connection is gone, or the session has ended.
func (s *Session) waitForNextBeat(generation int64) error {
	t := time.NewTimer(beatInterval(s.Timeout()))
	defer t.Stop()
	for {
		if st := s.transport.mon.Status(); !st.Up || st.Generation != generation {
			return errConnectionGone
		}
		select {
		case <-t.C:
			return nil
		case <-s.transport.mon.Changed():
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// closeGrace is how long an ended session waits for a connection, on which the servers can be told of its end.
const closeGrace = time.Second

// closeConnection ends the connection, with a word to the server if it can be reached, and waits until the
// library has stopped: a server that hears it deletes the session's nodes at once.
func (s *Session) closeConnection() {
	if !s.transport.mon.Status().Up {
		s.deletions.endAll()
	}
	connected := s.waitForConnection()
	told := make(chan struct{})
	go func() {
		defer close(told)
		up := connected
		if up { // what is in flight is answered first
			waitClosed(time.Second, s.tasks.Done())
		}
		for up && !s.serverAnswers() { // the library asks once, perhaps on a lost connection
			up = s.waitForConnection()
		}
		s.zk.close()
	}()
	if connected {
		waitClosed(2*time.Second, told)
	}
	s.transport.mon.Close()
	s.deletions.endAll()
	<-told
	<-s.zk.gone
	<-s.tasks.Done()
}

// waitForConnection waits for the connection that is being made: the servers may open the session on it, or take it back
// for another whole timeout. One that was closed while it was suspended waits for a connection, too. What is under way
// when the time is over gets as much again. It reports whether there is a connection.
func (s *Session) waitForConnection() (up bool) {
	closed := errors.Is(context.Cause(s.ctx), ErrClosed)
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	for more := true; ; {
		st := s.transport.mon.Status()
		suspended := closed && st.Handshake.SessionID != 0
		if st.Up || s.transport.mon.Over() || !st.Greeting && !suspended {
			return st.Up
		}
		select {
		case <-s.transport.mon.Changed():
		case <-t.C:
			if !more || !s.transport.mon.Status().Greeting {
				return s.transport.mon.Status().Up
			}
			more = false
			t.Reset(closeGrace)
		}
	}
}

// serverAnswers reports whether the server answers on the present connection. One that was not admitted takes no question, and is
// believed.
func (s *Session) serverAnswers() bool {
	call, f := newRequest(wire.OpSync, &wire.PathRequest{Path: s.transport.ns.serverPath("/")}, readPath)
	if !s.transport.mon.Send(call) {
		return s.transport.mon.Status().Up
	}
	return !(<-f).lost
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

// maxChecks bounds the nodes that one beat names.
const maxChecks = 100

// beat proves the session's life once on the connection of this generation: a write without
// effect, then a sync. Only what was acknowledged on that very connection counts.
//
// A server that has too much to do answers a request by itself, without the ensemble (ErrOverloaded). That does not prove the session's life, but the
// connection works: the request is repeated there. An overdue beat tries another server, as without an answer.
func (s *Session) beat(generation int64) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, beatInterval(s.Timeout()), errOverdue)
	defer cancel()
	var sentAt time.Duration
	err := s.whileOverloaded(ctx, func() error {
		sentAt = s.setup.clock.Now()
		return s.writeBeat(ctx)
	})
	if err != nil {
		return err
	}
	if !s.isCurrentConnection(generation) {
		return errConnectionGone
	}
	s.extendLease((*sessionLease).writeAcknowledged)
	err = s.whileOverloaded(ctx, func() error { return requester{ctx, s.transport, true}.sync(s.transport.ns.serverPath("/")) })
	if err != nil {
		return err
	}
	if !s.isCurrentConnection(generation) {
		return errConnectionGone
	}
	s.extendLease(func(l *sessionLease) { l.syncAcknowledged(sentAt) })
	return nil
}

// whileOverloaded repeats a request with pauses until the server does not put it off any more. The error of a request that ctx ended wraps
// ErrOverloaded too if the server has put it off.
func (s *Session) whileOverloaded(ctx context.Context, request func() error) error {
	back := backoff.New(s.setup.cfg.RetryBase, s.setup.cfg.RetryMax)
	for {
		err := request()
		if !errors.Is(err, ErrOverloaded) {
			return err
		}
		if ended := s.transport.pauseBeforeRetry(ctx, back); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

var errOverdue = errors.New("no answer to a proof of life")

// isCurrentConnection reports whether the connection of this generation is still the present one.
func (s *Session) isCurrentConnection(generation int64) bool {
	st := s.transport.mon.Status()
	return st.Up && st.Generation == generation
}

// writeBeat checks held nodes in a transaction until one succeeds: each refusal names a node that
// another client deleted, and ends its hold.
func (s *Session) writeBeat(ctx context.Context) error {
	held := s.holds.nextNodes(maxChecks)
	for {
		rs, err := requester{ctx, s.transport, true}.multi(s.beatChecks(held)).read()
		if errors.Is(err, ErrSuspended) || ctx.Err() != nil || err == nil {
			return err
		}
		if len(held) == 0 { // a missing or forbidden root: the transaction was ordered all the same
			return wasAgreedOn(rs, err)
		}
		if held, err = dropRefused(held, rs, err); err != nil {
			return err
		}
	}
}

// beatChecks names the held nodes, or the root while no node is held.
func (s *Session) beatChecks(held []*heldNode) []wire.MultiPart {
	if len(held) == 0 {
		return []wire.MultiPart{checkOpPart(s.transport.ns.serverPath("/"), AnyVersion)}
	}
	parts := make([]wire.MultiPart, len(held))
	for i, n := range held {
		parts[i] = checkOpPart(n.full, AnyVersion)
	}
	return parts
}

// wasAgreedOn tells apart a transaction that was refused by one of its operations, which the
// ensemble has agreed on like any other, from one that was not run.
func wasAgreedOn(rs []OpResult, err error) error {
	if len(rs) > 0 {
		return nil
	}
	return err
}

// dropRefused ends the hold of the refused node and returns the other nodes.
func dropRefused(held []*heldNode, rs []OpResult, err error) ([]*heldNode, error) {
	i := slices.IndexFunc(rs, func(r OpResult) bool { return r.Err != nil })
	if i < 0 || i >= len(held) {
		return nil, err
	}
	cause := rs[i].Err
	if errors.Is(cause, ErrNoNode) {
		cause = fmt.Errorf("%w: %s", ErrNodeGone, held[i].path)
	}
	held[i].hold.End(cause)
	return slices.Delete(held, i, i+1), nil
}
