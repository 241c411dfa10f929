package election

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/locks"
)

// Lead campaigns, runs lead while this candidate leads, and campaigns again when lead has returned,
// until ctx ends. The context given to lead is done when the term or ctx has ended. Lead waits for
// lead to return before it gives the term up, and does not call it in a term that has ended. It
// gives a term up as Resign does, also when ctx has ended. It logs that the servers have not
// confirmed that.
//
// Lead logs an error that lead returns while its context stands, and pauses; the pauses grow from
// the client's RetryBase to its RetryMax. It also pauses after a term of less than a second that
// was not transferred, so that a function that returns at once does not campaign in a tight loop.
// WithMinTerm makes terms last.
//
// Lead returns nil when ctx has ended, or when lead has returned ErrStop. An error of Permanent
// makes Lead return the error that was given to Permanent. Otherwise Lead returns the error of
// Campaign.
func (e *Election) Lead(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	err := e.err
	if err == nil && lead == nil {
		err = errors.New("the function is nil")
	}
	if err == nil {
		err = e.leadRepeatedly(ctx, lead)
	}
	return failure.Wrap("lead", e.path, err)
}

// briefTerm is the length up to which a term is followed by a pause.
const briefTerm = time.Second

func (e *Election) leadRepeatedly(ctx context.Context, lead func(context.Context, *Term) error) error {
	pauses := recipe.NewBackoff(e.client)
	for {
		term, err := e.Campaign(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		err = term.leadUntilEnd(ctx, lead)
		var permanent *permanentError
		switch {
		case err == nil && time.Since(term.began) < briefTerm && !errors.Is(term.Err(), ErrTransferred):
			_ = pauses.Pause(ctx) // the next Campaign notices the end of ctx
		case err == nil:
			pauses.Reset()
		case errors.Is(err, ErrStop):
			return nil
		case errors.As(err, &permanent):
			return permanent.err
		default:
			e.client.Logger().Warn("a leader failed and campaigns again", "path", e.path, "id", e.config.id, "error",
				err)
			_ = pauses.Pause(ctx) // the next Campaign notices the end of ctx
		}
	}
}

// Campaign waits in line until this candidate leads. A suspended connection keeps its place. When
// the session is lost, or a check of WithHealth fails, it joins again. Call Resign for each term,
// even if the term has ended otherwise: the place is kept until then, unless the session is lost.
//
// The error is that of ctx when that ended the wait. Otherwise it wraps locks.ErrHeld if ctx
// belongs to a term of this election, framework.ErrForeign, framework.ErrBadRecord,
// framework.ErrNewer, framework.ErrClosed, framework.ErrAuthFailed, framework.ErrInvalid, or a
// refusal of the servers or of the client, such as framework.ErrNoAuth. No node stays behind then:
// Campaign deletes its node, if need be in the background.
func (e *Election) Campaign(ctx context.Context) (term *Term, err error) {
	if e.err != nil {
		return nil, failure.Wrap("campaign", e.path, e.err)
	}
	ctx, end := e.tel.startCampaign(ctx, e.path, e.config.id)
	defer func() {
		if err != nil {
			end(0, 0, err)
		} else {
			end(term.Token(), term.Number(), nil)
		}
	}()
	for {
		term, err = e.campaignOnce(ctx)
		switch {
		case err == nil:
			return term, nil
		case ctx.Err() != nil:
			err = failure.Ended(ctx)
		case errors.Is(err, framework.ErrSessionLost), errors.Is(err, framework.ErrNodeGone),
			errors.Is(err, ErrUnhealthy):
			continue
		}
		return nil, failure.Wrap("campaign", e.path, err)
	}
}

// campaignOnce waits in line once while this candidate is healthy, and begins a term.
func (e *Election) campaignOnce(ctx context.Context) (*Term, error) {
	healthy, stop, err := e.config.health.waitUntilHealthy(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	t, err := e.waitAndBegin(healthy)
	if err != nil {
		if cause := context.Cause(healthy); ctx.Err() == nil && errors.Is(cause, ErrUnhealthy) {
			err = cause
		}
		return nil, err
	}
	t.onEnd = func() { e.current.CompareAndSwap(t, nil) }
	ended := e.tel.startTerm(t.began)
	context.AfterFunc(t.Context(), func() { ended(t.Err()) })
	t.watchForReasonsToEnd()
	// last: another goroutine may give the term up as soon as it sees it, and then waits for the
	// watches
	e.current.Store(t)
	return t, nil
}

// waitAndBegin waits in line and records the term.
func (e *Election) waitAndBegin(ctx context.Context) (*Term, error) {
	grant, err := e.waitInLine(ctx)
	if err != nil {
		return nil, err
	}
	t := e.newTerm(grant)
	t.trace = waitline.TraceContext(ctx, e.client)
	if err := t.beginTerm(ctx); err != nil {
		waiting, cancel := context.WithTimeout(ctx, e.client.Config().CleanupTimeout) // the servers may refuse it
		defer cancel()
		_ = grant.Release(err, nil).Wait(waiting) // goes on in the background
		return nil, err
	}
	return t, nil
}

func (e *Election) newTerm(grant *waitline.Grant) *Term {
	grant.SetGuarded()
	// the next local waiter need not wait for Resign
	context.AfterFunc(grant.Context(), func() { grant.Release(nil, nil) })
	t := &Term{client: e.client, path: e.path, config: e.config, line: e.line, waiting: e.waiting, grant: grant,
		life: grant.Lifetime().Child(grant.Context()), began: time.Now()}
	t.record = termWriter{client: e.client, session: grant.Session(), path: e.termPath(), node: t.Node(),
		guard: t.Guard, err: t.Err, writing: make(chan struct{}, 1)}
	return t
}

// waitInLine waits until this candidate is the first in line. A node beside the line describes the
// candidate meanwhile.
func (e *Election) waitInLine(caller context.Context) (grant *waitline.Grant, err error) {
	ctx, w := e.waits.StartWait(caller, "acquire")
	defer func() {
		if err != nil {
			w.End(0, err)
		} else {
			w.End(grant.Node().Zxid, nil)
		}
	}()
	if waitline.HolderOf(ctx, e.key) != nil {
		return nil, failure.Wrap("acquire", e.path, locks.ErrHeld)
	}
	e.linkToLeader(ctx, w)
	line, stopDescribing := e.line, func() {}
	if len(e.config.metadata) > 0 || e.config.priority > 0 {
		line, stopDescribing = e.describedLine(ctx)
	}
	err = recipe.OnSession(ctx, e.client, func(s *framework.Session) error {
		c, err := line.Wait(ctx, s, []byte(e.config.id), w)
		if err == nil {
			grant, err = c.Hold(caller, e.key)
		}
		return err
	})
	stopDescribing()
	return grant, failure.Wrap("acquire", e.path, err)
}

// linkToLeader links a wait's span, if it is recorded, to the campaign of the leader that it will
// wait for.
func (e *Election) linkToLeader(ctx context.Context, w *waitline.Wait) {
	if !w.IsTraced() {
		return
	}
	reading, cancel := context.WithTimeout(ctx, waitline.LinkTimeout)
	defer cancel()
	if leader, err := e.readLeader(reading); err == nil {
		w.LinkTo(leader.ID, leader.Trace)
	}
}

// describedLine returns a line that keeps a node with this candidate's description, from the first
// wait until stop is called.
func (e *Election) describedLine(ctx context.Context) (line *waitline.Line, stop func()) {
	var described *waitingPresence
	line = waitline.New(e.path, waitline.Filter{Kind: e.config.names}, func(int) { // the waiting goroutine calls it
		if described != nil {
			return
		}
		r := waitingRecord{ID: e.config.id, Metadata: e.config.metadata, StableMS: e.config.stable.Milliseconds()}
		m, err := e.waiting.startPresence(ctx, waitingName(e.config.priority), r)
		if err != nil { // WithMetadata has encoded the metadata before
			panic("election: metadata cannot be encoded: " + err.Error())
		}
		described = m
	})
	return line, func() {
		if described != nil {
			described.leave()
		}
	}
}
