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

func init() { newWorkload["control"] = newControlWorkload }

// controlWorkload is a cluster of schedulers whose jobs are paused, resumed, triggered and
// rescheduled while they run. Members have wrong wall clocks and limits of concurrent runs.
type controlWorkload struct {
	schedulerCluster
	jobs []*controlledJob

	mu sync.Mutex
}

// controlledJob is the state of a job. One actor at a time changes the job, so that changes have an
// order. The workload's mutex guards the fields below changing.
type controlledJob struct {
	scheduler.Job
	specs    []string
	changing chan struct{}

	began             map[string]bool // attempts of runs that have begun
	ids               map[string]bool // runs that have begun
	running           map[*controlledRun]bool
	pausedAt          int64 // zxid from which all claims are made while the job is paused; 0 if unknown
	resumeUncertain   bool  // the outcome of a Resume is unknown: it may still be carried out
	confirmedTriggers int   // Trigger calls that returned nil
	possibleTriggers  int   // Trigger calls that may have been carried out
	manualRuns        int   // first attempts of manual runs that have begun
}

// controlledRun is a call of a job's function.
type controlledRun struct {
	actor *actor
	ctx   context.Context
	run   scheduler.Run
}

// controlledMember is a member, and the number of functions that it runs.
type controlledMember struct {
	*scheduler.Scheduler
	limit int // 0: no limit

	running int // guarded by the workload's mutex
}

func newControlWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &controlWorkload{schedulerCluster: schedulerCluster{workloadBase{sim, spec}, oneIn(r, 2)}}
	for i := range 1 + r.IntN(4) {
		j := &controlledJob{
			Job: scheduler.Job{
				Name: fmt.Sprintf("job%d", i), Deadline: durationBetween(r, time.Second, 20*time.Second),
				Misfire:   pickOne(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
				Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread),
				Guarantee: pickOne(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap:   pickOne(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
				MinHold:   pickOne(r, 0, 0, durationBetween(r, 0, 5*time.Second)),
			},
			specs: []string{"* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"}, changing: make(chan struct{}, 1),
			began: map[string]bool{}, ids: map[string]bool{}, running: map[*controlledRun]bool{},
		}
		j.Spec = pickOne(r, j.specs...)
		s.jobs = append(s.jobs, j)
	}
	newJobAudit(sim, s.path(), nil)
	return s
}

// runActor changes jobs.
func (s *controlWorkload) runActor(a *actor) {
	s.startMembers(a, s.timeAfterHeal(), s.runMember)
	for a.nextStep() {
		s.changeJob(a)
	}
}

// timeAfterHeal is how long members run after all faults are healed.
func (s *controlWorkload) timeAfterHeal() time.Duration { return s.allowedDelay() + time.Minute }

// allowedDelay is how late a tick may be handled without faults: a crashed member's session has to
// end first, and the runs of all jobs may wait for a member's only slot.
func (s *controlWorkload) allowedDelay() time.Duration {
	return 3*s.sim.plan.sessionTimeout + 20*time.Second + time.Duration(2*len(s.jobs))*maxRunTime
}

const maxRunTime = 8 * time.Second

// runMember runs a member. The last one, without end, checks at its end that the jobs have caught
// up.
func (s *controlWorkload) runMember(a *actor, length time.Duration, end <-chan struct{}) {
	m := &controlledMember{limit: pickOne(a.rng, 0, 1, 1, 2)}
	options := []scheduler.Option{scheduler.WithNow(a.now),
		scheduler.WithGrace(durationBetween(a.rng, 0, 5*time.Second))}
	if m.limit > 0 {
		options = append(options, scheduler.WithMaxConcurrent(m.limit))
	}
	m.Scheduler = scheduler.New(a.client, s.path(), options...)
	for _, j := range s.jobs {
		job := j.Job
		job.Run = func(ctx context.Context, run scheduler.Run) error { return s.runJob(a, m, j, ctx, run) }
		if err := m.Add(job); err != nil {
			panic(err)
		}
	}
	s.runScheduler(a, m.Scheduler, func(_ context.Context, stopped <-chan struct{}) {
		if lasts(length, end, stopped) && end == nil {
			s.checkCaughtUp(a)
		}
	})
}

// runJob is the jobs' function: it takes some time, and ends early with its context.
func (s *controlWorkload) runJob(a *actor, m *controlledMember, j *controlledJob, ctx context.Context,
	run scheduler.Run) error {
	late := a.waitWhileFrozen() && ctx.Err() != nil
	c := &controlledRun{a, ctx, run}
	s.checkRun(m, j, c, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	a.runFor(ctx, pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, maxRunTime)))
	s.mu.Lock()
	defer s.mu.Unlock()
	m.running--
	delete(j.running, c)
	if oneIn(r, 5) {
		return errors.New("the run failed")
	}
	return context.Cause(ctx)
}

// checkRun checks a run that begins. late: its context ended before its function could know.
func (s *controlWorkload) checkRun(m *controlledMember, j *controlledJob, c *controlledRun, late bool) {
	s.sim.countOperation("controlled run")
	run := c.run
	s.sim.history.add(s.path(), "%s runs %s %s, attempt %d, manual %v, token %d", c.actor.name, run.Job, run.ID,
		run.Attempt, run.Manual, run.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.running++; m.limit > 0 && m.running > m.limit {
		s.sim.addViolation(s.path(), "slots", "%s runs %d functions at once, at most %d are allowed", c.actor.name,
			m.running, m.limit)
	}
	s.checkOnce(j, run)
	if j.pausedAt > 0 && run.Token > j.pausedAt && !run.Manual {
		s.sim.addViolation(s.path(), "pause",
			"%s was claimed by transaction %d, after the job was paused by transaction %d", run.ID,
			run.Token, j.pausedAt)
	}
	if late {
		j.running[c] = true
		return
	}
	for other := range j.running {
		if j.Overlap != scheduler.OverlapAllow && other.actor.isRunning(other.ctx) && c.actor.isRunning(c.ctx) {
			s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s runs %s", c.actor.name, run.ID,
				other.actor.name, other.run.ID)
		}
	}
	j.running[c] = true
}

// checkOnce checks that each attempt is made once, that only repeatable runs are repeated, and that
// each manual run was triggered.
func (s *controlWorkload) checkOnce(j *controlledJob, run scheduler.Run) {
	attempt := fmt.Sprint(run.Tick.Format(time.RFC3339), " ", run.Attempt)
	if run.Manual {
		attempt = fmt.Sprint(run.ID, " ", run.Attempt)
	}
	if j.began[attempt] {
		s.sim.addViolation(s.path(), "at most once", "%s of %s was run before as attempt %d", run.ID,
			j.Name, run.Attempt)
	}
	j.began[attempt] = true
	if j.ids[run.ID] {
		s.sim.addViolation(s.path(), "at most once", "%s of %s was run before", run.ID, j.Name)
	}
	j.ids[run.ID] = true
	if run.Attempt > 1 && (j.Guarantee != scheduler.AtLeastOnce || run.Attempt > 1+scheduler.MaxReruns) {
		s.sim.addViolation(s.path(), "at most once", "%s of %s is run as attempt %d", run.ID, j.Name, run.Attempt)
	}
	if run.Manual && run.Attempt == 1 {
		if j.manualRuns++; j.manualRuns > j.possibleTriggers {
			s.sim.addViolation(s.path(), "triggers", "%d manual runs of %s have begun, at most %d were triggered",
				j.manualRuns, j.Name, j.possibleTriggers)
		}
	}
}

// changeJob changes a job, unless another actor does.
func (s *controlWorkload) changeJob(a *actor) {
	j := s.jobs[a.rng.IntN(len(s.jobs))]
	select {
	case j.changing <- struct{}{}:
	default:
		return
	}
	defer func() { <-j.changing }()
	ctx, cancel := a.callContext()
	defer cancel()
	m := scheduler.New(a.client, s.path())
	switch a.rng.IntN(8) {
	case 0:
		s.pause(a, ctx, m, j)
	case 1, 2:
		s.resume(a, ctx, m, j)
	case 3, 4, 5:
		s.trigger(a, ctx, m, j)
	case 6:
		s.reschedule(a, ctx, m, j, a.rng)
	default:
		_, err := m.State(ctx, j.Name)
		s.logChange(a, ctx, "read the state of", j, err)
	}
}

// logChange logs a change and checks its error. It reports whether the change was made (done), or
// not made (refused). The outcome is unknown if the context or the process ended.
func (s *controlWorkload) logChange(a *actor, ctx context.Context, what string, j *controlledJob,
	err error) (done, refused bool) {
	s.sim.history.add(s.path(), "%s: %s %s: %s", a.name, what, j.Name, outcome(err))
	switch {
	case err == nil:
		s.sim.countOperation("control")
		return true, false
	case errors.Is(err, framework.ErrNotFound), errors.Is(err, scheduler.ErrTooManyPending):
		// no member has registered it so far
		return false, true
	case a.ctx.Err() == nil && !a.isExpectedError(ctx, err):
		s.sim.addViolation(s.path(), "errors", "%s cannot %s %s: %v", a.name, what, j.Name, err)
	}
	return false, false
}

func (s *controlWorkload) pause(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	if done, _ := s.logChange(a, ctx, "pause", j, m.Pause(ctx, j.Name)); !done {
		return
	}
	zxid := s.sim.zk.Zxid()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !j.resumeUncertain && j.pausedAt == 0 {
		j.pausedAt = zxid
	}
}

func (s *controlWorkload) resume(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	s.mu.Lock()
	j.pausedAt = 0
	s.mu.Unlock()
	done, refused := s.logChange(a, ctx, "resume", j, m.Resume(ctx, j.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	j.resumeUncertain = !done && (j.resumeUncertain || !refused)
}

func (s *controlWorkload) trigger(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	s.mu.Lock()
	j.possibleTriggers++
	s.mu.Unlock()
	done, refused := s.logChange(a, ctx, "trigger", j, m.Trigger(ctx, j.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	if done {
		j.confirmedTriggers++
	}
	if refused {
		j.possibleTriggers--
	}
}

func (s *controlWorkload) reschedule(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob,
	r *rand.Rand) {
	spec := pickOne(r, j.specs...)
	s.logChange(a, ctx, "reschedule", j, m.Reschedule(ctx, j.Name, spec, nil))
}

// checkCaughtUp checks at the end of the last members that no tick and no pending run is overdue.
func (s *controlWorkload) checkCaughtUp(a *actor) {
	for _, j := range s.jobs {
		st, err := s.state(j.Name)
		if err != nil {
			s.sim.addViolation(s.path(), "ticks", "the state of %s: %v", j.Name, err)
			continue
		}
		limit := time.Now().Add(-s.allowedDelay())
		s.checkNextTick(j.Name, st, limit)
		for _, waiting := range st.Pending {
			if waiting.Attempt > 1 && !waiting.Manual && !st.Paused.IsZero() {
				continue // a pause holds repetitions of ticks back
			}
			if waiting.Tick.Before(limit.Add(-time.Duration(len(st.Pending)) * maxRunTime)) {
				s.sim.addViolation(s.path(), "progress", "%s: the pending run of %v has not begun at %v: %+v", j.Name,
					waiting.Tick, time.Now(), st)
			}
		}
	}
}

// checkAtEnd checks that each manual run is counted. jobAudit checks the ticks.
func (s *controlWorkload) checkAtEnd() {
	for _, j := range s.jobs {
		if st, ok := s.registeredState(j.Name); ok {
			s.checkCounts(j, st)
		}
	}
}

func (s *controlWorkload) checkCounts(j *controlledJob, st scheduler.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun := int64(len(j.ids)); begun > st.Number {
		s.sim.addViolation(s.path(), "ticks", "%s: %d runs have begun, %d are recorded", j.Name, begun, st.Number)
	}
	waiting := 0
	for _, p := range st.Pending {
		if p.Manual && p.Attempt == 1 {
			waiting++
		}
	}
	if unseen := int(st.Number) - len(j.ids); j.manualRuns+waiting+unseen < j.confirmedTriggers {
		s.sim.addViolation(s.path(), "triggers",
			"%s: %d manual runs have begun, %d are pending, at most %d were lost; %d were triggered", j.Name,
			j.manualRuns, waiting, unseen, j.confirmedTriggers)
	}
}
