package scheduler

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// leadership is this member's part in the election.
type leadership struct {
	election *election.Election
	jobs     *jobTable
	report   *reporter
	changed  func() // called when this member begins or ends to lead

	mu   sync.Mutex
	term *election.Term // while this member leads
}

// campaign leads whenever the other candidates let it, while this member has jobs of OnLeader, until ctx ends. A member without any stays out of the
// election: as the leader it would keep the leader jobs of all others from being run.
func (l *leadership) campaign(ctx context.Context) error {
	hasLeaderJobs := func() bool { return l.jobs.has(func(j *job) bool { return j.Placement != Spread }) }
	for {
		for !hasLeaderJobs() {
			select {
			case <-l.jobs.changed:
			case <-ctx.Done():
				return framework.Ended(ctx)
			}
		}
		campaigning, resign := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- l.election.Lead(campaigning, l.lead) }()
		for hasLeaderJobs() {
			select {
			case <-l.jobs.changed:
			case err := <-ended:
				resign()
				return err
			}
		}
		resign()
		if err := <-ended; ctx.Err() != nil {
			return err
		}
	}
}

// lead holds a term. It returns at once when the term ends, since the servers then refuse the transactions that the term guards.
func (l *leadership) lead(ctx context.Context, term *election.Term) error {
	leading := Event{Kind: EventLeading, Run: Run{Token: term.Token()}}
	l.report.event(leading)
	l.setTerm(term)
	<-ctx.Done()
	l.setTerm(nil)
	leading.Kind = EventFollowing
	l.report.event(leading)
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

// guard refuses a transaction unless this member leads with a session; it is false if it does not.
func (l *leadership) guard(session *framework.Session) (framework.Op, bool) {
	term := l.termOf(session)
	if term == nil {
		return framework.Op{}, false
	}
	return term.Guard(), true
}
