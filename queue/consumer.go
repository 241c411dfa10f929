package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// consumer claims items for the calls of Take of one Queue. It takes part in the queue from the
// first call until the idle timeout after the last call, with one consumer session after the other.
type consumer struct {
	store    *store
	settings *settings
	writer   *writer
	openCtx  context.Context // done when the Queue is being closed
	tasks    *background.Tasks
	takes    takeQueue
	session  atomic.Pointer[consumerSession] // the present one, or nil
	state    stateReader
}

func newConsumer(store *store, settings *settings, w *writer, openCtx context.Context,
	tasks *background.Tasks) *consumer {
	c := &consumer{store: store, settings: settings, writer: w, openCtx: openCtx, tasks: tasks,
		state: newStateReader(store)}
	c.takes = takeQueue{openCtx: openCtx, changed: make(chan struct{}, 1),
		startConsumer: func() bool { return tasks.Start(c.runSessions) }}
	return c
}

// runSessions takes part in the queue in session after session, until the idle timeout or Close. It
// pauses before each repetition: a queue that is being deleted by hand must not get new nodes at
// once.
func (c *consumer) runSessions() {
	back := recipe.NewBackoff(c.store.client)
	for {
		began := time.Now()
		s, err := c.store.client.Session(c.openCtx)
		if err == nil {
			err = c.runSession(s)
		}
		if time.Since(began) > c.store.client.Config().SessionTimeout {
			back.Reset()
		}
		switch {
		case c.openCtx.Err() != nil:
			c.takes.failAll(context.Cause(c.openCtx))
			return
		case errors.Is(err, errIdle):
			if c.takes.endUnlessCalled() {
				return
			}
		case failure.IsTransient(err) || errors.Is(err, framework.ErrNodeGone):
			_ = back.Pause(c.openCtx) // the next round notices the end of openCtx
		case err != nil:
			c.takes.failAll(err)
			return
		}
	}
}

// runSession takes part in the queue during one session.
func (c *consumer) runSession(s *framework.Session) error {
	if err := c.store.findOrMake(c.openCtx, s); err != nil {
		return err
	}
	record := c.store.record()
	cs := c.newSession(s, record.IsStrict())
	c.session.Store(cs)
	c.takes.setClaims(cs.claims)
	err := cs.claimUntilEnd()
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errNotQueue) || errors.Is(err, errDropped) ||
		errors.Is(err, errVacant) {
		// Was the queue dropped and made anew? The watch of the record may have read the new one
		// already.
		switch replaced, failed := c.store.wasReplaced(c.openCtx, s, record.Czxid); {
		case failed != nil:
			err = failed
		case replaced:
			err = fmt.Errorf("%w: %w", errLineLeft, err)
		}
	}
	c.takes.setClaims(nil)
	c.session.Store(nil)
	if lost := s.Err(); lost != nil && !errors.Is(err, errIdle) {
		return lost // calls that the end of the session has ended return other errors
	}
	return err
}

// newSession makes the consumer session of a session.
func (c *consumer) newSession(s *framework.Session, strict bool) *consumerSession {
	cs := &consumerSession{store: c.store, settings: c.settings, writer: c.writer, s: s, id: uuid.NewString()[:8],
		queueTasks: c.tasks,
		gate:       newPauseGate(), refs: segmentRefs{claims: map[queuelayout.Segment]int{}}}
	cs.ctx, cs.cancel = context.WithCancelCause(c.openCtx)
	cs.claims = newSessionClaims(&c.takes, cs.ctx, cs.gate, c.settings, c.settings.windowSize(strict))
	cs.gate.onResume = cs.claims.handOutAfterPause
	cs.reads = newBatchReader(cs.ctx, s, &cs.tasks)
	cs.cancels = newCancelMarks(c.store.client, s, c.store.nodes.CancelsDir)
	cs.entry.ctx, cs.entry.leave = context.WithCancel(s.Context())
	if strict {
		cs.order = &strictOrder{cs: cs}
	} else {
		cs.order = newParallelOrder(cs)
	}
	return cs
}

// releaseAhead gives back what was claimed for calls that have ended, unless other calls wait.
func (c *consumer) releaseAhead() {
	if cs := c.session.Load(); cs != nil && c.settings.prefetch == 0 {
		cs.releaseAhead(0)
	}
}
