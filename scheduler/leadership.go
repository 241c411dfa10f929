package scheduler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// leadership is this member's part in the election.
type leadership struct {
	client   *framework.Client
	election *election.Election
	jobs     *jobTable
	report   *reporter
	changed  func() // called when this member begins or ends to lead

	refused atomic.Bool // the servers have refused this member's node: it stays out of the election

	mu   sync.Mutex
	term *election.Term // while this member leads
}

// campaignWhileJobs campaigns until ctx ends, and returns nil then. A failure in the first two
// minutes (recoveredAfter) is the error; a later one is logged and tried again.
func (l *leadership) campaignWhileJobs(ctx context.Context) error {
	pauses, first := recipe.RetryPauses{Client: l.client}, time.Now()
	for {
		began := time.Now()
		err := l.campaignUntilFailure(ctx)
		recovered := time.Since(first) > recoveredAfter
		switch {
		case ctx.Err() != nil:
			return nil
		case !recovered, errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed):
			return err
		}
		l.report.warn("this member cannot campaign yet", "error", err)
		if pauses.Wait(ctx, began) != nil {
			return nil
		}
	}
}

// campaignUntilFailure campaigns while this member has jobs of OnLeader and its node is not
// refused, until ctx ends or a campaign fails. A member without such jobs, or without a node, stays
// out of the election: as the leader it would keep the leader jobs of the others from running.
func (l *leadership) campaignUntilFailure(ctx context.Context) error {
	hasLeaderJobs := func() bool { // that it can run
		return !l.refused.Load() && l.jobs.hasJobWhere(func(j *job) bool { return j.Placement != Spread })
	}
	for {
		for !hasLeaderJobs() {
			select {
			case <-l.jobs.changed:
			case <-ctx.Done():
				return nil
			}
		}
		campaigning, resign := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- l.election.Lead(campaigning, l.holdTerm) }()
		for hasLeaderJobs() {
			select {
			case <-l.jobs.changed:
			case err := <-ended:
				resign()
				return err
			}
		}
		resign()
		if err := <-ended; err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// setRefused says whether the servers have refused this member's node.
func (l *leadership) setRefused(refused bool) {
	if l.refused.Swap(refused) != refused {
		l.jobs.signalChange()
	}
}

// holdTerm publishes a term until the term ends. It then returns at once: the servers refuse the
// transactions that an ended term guards.
func (l *leadership) holdTerm(ctx context.Context, term *election.Term) error {
	leading := Event{Kind: EventLeading, Run: Run{Token: term.Token()}}
	l.report.passEvent(leading)
	l.setTerm(term)
	<-ctx.Done()
	l.setTerm(nil)
	leading.Kind = EventFollowing
	l.report.passEvent(leading)
	return nil
}

func (l *leadership) setTerm(term *election.Term) {
	l.mu.Lock()
	l.term = term
	l.mu.Unlock()
	l.changed()
}

// termOf is the term in which this member leads with a session, or nil.
func (l *leadership) termOf(session *framework.Session) *election.Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || l.term.Session() != session.ID() {
		return nil
	}
	return l.term
}

// traceOf is the trace context of the campaign that has won the term in which this member runs a
// job, or nil.
func (l *leadership) traceOf(j *job, session *framework.Session) map[string]string {
	if j.Placement == Spread {
		return nil
	}
	if term := l.termOf(session); term != nil {
		return term.Trace()
	}
	return nil
}

// termGuard returns an operation that refuses a transaction unless this member leads with a
// session. leads is false if it does not lead.
func (l *leadership) termGuard(session *framework.Session) (guard framework.Op, leads bool) {
	term := l.termOf(session)
	if term == nil {
		return framework.Op{}, false
	}
	return term.Guard(), true
}
