package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// localRun is a run that goes on in this member, until its outcome is stored.
type localRun struct {
	record  storedRun           // as it was claimed
	session framework.SessionID // that claimed it
	ended   context.Context
	stop    context.CancelCauseFunc // ends the run for a reason of this member's own
}

func newLocalRun(r storedRun, session framework.SessionID) *localRun {
	run := &localRun{record: r, session: session}
	run.ended, run.stop = context.WithCancelCause(context.Background())
	return run
}

// isRun reports whether a stored run is this one.
func (r *localRun) isRun(stored storedRun) bool {
	return stored.Number == r.record.Number && stored.Generation == r.record.Generation &&
		stored.Member == r.record.Member
}

// localRuns are the runs of one job that go on in this member, under any of its definitions.
type localRuns struct {
	name string

	mu            sync.Mutex
	startedUntil  time.Time // the latest tick that was started here
	running       []*localRun
	latestSession framework.SessionID // that claimed the latest run that was started here
	latestToken   int64               // of that run
	endBefore     int64               // runs of registrations before this generation must end
}

// beginRun adds a run to those that go on here. fresh is false if the tick was run here before,
// which happens after an operator has deleted the state. begun is false for a run that was begun
// before, even if it has ended since: a member that claims a run has seen, and begun, the runs that
// were claimed before.
func (l *localRuns) beginRun(r *localRun) (fresh, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := r.record.Token
	if r.session == l.latestSession && token <= l.latestToken {
		return false, false
	}
	l.latestSession, l.latestToken = r.session, token
	l.running = append(l.running, r)
	if r.record.Generation < l.endBefore {
		r.stop(ErrRemoved)
	}
	if r.record.Manual || r.record.Attempt > 1 {
		return true, true
	}
	if !r.record.Tick.After(l.startedUntil) {
		return false, true
	}
	l.startedUntil = r.record.Tick
	return true, true
}

func (l *localRuns) endRun(r *localRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = slices.DeleteFunc(l.running, func(o *localRun) bool { return o == r })
}

// findRun returns the run of a record if it goes on in this member, or nil.
func (l *localRuns) findRun(stored storedRun) *localRun {
	for _, r := range l.allRuns() {
		if r.isRun(stored) {
			return r
		}
	}
	return nil
}

// allRuns returns the runs that go on in this member.
func (l *localRuns) allRuns() []*localRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.running)
}

// allowRunsOf lets the runs of a registration that stands begin. An operator who deletes a job's
// node makes its generations begin at 0 again, so the registration may have a lower generation than
// one that was removed.
func (l *localRuns) allowRunsOf(generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endBefore = min(l.endBefore, generation)
}

// endRunsOf ends the runs of a removed registration and of earlier ones, also those that begin
// later.
func (l *localRuns) endRunsOf(generation int64) {
	l.mu.Lock()
	l.endBefore = max(l.endBefore, generation+1)
	l.mu.Unlock()
	for _, r := range l.allRuns() {
		if r.record.Generation <= generation {
			r.stop(ErrRemoved)
		}
	}
}
