package election

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// watchForReasonsToEnd watches for what may end the term beside its lease. All of it ends with the term's context.
func (t *Term) watchForReasonsToEnd() {
	e := t.election
	e.current.Store(t)
	e.tel.began(t)
	context.AfterFunc(t.Context(), func() { e.tel.ended(t) })
	if e.maxTerm > 0 {
		over := time.AfterFunc(e.maxTerm, func() { t.endContext(ErrMaxTerm) })
		context.AfterFunc(t.Context(), func() { over.Stop() })
	}
	if e.health != nil {
		t.overseen.Go(t.watchHealth)
	}
	if e.stepDown == AtSuspended {
		changes := e.client.States(t.Context()) // from now on
		t.overseen.Go(func() {
			for c := range changes { // each: the session may be connected again by now
				if c.SessionID == t.Session() {
					t.stepDownUnless(c.State)
				}
			}
		})
		t.checkConnection()
	}
	t.overseen.Go(t.watchPreferred)
}

func (t *Term) watchHealth() {
	if err := t.election.health.waitUntilSick(t.Context()); t.Context().Err() == nil {
		t.endContext(err)
	}
}

// checkConnection ends the term when its session is not connected.
func (t *Term) checkConnection() {
	s, err := t.session(t.Context())
	if err == nil {
		t.stepDownUnless(s.State())
	}
}

// stepDownUnless ends the term unless the session's state is that it is connected.
func (t *Term) stepDownUnless(state framework.State) {
	if state != framework.Connected {
		t.endContext(fmt.Errorf("%w: the session is %v", ErrDisconnected, state))
	}
}
