package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

func init() { newWorkload["jobs"] = newJobsWorkload }

// jobsWorkload is a cluster of schedulers whose members add, update, withdraw and remove jobs while
// they run.
type jobsWorkload struct {
	schedulerCluster
	jobs  []*changingJob
	audit *jobAudit

	mu      sync.Mutex
	members map[*process]*jobsMember // the running members
}

// changingJob is a job, and the part that all its definitions share. The workload's mutex guards
// the fields below specs.
type changingJob struct {
	name  string
	fixed scheduler.Job
	specs []string

	running           map[*jobsRun]bool
	possibleRemovals  int // Remove calls that may have been carried out
	confirmedRemovals int // Remove calls that returned nil
	removing          int // Remove calls that have not returned
}

// jobsRun is a call of a job's function.
type jobsRun struct {
	member     *jobsMember
	ctx        context.Context
	run        scheduler.Run
	generation int64 // the registration in which it was claimed
}

// jobsMember is a member. One actor at a time changes its own jobs.
type jobsMember struct {
	*scheduler.Scheduler
	actor    *actor
	began    time.Time
	changing chan struct{}

	// Guarded by the workload's mutex.
	versions  map[string]int              // number of definitions given so far
	updates   map[string]definitionUpdate // the latest Update that has returned
	added     map[string]int              // the version of the latest Add that has succeeded
	withdrawn map[string]*withdrawal
	ran       map[string]bool // a run of the current definition has begun
}

// definitionUpdate is an Update that has returned: later runs use this definition, or a newer one.
type definitionUpdate struct {
	version int
	at      time.Time
}

// withdrawal is a Withdraw that has returned, and the number of later claims whose runs have begun.
type withdrawal struct {
	zxid int64
	runs int
}

func newJobsWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &jobsWorkload{schedulerCluster: schedulerCluster{workloadBase{sim, spec}, oneIn(r, 2)},
		members: map[*process]*jobsMember{}}
	for i := range 1 + r.IntN(3) {
		s.jobs = append(s.jobs, &changingJob{
			name: fmt.Sprintf("job%d", i), specs: []string{"* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"},
			running: map[*jobsRun]bool{},
			fixed: scheduler.Job{
				Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread),
				Guarantee: pickOne(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap:   pickOne(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
			},
		})
	}
	s.audit = newJobAudit(sim, s.path(), s.checkRegistration)
	return s
}

// runActor changes jobs.
func (s *jobsWorkload) runActor(a *actor) {
	s.startMembers(a, s.timeAfterHeal(), s.runMember)
	for a.nextStep() {
		s.changeJob(a)
		a.sleep(a.ctx, durationBetween(a.rng, 0, 3*time.Second))
	}
}

// timeAfterHeal is how long members run after all faults are healed: pending changes end, then each
// member gets all jobs and catches up.
func (s *jobsWorkload) timeAfterHeal() time.Duration {
	return s.settleTime() + s.allowedDelay() + time.Minute
}

func (s *jobsWorkload) settleTime() time.Duration {
	return 2*s.sim.plan.sessionTimeout + 10*time.Second
}

// allowedDelay is how late a tick may be handled without faults: a crashed member's session has to
// end first.
func (s *jobsWorkload) allowedDelay() time.Duration {
	return 3*s.sim.plan.sessionTimeout + 20*time.Second
}

// runMember runs a member. The last one, without end, gets all jobs, and checks at its end that
// they have caught up.
func (s *jobsWorkload) runMember(a *actor, length time.Duration, end <-chan struct{}) {
	m := &jobsMember{
		actor: a, began: time.Now(), changing: make(chan struct{}, 1), versions: map[string]int{},
		updates: map[string]definitionUpdate{}, added: map[string]int{}, withdrawn: map[string]*withdrawal{},
		ran: map[string]bool{},
	}
	m.Scheduler = scheduler.New(a.client, s.path(), scheduler.WithNow(a.now),
		scheduler.WithGrace(durationBetween(a.rng, 0, 5*time.Second)))
	for i, j := range s.jobs {
		if i == 0 || end == nil || oneIn(a.rng, 2) {
			s.add(m, j, a.rng)
		}
	}
	s.setMember(a.process, m)
	defer s.setMember(a.process, nil)
	s.runScheduler(a, m.Scheduler, func(ctx context.Context, stopped <-chan struct{}) {
		if end == nil {
			select {
			case <-time.After(s.settleTime()):
			case <-ctx.Done():
			}
			for _, j := range s.jobs {
				s.waitForRemovals(ctx, j)
				s.add(m, j, a.rng)
			}
			length -= s.settleTime()
		}
		if lasts(length, end, stopped) && end == nil {
			s.checkCaughtUp(a)
		}
	})
}

// waitForRemovals waits until no call removes the job: beside a job that runs each second, one that
// began before the program was over may take minutes.
func (s *jobsWorkload) waitForRemovals(ctx context.Context, j *changingJob) {
	for ctx.Err() == nil {
		s.mu.Lock()
		removing := j.removing
		s.mu.Unlock()
		if removing == 0 {
			return
		}
		time.Sleep(time.Second)
	}
}

// setMember sets the member that the process's actors change.
func (s *jobsWorkload) setMember(p *process, m *jobsMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[p] = m; m == nil {
		delete(s.members, p)
	}
}

// definition draws a new definition of a job.
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

// changeJob changes the jobs of the process's member, or removes one in the cluster.
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
	job, version := s.definition(m, j, r)
	s.mu.Lock()
	withdrawn := m.withdrawn[j.name]
	s.mu.Unlock()
	err := m.Add(job)
	s.logChange(m.actor, "add", j, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		m.withdrawn[j.name], m.ran[j.name], m.added[j.name] = nil, false, version
	case withdrawn != nil || !errors.Is(err, framework.ErrInvalid):
		s.sim.addViolation(s.path(), "errors", "%s cannot add %s after it has withdrawn it: %v", m.actor.name, j.name,
			err)
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
	case !errors.Is(err, framework.ErrNotFound):
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
	case !errors.Is(err, framework.ErrNotFound):
		s.sim.addViolation(s.path(), "errors", "%s cannot withdraw %s: %v", m.actor.name, j.name, err)
	}
}

// remove removes a job, by the process's member or by a scheduler that does not run, as an
// operator's tool does.
func (s *jobsWorkload) remove(a *actor, m *jobsMember, j *changingJob) {
	by := scheduler.New(a.client, s.path())
	if m != nil && oneIn(a.rng, 2) {
		by = m.Scheduler
	}
	ctx, cancel := a.callContext()
	defer cancel()
	s.mu.Lock()
	j.possibleRemovals++
	j.removing++
	s.mu.Unlock()
	began := time.Now()
	err := by.Remove(ctx, j.name)
	s.logChange(a, "remove", j, err)
	happened, since := s.audit.removals(j.name), s.audit.registeredSince(j.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.removing--
	switch {
	case err == nil:
		if j.confirmedRemovals++; happened < j.confirmedRemovals {
			s.sim.addViolation(s.path(), "removal", "%s was removed %d times, but %d Remove calls returned nil", j.name,
				happened, j.confirmedRemovals)
		}
	case errors.Is(err, framework.ErrNotFound):
		j.possibleRemovals--
		if !since.IsZero() && since.Before(began) {
			s.sim.addViolation(s.path(), "errors", "%s cannot remove %s, which is registered since %v: %v", a.name,
				j.name, since, err)
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

// checkRegistration checks that a member does not register a removed job again, unless it was added
// again.
func (s *jobsWorkload) checkRegistration(job string, by *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[by]
	if m != nil && m.ran[job] && time.Since(m.began) > 3*s.sim.plan.sessionTimeout {
		// an earlier member's request may still be pending
		s.sim.addViolation(s.path(), "removal", "%s has run %s, and registers it again without another Add",
			m.actor.name, job)
	}
}

// runJob is the jobs' function: it takes some time, sometimes a long one, and ends early with its
// context.
func (s *jobsWorkload) runJob(m *jobsMember, j *changingJob, version int, ctx context.Context,
	run scheduler.Run) error {
	called := time.Now()
	late := m.actor.waitWhileFrozen() && ctx.Err() != nil
	c := &jobsRun{member: m, ctx: ctx, run: run}
	s.checkRun(j, version, called, c, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	length := pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, 8*time.Second))
	if oneIn(r, 10) {
		length = durationBetween(r, 0, 3*time.Minute)
	}
	m.actor.runFor(ctx, length)
	s.checkEnd(j, c)
	if oneIn(r, 5) {
		return errors.New("the run failed")
	}
	return context.Cause(ctx)
}

// checkRun checks a run that begins. late: its context ended before its function could know.
func (s *jobsWorkload) checkRun(j *changingJob, version int, called time.Time, c *jobsRun, late bool) {
	s.sim.countOperation("changing run")
	m, run := c.member, c.run
	generation, claimed := s.audit.generationOf(j.name, run.Token)
	s.sim.history.add(s.path(), "%s runs %s %s, attempt %d, token %d, by definition %d", m.actor.name, run.Job, run.ID,
		run.Attempt, run.Token, version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !claimed {
		s.sim.addViolation(s.path(), "at most once", "%s runs %s, which was not claimed by transaction %d",
			m.actor.name, run.ID, run.Token)
	}
	c.generation = generation
	if version == m.versions[j.name] {
		m.ran[j.name] = m.withdrawn[j.name] == nil
	}
	// A claim that was under way when the job was withdrawn runs the withdrawn definition, whatever
	// has been added since.
	if update := m.updates[j.name]; m.added[j.name] <= version && version < update.version && update.at.Before(called) {
		s.sim.addViolation(s.path(), "definition", "%s runs %s by definition %d after it was updated to %d",
			m.actor.name, run.ID, version, update.version)
	}
	if withdrawn := m.withdrawn[j.name]; withdrawn != nil && run.Token > withdrawn.zxid {
		if withdrawn.runs++; withdrawn.runs > 1 { // one claim may have been pending
			s.sim.addViolation(s.path(), "withdrawal", "%s runs %s after it has withdrawn %s by transaction %d",
				m.actor.name, run.ID, j.name, withdrawn.zxid)
		}
	}
	if !late {
		for other := range j.running {
			if j.fixed.Overlap != scheduler.OverlapAllow && other.member.actor.isRunning(other.ctx) &&
				c.member.actor.isRunning(c.ctx) {
				s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s runs %s", m.actor.name, run.ID,
					other.member.actor.name, other.run.ID)
			}
		}
	}
	j.running[c] = true
}

// checkEnd checks the cause of the end of a run's context.
func (s *jobsWorkload) checkEnd(j *changingJob, c *jobsRun) {
	why := context.Cause(c.ctx)
	removed := !s.audit.removedAt(j.name, c.generation).IsZero()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(j.running, c)
	switch {
	case errors.Is(why, scheduler.ErrRemoved) && !removed:
		s.sim.addViolation(s.path(), "removal", "%s ended because %s was removed, but it was not removed",
			c.run.ID, j.name)
	case errors.Is(why, scheduler.ErrReplaced) && j.fixed.Overlap != scheduler.OverlapReplace:
		s.sim.addViolation(s.path(), "overlap", "%s of %s was replaced, but its policy is %q", c.run.ID, j.name,
			j.fixed.Overlap)
	}
}

// checkCaughtUp checks at the end of the last members that no tick is overdue, and that no run of a
// removed job is alive.
func (s *jobsWorkload) checkCaughtUp(a *actor) {
	limit := time.Now().Add(-s.allowedDelay())
	for _, j := range s.jobs {
		st, err := s.state(j.name)
		if err != nil {
			s.sim.addViolation(s.path(), "progress", "the state of %s: %v", j.name, err)
			continue
		}
		s.checkNextTick(j.name, st, limit)
		s.mu.Lock()
		for c := range j.running {
			if removed := s.audit.removedAt(j.name, c.generation); !removed.IsZero() && removed.Before(limit) &&
				c.member.actor.isRunning(c.ctx) {
				s.sim.addViolation(s.path(), "removal", "%s: %s is alive in %s after the job was removed at %v", j.name,
					c.run.ID, c.member.actor.name, removed)
			}
		}
		s.mu.Unlock()
	}
}

// checkAtEnd checks the number of removals against the Remove calls.
func (s *jobsWorkload) checkAtEnd() {
	for _, j := range s.jobs {
		happened := s.audit.removals(j.name)
		s.mu.Lock()
		if happened < j.confirmedRemovals || happened > j.possibleRemovals {
			s.sim.addViolation(s.path(), "removal",
				"%s was removed %d times; %d Remove calls returned nil, %d may have been carried out", j.name, happened,
				j.confirmedRemovals, j.possibleRemovals)
		}
		s.mu.Unlock()
	}
}
