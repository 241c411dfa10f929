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

func init() { newWorkload["jobs"] = newJobsWorkload }

// jobsWorkload is a cluster of schedulers whose members add, update, withdraw and remove jobs while they run. In half of the seeds the
// members go on for a while after all faults are healed, have all jobs then, and must catch up.
type jobsWorkload struct {
	workloadBase
	jobs         []*changingJob
	runAfterHeal bool
	audit        *jobAudit

	mu      sync.Mutex
	members map[*process]*jobsMember // those that run
}

// changingJob is a job, and what is the same in all its definitions. The scene's mu guards what is below it.
type changingJob struct {
	name  string
	fixed scheduler.Job
	specs []string

	running           map[*jobsRun]bool
	possibleRemovals  int // Removes that may have happened
	confirmedRemovals int // Removes that have returned nil
}

// jobsRun is a call of a job's function.
type jobsRun struct {
	member     *jobsMember
	ctx        context.Context
	run        scheduler.Run
	generation int64 // the registration that it was claimed in
}

// jobsMember is a scheduler in a process. Its own jobs are changed by one actor at a time.
type jobsMember struct {
	*scheduler.Scheduler
	actor    *actor
	began    time.Time
	changing chan struct{}

	// Guarded by the scene's mu.
	versions  map[string]int              // of the definitions given so far
	updates   map[string]definitionUpdate // the latest that has returned
	withdrawn map[string]*withdrawal
	ran       map[string]bool // a run of the definition that the member has has begun
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

func newJobsWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &jobsWorkload{workloadBase: workloadBase{sim, spec}, runAfterHeal: oneIn(r, 2), members: map[*process]*jobsMember{}}
	for i := range 1 + r.IntN(3) {
		s.jobs = append(s.jobs, &changingJob{
			name: fmt.Sprintf("job%d", i), specs: []string{"* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"}, running: map[*jobsRun]bool{},
			fixed: scheduler.Job{
				Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread), Guarantee: pickOne(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap: pickOne(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
			},
		})
	}
	s.audit = newJobAudit(sim, s.path(), s.checkRegistration)
	return s
}

// mayRemain allows for what the scheduler scene allows for.
func (s *jobsWorkload) mayRemain(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// runActor changes jobs. The first actor of each process lets it be a member too.
func (s *jobsWorkload) runActor(a *actor) {
	if a.name == a.process.name+"a" {
		member := newActor(a.process, s.spec, 20)
		a.sim.actors.Go(func() { s.runMembers(member) })
	}
	for a.nextStep() {
		s.changeJob(a)
		a.sleep(a.ctx, durationBetween(a.rng, 0, 3*time.Second))
	}
}

// runMembers is a member for some time, and then another one, and so on.
func (s *jobsWorkload) runMembers(a *actor) {
	for a.nextStep() {
		s.runScheduler(a, durationBetween(a.rng, a.maxPause, 20*a.maxPause), a.sim.programEnd)
	}
	if s.runAfterHeal && a.ctx.Err() == nil {
		a.sim.history.add(s.path(), "%s goes on for %v", a.name, s.timeAfterHeal())
		s.runScheduler(a, s.timeAfterHeal(), nil)
	}
}

// timeAfterHeal is how long members go on after all is healed: changes that are under way end, then all members get all jobs.
func (s *jobsWorkload) timeAfterHeal() time.Duration {
	return s.settleTime() + s.allowedDelay() + time.Minute
}

func (s *jobsWorkload) settleTime() time.Duration {
	return 2*s.sim.plan.sessionTimeout + 10*time.Second
}

// allowedDelay is how late a job may be seen to when all is well: a dead member's session has to end first.
func (s *jobsWorkload) allowedDelay() time.Duration {
	return 3*s.sim.plan.sessionTimeout + 20*time.Second
}

// runScheduler runs a scheduler for a time, or until over is closed. Who serves through the calm has all jobs, and looks at its end
// whether they were seen to.
func (s *jobsWorkload) runScheduler(a *actor, length time.Duration, end <-chan struct{}) {
	m := &jobsMember{
		actor: a, began: time.Now(), changing: make(chan struct{}, 1), versions: map[string]int{}, updates: map[string]definitionUpdate{}, withdrawn: map[string]*withdrawal{}, ran: map[string]bool{},
	}
	m.Scheduler = scheduler.New(a.client, s.path(), scheduler.WithNow(a.now), scheduler.WithDrain(durationBetween(a.rng, 0, 5*time.Second)))
	for i, j := range s.jobs {
		if i == 0 || end == nil || oneIn(a.rng, 2) {
			s.add(m, j, a.rng)
		}
	}
	s.setMember(a.process, m)
	defer s.setMember(a.process, nil)
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	a.sim.actors.Go(func() {
		defer cancel()
		if end == nil {
			_ = framework.Pause(ctx, s.settleTime())
			for _, j := range s.jobs {
				s.add(m, j, a.rng)
			}
			length -= s.settleTime()
		}
		select {
		case <-time.After(length):
			if end == nil {
				s.checkCaughtUp(a)
			}
		case <-end:
		case <-done:
		}
	})
	err := m.Run(ctx)
	a.waitWhileFrozen()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.sim.addViolation(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// setMember makes a member the one that its process's actors change.
func (s *jobsWorkload) setMember(p *process, m *jobsMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[p] = m; m == nil {
		delete(s.members, p)
	}
}

// definition draws another definition of a job.
func (s *jobsWorkload) definition(m *jobsMember, j *changingJob, r *rand.Rand) (scheduler.Job, int) {
	s.mu.Lock()
	m.versions[j.name]++
	version := m.versions[j.name]
	s.mu.Unlock()
	job := j.fixed
	job.Name, job.Spec, job.Deadline = j.name, pickOne(r, j.specs...), durationBetween(r, time.Second, 20*time.Second)
	job.Misfire = pickOne(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll)
	job.Run = func(ctx context.Context, run scheduler.Run) error { return s.runJob(m, j, version, ctx, run) }
	return job, version
}

// changeJob changes the jobs of the process's member, or removes one for all.
func (s *jobsWorkload) changeJob(a *actor) {
	j := s.jobs[a.rng.IntN(len(s.jobs))]
	s.mu.Lock()
	m := s.members[a.process]
	s.mu.Unlock()
	if m == nil || oneIn(a.rng, 5) {
		s.remove(a, m, j)
		return
	}
	m.changing <- struct{}{}
	defer func() { <-m.changing }()
	switch a.rng.IntN(4) {
	case 0, 1:
		s.add(m, j, a.rng)
	case 2:
		s.update(m, j, a.rng)
	default:
		s.withdraw(m, j)
		if oneIn(a.rng, 2) {
			s.add(m, j, a.rng)
		}
	}
}

func (s *jobsWorkload) add(m *jobsMember, j *changingJob, r *rand.Rand) {
	job, _ := s.definition(m, j, r)
	s.mu.Lock()
	withdrawn := m.withdrawn[j.name]
	s.mu.Unlock()
	err := m.Add(job)
	s.logChange(m.actor, "add", j, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.withdrawn[j.name], m.ran[j.name] = nil, false
	case withdrawn != nil || !errors.Is(err, scheduler.ErrDuplicateJob):
		s.sim.addViolation(s.path(), "errors", "%s cannot add %s, though it has withdrawn it: %v", m.actor.name, j.name, err)
	}
}

func (s *jobsWorkload) update(m *jobsMember, j *changingJob, r *rand.Rand) {
	job, version := s.definition(m, j, r)
	err := m.Update(job)
	s.logChange(m.actor, "update", j, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.updates[j.name] = definitionUpdate{version, time.Now()}
	case !errors.Is(err, scheduler.ErrUnknownJob):
		s.sim.addViolation(s.path(), "errors", "%s cannot update %s: %v", m.actor.name, j.name, err)
	}
}

func (s *jobsWorkload) withdraw(m *jobsMember, j *changingJob) {
	err := m.Withdraw(j.name)
	s.logChange(m.actor, "withdraw", j, err)
	zxid := s.sim.zk.Zxid()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.withdrawn[j.name] = &withdrawal{zxid: zxid}
	case !errors.Is(err, scheduler.ErrUnknownJob):
		s.sim.addViolation(s.path(), "errors", "%s cannot withdraw %s: %v", m.actor.name, j.name, err)
	}
}

// remove removes a job, by the process's member or, as an operator's tool does, by a scheduler that does not run.
func (s *jobsWorkload) remove(a *actor, m *jobsMember, j *changingJob) {
	by := scheduler.New(a.client, s.path())
	if m != nil && oneIn(a.rng, 2) {
		by = m.Scheduler
	}
	ctx, cancel := a.callContext()
	defer cancel()
	s.mu.Lock()
	j.possibleRemovals++
	s.mu.Unlock()
	began := time.Now()
	err := by.Remove(ctx, j.name)
	s.logChange(a, "remove", j, err)
	happened, since := s.audit.removals(j.name), s.audit.registeredSince(j.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		if j.confirmedRemovals++; happened < j.confirmedRemovals {
			s.sim.addViolation(s.path(), "removal", "%s was removed %d times, and told so %d times", j.name, happened, j.confirmedRemovals)
		}
	case errors.Is(err, scheduler.ErrUnknownJob):
		j.possibleRemovals--
		if !since.IsZero() && since.Before(began) {
			s.sim.addViolation(s.path(), "errors", "%s cannot remove %s, which is registered since %v: %v", a.name, j.name, since, err)
		}
	case a.ctx.Err() == nil && !a.isExpectedError(ctx, err):
		s.sim.addViolation(s.path(), "errors", "%s cannot remove %s: %v", a.name, j.name, err)
	}
}

func (s *jobsWorkload) logChange(a *actor, what string, j *changingJob, err error) {
	s.sim.history.add(s.path(), "%s: %s %s: %s", a.name, what, j.name, outcome(err))
	if err == nil {
		s.sim.countOperation("job " + what)
	}
}

// checkRegistration checks that no member registers a job which it had before: that one was removed.
func (s *jobsWorkload) checkRegistration(job string, by *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[by]
	if m != nil && m.ran[job] && time.Since(m.began) > 3*s.sim.plan.sessionTimeout { // those before it may still have had a request under way
		s.sim.addViolation(s.path(), "removal", "%s, which has run %s and was not given it again, registers it anew", m.actor.name, job)
	}
}

// runJob is what the jobs do: they take some time, some of them a long one, and heed their contexts.
func (s *jobsWorkload) runJob(m *jobsMember, j *changingJob, version int, ctx context.Context, run scheduler.Run) error {
	called := time.Now()
	late := m.actor.waitWhileFrozen() && ctx.Err() != nil
	c := &jobsRun{member: m, ctx: ctx, run: run}
	s.checkRun(j, version, called, c, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	length := pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, 8*time.Second))
	if oneIn(r, 10) {
		length = durationBetween(r, 0, 3*time.Minute)
	}
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	m.actor.waitWhileFrozen()
	s.checkEnd(j, c)
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// checkRun checks a run that begins. A run is late whose context ended before its function could know of it.
func (s *jobsWorkload) checkRun(j *changingJob, version int, called time.Time, c *jobsRun, late bool) {
	s.sim.countOperation("changing run")
	m, run := c.member, c.run
	generation, claimed := s.audit.generationOf(j.name, run.Token)
	s.sim.history.add(s.path(), "%s runs %s %s, attempt %d, token %d, by definition %d", m.actor.name, run.Job, run.ID, run.Attempt, run.Token, version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !claimed {
		s.sim.addViolation(s.path(), "at most once", "%s runs %s, which was not claimed by transaction %d", m.actor.name, run.ID, run.Token)
	}
	c.generation = generation
	if version == m.versions[j.name] {
		m.ran[j.name] = m.withdrawn[j.name] == nil
	}
	if update := m.updates[j.name]; version < update.version && update.at.Before(called) {
		s.sim.addViolation(s.path(), "definition", "%s runs %s by definition %d, though it was updated to %d", m.actor.name, run.ID, version, update.version)
	}
	if withdrawn := m.withdrawn[j.name]; withdrawn != nil && run.Token > withdrawn.zxid {
		if withdrawn.runs++; withdrawn.runs > 1 { // one claim may have been under way
			s.sim.addViolation(s.path(), "withdrawal", "%s runs %s, though it has withdrawn %s by transaction %d", m.actor.name, run.ID, j.name, withdrawn.zxid)
		}
	}
	if !late {
		for other := range j.running {
			if j.fixed.Overlap != scheduler.OverlapAllow && s.isActive(other) && s.isActive(c) {
				s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s runs %s", m.actor.name, run.ID, other.member.actor.name, other.run.ID)
			}
		}
	}
	j.running[c] = true
}

// checkEnd checks why a run's context has ended.
func (s *jobsWorkload) checkEnd(j *changingJob, c *jobsRun) {
	why := context.Cause(c.ctx)
	removed := !s.audit.removedAt(j.name, c.generation).IsZero()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(j.running, c)
	switch {
	case errors.Is(why, scheduler.ErrRemoved) && !removed:
		s.sim.addViolation(s.path(), "removal", "%s is ended since %s was removed, which it was not", c.run.ID, j.name)
	case errors.Is(why, scheduler.ErrReplaced) && j.fixed.Overlap != scheduler.OverlapReplace:
		s.sim.addViolation(s.path(), "overlap", "%s of %s is replaced, though its policy is %q", c.run.ID, j.name, j.fixed.Overlap)
	}
}

// isActive tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *jobsWorkload) isActive(c *jobsRun) bool {
	return !hasEnded(c.ctx) && !c.member.actor.frozen() && c.member.actor.ctx.Err() == nil && !s.sim.isHitByOperator(c.member.actor.process)
}

// checkCaughtUp checks at the end of the calm that all that is due was seen to, and that no run of a removed job goes on.
func (s *jobsWorkload) checkCaughtUp(a *actor) {
	limit := time.Now().Add(-s.allowedDelay())
	for _, j := range s.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		st, err := scheduler.New(s.sim.operator, s.path()).State(ctx, j.name)
		cancel()
		if err != nil {
			s.sim.addViolation(s.path(), "progress", "the state of %s: %v", j.name, err)
			continue
		}
		if next := st.Next(time.Time{}); !next.IsZero() && next.Before(limit) {
			s.sim.addViolation(s.path(), "progress", "%s: the tick of %v was not seen to by %v: %+v", j.name, next, time.Now(), st)
		}
		s.mu.Lock()
		for c := range j.running {
			if removed := s.audit.removedAt(j.name, c.generation); !removed.IsZero() && removed.Before(limit) && s.isActive(c) {
				s.sim.addViolation(s.path(), "removal", "%s: %s goes on in %s, though it was removed at %v", j.name, c.run.ID, c.member.actor.name, removed)
			}
		}
		s.mu.Unlock()
	}
}

// checkAtEnd checks that no job was removed more often than somebody asked for it.
func (s *jobsWorkload) checkAtEnd() {
	for _, j := range s.jobs {
		happened := s.audit.removals(j.name)
		s.mu.Lock()
		if happened < j.confirmedRemovals || happened > j.possibleRemovals {
			s.sim.addViolation(s.path(), "removal", "%s was removed %d times; %d were told so, %d may have asked", j.name, happened, j.confirmedRemovals, j.possibleRemovals)
		}
		s.mu.Unlock()
	}
}
