package scheduler

import (
	"slices"
	"sync"
	"time"
)

// localRuns are the runs of one job that go on in this member, by whichever of its definitions they were begun. They
// are kept while the member has the job, while one of them goes on, and while the job is looked at.
type localRuns struct {
	name  string
	users int // guarded by the scheduler

	latest *job // the definition that was given last; guarded by the scheduler

	mu      sync.Mutex
	first   time.Time // ticks up to there were started here
	going   []*execution
	session int64 // of the latest run that was started here
	token   int64 // of that run
	removed int64 // runs of registrations before this generation are to end
}

// useRuns returns the runs of a job that go on here, for a user more. The scheduler is locked.
func (s *Scheduler) useRuns(name string) *localRuns {
	l := s.local[name]
	if l == nil {
		l = &localRuns{name: name}
		s.local[name] = l
	}
	l.users++
	return l
}

// leaveRuns gives them back. The scheduler is locked.
func (s *Scheduler) leaveRuns(l *localRuns) {
	if l.users--; l.users == 0 {
		delete(s.local, l.name)
	}
}

// keepRuns keeps a job's runs known until releaseRuns. It returns false if they are not known any more.
func (s *Scheduler) keepRuns(l *localRuns) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users == 0 {
		return false
	}
	l.users++
	return true
}

func (s *Scheduler) releaseRuns(l *localRuns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveRuns(l)
}

// beginRun notes that a run goes on here, and reports whether its tick is new here, whatever the caller has read:
// the state may have been deleted meanwhile. A run that was begun before is not begun again, even if it has ended
// since: who claims a run has seen, and begun, those that were claimed before it.
func (l *localRuns) beginRun(e *execution) (fresh, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	session, token := e.session.ID(), e.record.Token
	if session == l.session && token <= l.token {
		return false, false
	}
	l.session, l.token = session, token
	l.going = append(l.going, e)
	r := e.record
	if r.generation < l.removed {
		e.stop(ErrRemoved)
	}
	if r.Manual || r.Attempt > 1 {
		return true, true
	}
	if !r.Tick.After(l.first) {
		return false, true
	}
	l.first = r.Tick
	return true, true
}

func (l *localRuns) endRun(e *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.going = slices.DeleteFunc(l.going, func(o *execution) bool { return o == e })
}

// findRun is the run of a record if it goes on in this member, or nil.
func (l *localRuns) findRun(r RunRecord) *execution {
	for _, e := range l.allRuns() {
		if e.isRun(r) {
			return e
		}
	}
	return nil
}

// allRuns returns the runs that go on in this member.
func (l *localRuns) allRuns() []*execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.going)
}

// endRunsOf ends the runs of a registration that was removed, and of those before it, also such as begin later.
func (l *localRuns) endRunsOf(generation int64) {
	l.mu.Lock()
	l.removed = max(l.removed, generation+1)
	l.mu.Unlock()
	for _, e := range l.allRuns() {
		if e.record.generation <= generation {
			e.stop(ErrRemoved)
		}
	}
}
