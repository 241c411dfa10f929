package election

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Campaign waits in line until this candidate leads. A suspended connection keeps its place; a lost
// session, or a check of WithHealth that fails, makes it queue again. Resign ends the term, whatever else
// may have ended it before: its place is kept until then, unless the session is lost.
//
// The error is that of ctx when that ended the wait, or wraps framework.ErrClosed, framework.ErrNoAuth,
// framework.ErrInvalidPath, locks.ErrKindMixed, ErrBadRecord or ErrNewerRecord; no node is left behind then.
func (e *Election) Campaign(ctx context.Context) (term *Term, err error) {
	if e.err != nil {
		return nil, framework.Wrap("campaign", e.path, e.err)
	}
	ctx, end := e.tel.campaign(ctx, e)
	defer func() { end(term, err) }()
	for {
		term, err = e.campaignOnce(ctx)
		switch {
		case err == nil:
			return term, nil
		case ctx.Err() != nil:
			err = framework.Ended(ctx)
		case shouldQueueAgain(err):
			continue
		}
		return nil, framework.Wrap("campaign", e.path, err)
	}
}

// shouldQueueAgain reports whether a candidate that came to nothing queues again.
func shouldQueueAgain(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone) || errors.Is(err, ErrUnhealthy)
}

// campaignOnce stands in line once, and begins a term if that ends well.
func (e *Election) campaignOnce(ctx context.Context) (*Term, error) {
	well, end, err := e.waitUntilFit(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	t, err := e.waitAndBeginTerm(well)
	if err != nil {
		if cause := context.Cause(well); ctx.Err() == nil && errors.Is(cause, ErrUnhealthy) {
			err = cause
		}
		return nil, err
	}
	t.watchForReasonsToEnd()
	return t, nil
}

// waitAndBeginTerm waits for this candidate's turn and makes it a term's leader.
func (e *Election) waitAndBeginTerm(ctx context.Context) (*Term, error) {
	lease, err := e.joinLine(ctx)
	if err != nil {
		return nil, err
	}
	t := newTerm(e, lease)
	if err := t.recordTerm(ctx); err != nil {
		_ = lease.Release(context.WithoutCancel(ctx)) // has no error
		return nil, err
	}
	return t, nil
}

// joinLine stands in line. What a waiting candidate tells of itself lies beside the line while it waits.
func (e *Election) joinLine(ctx context.Context) (*locks.Lease, error) {
	if len(e.metadata) == 0 && e.priority == 0 {
		return e.line.Acquire(ctx)
	}
	var told *Membership
	line := e.newLine(locks.WithOnWait(func(int) { // called from this goroutine
		if told == nil {
			told = e.createWaitingNode(ctx)
		}
	}))
	lease, err := line.Acquire(ctx)
	if told != nil {
		told.leave()
	}
	return lease, err
}

// createWaitingNode shows this candidate to those who ask for more than its id.
func (e *Election) createWaitingNode(ctx context.Context) *Membership {
	m, err := e.waiting.startMembership(ctx, waitingName(e.priority), memberRecord{ID: e.id, Metadata: e.metadata, Stable: e.stable})
	if err != nil { // it has been written before, to be checked
		panic("election: metadata cannot be written: " + err.Error())
	}
	return m
}

// Resign ends a term, as term.Resign does. A nil term is none to end.
func (e *Election) Resign(ctx context.Context, term *Term) error {
	if term == nil {
		return nil
	}
	return term.Resign(ctx)
}
