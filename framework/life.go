package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// step is one state of a session's life; it returns the next, or nil at the end.
type step func(*Session) step

// live runs the session until it has ended, and leaves nothing of it behind.
func (s *Session) live() {
	for st := step((*Session).waitForServer); st != nil; {
		st = st(s)
	}
	s.enter(Lost, context.Cause(s.ctx))
	s.hangUp()
}

// waitForServer waits for an established connection.
func (s *Session) waitForServer() step {
	for {
		st := s.mon.Status()
		switch {
		case s.ctx.Err() != nil:
			return nil
		case st.Expired:
			s.end(fmt.Errorf("%w: expired by the server", ErrSessionLost))
			return nil
		case st.Up:
			return s.prove(st)
		}
		select {
		case <-s.mon.Changed():
		case <-s.ctx.Done():
		}
	}
}

// prove returns the state that proves the session's life on the connection just established.
func (s *Session) prove(st link.Status) step {
	return func(s *Session) step {
		s.greet(st.Handshake)
		err := s.authenticate(st)
		if err == nil {
			err = s.beat(st.Generation)
		}
		if err != nil { // a server that greets and then refuses is tried no faster than one that is down
			s.client.servers.fail(st.Handshake.Server, fmt.Errorf("it answers, but not to a proof of life: %w", err))
			return s.disconnected(st.Generation, err)
		}
		s.client.servers.connected()
		s.watches.reconnected() // before anybody can set a watch on this connection and have it forgotten
		s.enter(Connected, nil)
		return s.keepProving(st.Generation)
	}
}

// keepProving returns the state that beats for as long as the connection stands.
func (s *Session) keepProving(generation int64) step {
	return func(s *Session) step {
		for {
			if err := s.idle(generation); err != nil {
				return s.disconnected(generation, err)
			}
			if err := s.beat(generation); err != nil {
				return s.disconnected(generation, err)
			}
		}
	}
}

// disconnected gives a connection up, and the session if it has ended.
func (s *Session) disconnected(generation int64, cause error) step {
	if s.ctx.Err() != nil { // the connection may still serve to say so
		return nil
	}
	s.mon.Cut(generation)
	if errors.Is(cause, ErrAuthFailed) {
		s.end(cause)
		return nil
	}
	if s.State() == Connected {
		s.enter(Suspended, cause)
	}
	return (*Session).waitForServer
}

// greet takes in what the connect request's answer said.
func (s *Session) greet(h link.Handshake) {
	s.mu.Lock()
	first := s.id == 0
	s.id = h.SessionID
	s.lease.connected(h.SentAt, h.Timeout)
	s.mu.Unlock()
	if first {
		s.client.granted(h.Timeout)
	}
	s.client.follower.greeted(s.epoch, h)
}

// authenticate presents the credentials and lets requests pass: each connection knows none at first.
func (s *Session) authenticate(st link.Status) error {
	ctx, cancel := context.WithTimeout(s.ctx, interval(st.Handshake.Timeout))
	defer cancel()
	for _, c := range s.client.cfg.Auth {
		if err := (asker{ctx, s, true}).addAuth(c); err != nil {
			return err
		}
	}
	s.deletions.resume(func(calls []*link.Call) { s.mon.Admit(st.Generation, calls...) })
	return nil
}

var errConnectionGone = errors.New("connection lost")

// idle waits until the next beat is due, or the connection is gone, or the session has ended.
func (s *Session) idle(generation int64) error {
	t := time.NewTimer(interval(s.Timeout()))
	defer t.Stop()
	for {
		if st := s.mon.Status(); !st.Up || st.Generation != generation {
			return errConnectionGone
		}
		select {
		case <-t.C:
			return nil
		case <-s.mon.Changed():
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// farewell is how long an ended session waits for a connection, on which the servers can be told of its end.
const farewell = time.Second

// hangUp ends the connection, with a word to the server if it can be reached, and waits until the
// library has stopped: a server that hears it deletes the session's nodes at once.
func (s *Session) hangUp() {
	if !s.mon.Status().Up {
		s.deletions.end()
	}
	connected := s.reach()
	told := make(chan struct{})
	go func() {
		defer close(told)
		up := connected
		if up { // what is in flight is answered first
			within(time.Second, s.tasks.done())
		}
		for up && !s.answers() { // the library asks once, perhaps on a connection whose loss it has not noticed
			up = s.reach()
		}
		s.zk.close()
	}()
	if connected {
		within(2*time.Second, told)
	}
	s.mon.Close()
	s.deletions.end()
	<-told
	<-s.zk.gone
	<-s.tasks.done()
}

// reach waits for the connection that is being made: the servers may open the session on it, or take it back
// for another whole timeout. One that was closed while it was suspended waits for a connection, too. What is under way
// when the time is over gets as much again. It reports whether there is a connection.
func (s *Session) reach() (up bool) {
	closed := errors.Is(context.Cause(s.ctx), ErrClosed)
	t := time.NewTimer(farewell)
	defer t.Stop()
	for more := true; ; {
		st := s.mon.Status()
		suspended := closed && st.Handshake.SessionID != 0
		if st.Up || s.mon.Over() || !st.Greeting && !suspended {
			return st.Up
		}
		select {
		case <-s.mon.Changed():
		case <-t.C:
			if !more || !s.mon.Status().Greeting {
				return s.mon.Status().Up
			}
			more = false
			t.Reset(farewell)
		}
	}
}

// answers reports whether the server answers on the present connection. One that was never admitted takes no question, and is
// believed.
func (s *Session) answers() bool {
	call, f := request(wire.OpSync, &wire.PathRequest{Path: s.client.ns.full("/")}, readPath)
	if !s.mon.Send(call) {
		return s.mon.Status().Up
	}
	return !(<-f).lost
}

// within waits until c is closed, for no longer than d.
func within(d time.Duration, c <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	}
}
