package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

func init() { makers["jobs"] = newJobsScene }

// jobsScene is a cluster of schedulers whose members add, update, withdraw and remove jobs while they run. In half of the seeds the
// members go on for a while after all faults are healed, have all jobs then, and must catch up.
type jobsScene struct {
	base
	jobs   []*changingJob
	encore bool
	audit  *jobAudit

	mu      sync.Mutex
	members map[*process]*jobsMember // those that run
}

// changingJob is a job, and what is the same in all its definitions. The scene's mu guards what is below it.
type changingJob struct {
	name  string
	fixed scheduler.Job
	specs []string

	running  map[*jobsRun]bool
	removals int // Removes that may have happened
	removed  int // Removes that have returned nil
}

// jobsRun is a call of a job's function.
type jobsRun struct {
	m   *jobsMember
	ctx context.Context
	run scheduler.Run
	of  int64 // the registration that it was claimed in
}

// jobsMember is a scheduler in a process. Its own jobs are changed by one actor at a time.
type jobsMember struct {
	*scheduler.Scheduler
	a     *actor
	began time.Time
	turn  chan struct{}

	// Guarded by the scene's mu.
	versions map[string]int              // of the definitions given so far
	updates  map[string]definitionUpdate // the latest that has returned
	left     map[string]*withdrawal
	ran      map[string]bool // a run of the definition that the member has has begun
}

// definitionUpdate is an Update that has returned: since when runs begin by that definition, or a later one.
type definitionUpdate struct {
	version int
	at      time.Time
}

// withdrawal is when a Withdraw has returned, and how many runs have begun since that were claimed later.
type withdrawal struct {
	zxid int64
	runs int
}

func newJobsScene(w *world, spec sceneSpec) scene {
	r := stream(w.plan.seed, spec.path)
	s := &jobsScene{base: base{w, spec}, encore: oneIn(r, 2), members: map[*process]*jobsMember{}}
	for i := range 1 + r.IntN(3) {
		s.jobs = append(s.jobs, &changingJob{
			name: fmt.Sprintf("job%d", i), specs: []string{"* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"}, running: map[*jobsRun]bool{},
			fixed: scheduler.Job{
				Placement: pick(r, scheduler.OnLeader, scheduler.Spread), Guarantee: pick(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap: pick(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
			},
		})
	}
	s.audit = newJobAudit(w, s.path(), s.checkRegistration)
	return s
}

// stays allows for what the scheduler scene allows for.
func (s *jobsScene) stays(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// play changes jobs. The first actor of each process lets it be a member too.
func (s *jobsScene) play(a *actor) {
	if a.name == a.process.name+"a" {
		member := newActor(a.process, s.spec, 20)
		a.w.actors.Go(func() { s.belong(member) })
	}
	for a.goOn() {
		s.change(a)
		a.rest(a.ctx, between(a.r, 0, 3*time.Second))
	}
}

// belong is a member for some time, and then another one, and so on.
func (s *jobsScene) belong(a *actor) {
	for a.goOn() {
		s.serve(a, between(a.r, a.lazy, 20*a.lazy), a.w.over)
	}
	if s.encore && a.ctx.Err() == nil {
		a.w.h.note(s.path(), "%s goes on for %v", a.name, s.calm())
		s.serve(a, s.calm(), nil)
	}
}

// calm is how long members go on after all is healed: changes that are under way end, then all members get all jobs.
func (s *jobsScene) calm() time.Duration { return s.settling() + s.slack() + time.Minute }

func (s *jobsScene) settling() time.Duration { return 2*s.w.plan.timeout + 10*time.Second }

// slack is how late a job may be seen to when all is well: a dead member's session has to end first.
func (s *jobsScene) slack() time.Duration { return 3*s.w.plan.timeout + 20*time.Second }

// serve runs a scheduler for a time, or until over is closed. Who serves through the calm has all jobs, and looks at its end
// whether they were seen to.
func (s *jobsScene) serve(a *actor, length time.Duration, over <-chan struct{}) {
	m := &jobsMember{
		a: a, began: time.Now(), turn: make(chan struct{}, 1), versions: map[string]int{}, updates: map[string]definitionUpdate{}, left: map[string]*withdrawal{}, ran: map[string]bool{},
	}
	m.Scheduler = scheduler.New(a.client, s.path(), scheduler.WithNow(a.now), scheduler.WithDrain(between(a.r, 0, 5*time.Second)))
	for i, j := range s.jobs {
		if i == 0 || over == nil || oneIn(a.r, 2) {
			s.add(m, j, a.r)
		}
	}
	s.present(a.process, m)
	defer s.present(a.process, nil)
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	a.w.actors.Go(func() {
		defer cancel()
		if over == nil {
			_ = framework.Pause(ctx, s.settling())
			for _, j := range s.jobs {
				s.add(m, j, a.r)
			}
			length -= s.settling()
		}
		select {
		case <-time.After(length):
			if over == nil {
				s.checkCaughtUp(a)
			}
		case <-over:
		case <-done:
		}
	})
	err := m.Run(ctx)
	a.gate()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.w.violate(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// present makes a member the one that its process's actors change.
func (s *jobsScene) present(p *process, m *jobsMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[p] = m; m == nil {
		delete(s.members, p)
	}
}

// definition draws another definition of a job.
func (s *jobsScene) definition(m *jobsMember, j *changingJob, r *rand.Rand) (scheduler.Job, int) {
	s.mu.Lock()
	m.versions[j.name]++
	version := m.versions[j.name]
	s.mu.Unlock()
	job := j.fixed
	job.Name, job.Spec, job.Deadline = j.name, pick(r, j.specs...), between(r, time.Second, 20*time.Second)
	job.Misfire = pick(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll)
	job.Run = func(ctx context.Context, run scheduler.Run) error { return s.run(m, j, version, ctx, run) }
	return job, version
}

// change changes the jobs of the process's member, or removes one for all.
func (s *jobsScene) change(a *actor) {
	j := s.jobs[a.r.IntN(len(s.jobs))]
	s.mu.Lock()
	m := s.members[a.process]
	s.mu.Unlock()
	if m == nil || oneIn(a.r, 5) {
		s.remove(a, m, j)
		return
	}
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	switch a.r.IntN(4) {
	case 0, 1:
		s.add(m, j, a.r)
	case 2:
		s.update(m, j, a.r)
	default:
		s.withdraw(m, j)
		if oneIn(a.r, 2) {
			s.add(m, j, a.r)
		}
	}
}

func (s *jobsScene) add(m *jobsMember, j *changingJob, r *rand.Rand) {
	job, _ := s.definition(m, j, r)
	s.mu.Lock()
	left := m.left[j.name]
	s.mu.Unlock()
	err := m.Add(job)
	s.told(m.a, "add", j, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.left[j.name], m.ran[j.name] = nil, false
	case left != nil || !errors.Is(err, scheduler.ErrDuplicateJob):
		s.w.violate(s.path(), "errors", "%s cannot add %s, though it has withdrawn it: %v", m.a.name, j.name, err)
	}
}

func (s *jobsScene) update(m *jobsMember, j *changingJob, r *rand.Rand) {
	job, version := s.definition(m, j, r)
	err := m.Update(job)
	s.told(m.a, "update", j, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.updates[j.name] = definitionUpdate{version, time.Now()}
	case !errors.Is(err, scheduler.ErrUnknownJob):
		s.w.violate(s.path(), "errors", "%s cannot update %s: %v", m.a.name, j.name, err)
	}
}

func (s *jobsScene) withdraw(m *jobsMember, j *changingJob) {
	err := m.Withdraw(j.name)
	s.told(m.a, "withdraw", j, err)
	zxid := s.w.zk.Zxid()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.left[j.name] = &withdrawal{zxid: zxid}
	case !errors.Is(err, scheduler.ErrUnknownJob):
		s.w.violate(s.path(), "errors", "%s cannot withdraw %s: %v", m.a.name, j.name, err)
	}
}

// remove removes a job, by the process's member or, as an operator's tool does, by a scheduler that does not run.
func (s *jobsScene) remove(a *actor, m *jobsMember, j *changingJob) {
	by := scheduler.New(a.client, s.path())
	if m != nil && oneIn(a.r, 2) {
		by = m.Scheduler
	}
	ctx, cancel := a.patience()
	defer cancel()
	s.mu.Lock()
	j.removals++
	s.mu.Unlock()
	began := time.Now()
	err := by.Remove(ctx, j.name)
	s.told(a, "remove", j, err)
	happened, since := s.audit.removals(j.name), s.audit.registeredSince(j.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		if j.removed++; happened < j.removed {
			s.w.violate(s.path(), "removal", "%s was removed %d times, and told so %d times", j.name, happened, j.removed)
		}
	case errors.Is(err, scheduler.ErrUnknownJob):
		j.removals--
		if !since.IsZero() && since.Before(began) {
			s.w.violate(s.path(), "errors", "%s cannot remove %s, which is registered since %v: %v", a.name, j.name, since, err)
		}
	case a.ctx.Err() == nil && !a.excused(ctx, err):
		s.w.violate(s.path(), "errors", "%s cannot remove %s: %v", a.name, j.name, err)
	}
}

func (s *jobsScene) told(a *actor, what string, j *changingJob, err error) {
	s.w.h.note(s.path(), "%s: %s %s: %s", a.name, what, j.name, outcome(err))
	if err == nil {
		s.w.count("job " + what)
	}
}

// checkRegistration checks that no member registers a job which it had before: that one was removed.
func (s *jobsScene) checkRegistration(job string, by *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[by]
	if m != nil && m.ran[job] && time.Since(m.began) > 3*s.w.plan.timeout { // those before it may still have had a request under way
		s.w.violate(s.path(), "removal", "%s, which has run %s and was not given it again, registers it anew", m.a.name, job)
	}
}

// run is what the jobs do: they take some time, some of them a long one, and heed their contexts.
func (s *jobsScene) run(m *jobsMember, j *changingJob, version int, ctx context.Context, run scheduler.Run) error {
	called := time.Now()
	late := m.a.gate() && ctx.Err() != nil
	c := &jobsRun{m: m, ctx: ctx, run: run}
	s.begin(j, version, called, c, late)
	r := stream(s.w.plan.seed, s.path()+run.Job+run.ID)
	length := pick(r, 0, between(r, 0, time.Second), between(r, 0, 8*time.Second))
	if oneIn(r, 10) {
		length = between(r, 0, 3*time.Minute)
	}
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	m.a.gate()
	s.end(j, c)
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// begin checks a run that begins. A run is late whose context ended before its function could know of it.
func (s *jobsScene) begin(j *changingJob, version int, called time.Time, c *jobsRun, late bool) {
	s.w.count("changing run")
	m, run := c.m, c.run
	generation, claimed := s.audit.claimed(j.name, run.Token)
	s.w.h.note(s.path(), "%s runs %s %s, attempt %d, token %d, by definition %d", m.a.name, run.Job, run.ID, run.Attempt, run.Token, version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !claimed {
		s.w.violate(s.path(), "at most once", "%s runs %s, which was not claimed by transaction %d", m.a.name, run.ID, run.Token)
	}
	c.of = generation
	if version == m.versions[j.name] {
		m.ran[j.name] = m.left[j.name] == nil
	}
	if update := m.updates[j.name]; version < update.version && update.at.Before(called) {
		s.w.violate(s.path(), "definition", "%s runs %s by definition %d, though it was updated to %d", m.a.name, run.ID, version, update.version)
	}
	if left := m.left[j.name]; left != nil && run.Token > left.zxid {
		if left.runs++; left.runs > 1 { // one claim may have been under way
			s.w.violate(s.path(), "withdrawal", "%s runs %s, though it has withdrawn %s by transaction %d", m.a.name, run.ID, j.name, left.zxid)
		}
	}
	if !late {
		for other := range j.running {
			if j.fixed.Overlap != scheduler.OverlapAllow && s.goesOn(other) && s.goesOn(c) {
				s.w.violate(s.path(), "overlap", "%s runs %s while %s runs %s", m.a.name, run.ID, other.m.a.name, other.run.ID)
			}
		}
	}
	j.running[c] = true
}

// end checks why a run's context has ended.
func (s *jobsScene) end(j *changingJob, c *jobsRun) {
	why := context.Cause(c.ctx)
	removed := !s.audit.removedAt(j.name, c.of).IsZero()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(j.running, c)
	switch {
	case errors.Is(why, scheduler.ErrRemoved) && !removed:
		s.w.violate(s.path(), "removal", "%s is ended since %s was removed, which it was not", c.run.ID, j.name)
	case errors.Is(why, scheduler.ErrReplaced) && j.fixed.Overlap != scheduler.OverlapReplace:
		s.w.violate(s.path(), "overlap", "%s of %s is replaced, though its policy is %q", c.run.ID, j.name, j.fixed.Overlap)
	}
}

// goesOn tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *jobsScene) goesOn(c *jobsRun) bool {
	return !over(c.ctx) && !c.m.a.frozen() && c.m.a.ctx.Err() == nil && !s.w.isDoomedProcess(c.m.a.process)
}

// checkCaughtUp checks at the end of the calm that all that is due was seen to, and that no run of a removed job goes on.
func (s *jobsScene) checkCaughtUp(a *actor) {
	limit := time.Now().Add(-s.slack())
	for _, j := range s.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		st, err := scheduler.New(s.w.operator, s.path()).State(ctx, j.name)
		cancel()
		if err != nil {
			s.w.violate(s.path(), "progress", "the state of %s: %v", j.name, err)
			continue
		}
		if next := st.Next(time.Time{}); !next.IsZero() && next.Before(limit) {
			s.w.violate(s.path(), "progress", "%s: the tick of %v was not seen to by %v: %+v", j.name, next, time.Now(), st)
		}
		s.mu.Lock()
		for c := range j.running {
			if removed := s.audit.removedAt(j.name, c.of); !removed.IsZero() && removed.Before(limit) && s.goesOn(c) {
				s.w.violate(s.path(), "removal", "%s: %s goes on in %s, though it was removed at %v", j.name, c.run.ID, c.m.a.name, removed)
			}
		}
		s.mu.Unlock()
	}
}

// settled checks that no job was removed more often than somebody asked for it.
func (s *jobsScene) settled() {
	for _, j := range s.jobs {
		happened := s.audit.removals(j.name)
		s.mu.Lock()
		if happened < j.removed || happened > j.removals {
			s.w.violate(s.path(), "removal", "%s was removed %d times; %d were told so, %d may have asked", j.name, happened, j.removed, j.removals)
		}
		s.mu.Unlock()
	}
}
