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

func init() { newWorkload["control"] = newControlWorkload }

// controlWorkload is a cluster of schedulers whose jobs are paused, resumed, triggered and rescheduled while they run. Members have wrong wall
// clocks and bounds of concurrent runs. In half of the seeds the members go on for a while after all faults are healed, and must catch up.
type controlWorkload struct {
	workloadBase
	jobs         []*controlledJob
	runAfterHeal bool

	mu sync.Mutex
}

// controlledJob is a job's books. Only who has its turn changes the job, so that changes have an order. The scene's mu guards what is below it.
type controlledJob struct {
	scheduler.Job
	specs    []string
	changing chan struct{}

	began             map[string]bool // runs of ticks and attempts
	ids               map[string]bool // runs that have begun
	running           map[*controlledRun]bool
	pausedAt          int64 // what is claimed above this transaction is claimed while the job is paused; 0 if that is not known
	resumeUncertain   bool  // the outcome of a Resume is unknown: it may still happen
	confirmedTriggers int   // triggers that have returned nil
	possibleTriggers  int   // triggers that may have happened, those that have returned nil included
	manualRuns        int   // manual runs that have begun as their first attempt
}

// controlledRun is a call of a job's function.
type controlledRun struct {
	actor *actor
	ctx   context.Context
	run   scheduler.Run
}

// controlledMember is a scheduler in a process, and how many functions it runs at present.
type controlledMember struct {
	*scheduler.Scheduler
	limit int // 0: none

	running int // guarded by the scene's mu
}

func newControlWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &controlWorkload{workloadBase: workloadBase{sim, spec}, runAfterHeal: oneIn(r, 2)}
	for i := range 1 + r.IntN(4) {
		j := &controlledJob{
			Job: scheduler.Job{
				Name: fmt.Sprintf("job%d", i), Deadline: durationBetween(r, time.Second, 20*time.Second),
				Misfire:   pickOne(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
				Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread), Guarantee: pickOne(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap: pickOne(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
				MinHold: pickOne(r, 0, 0, durationBetween(r, 0, 5*time.Second)),
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

// mayRemain allows for what the scheduler scene allows for.
func (s *controlWorkload) mayRemain(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// runActor changes jobs. The first actor of each process lets it be a member too.
func (s *controlWorkload) runActor(a *actor) {
	if a.name == a.process.name+"a" {
		member := newActor(a.process, s.spec, 20)
		a.sim.actors.Go(func() { s.runMembers(member) })
	}
	for a.nextStep() {
		s.changeJob(a)
	}
}

// runMembers is a member for some time, and then another one, and so on.
func (s *controlWorkload) runMembers(a *actor) {
	for a.nextStep() {
		s.runScheduler(a, durationBetween(a.rng, a.maxPause, 20*a.maxPause), a.sim.programEnd)
	}
	if s.runAfterHeal && a.ctx.Err() == nil {
		a.sim.history.add(s.path(), "%s goes on for %v", a.name, s.timeAfterHeal())
		s.runScheduler(a, s.timeAfterHeal(), nil)
	}
}

// timeAfterHeal is how long members go on after all is healed.
func (s *controlWorkload) timeAfterHeal() time.Duration { return s.allowedDelay() + time.Minute }

// allowedDelay is how late a job may be seen to when all is well: a dead member's session has to end first, and runs of all jobs may have to wait
// for the only slot of a member.
func (s *controlWorkload) allowedDelay() time.Duration {
	return 3*s.sim.plan.sessionTimeout + 20*time.Second + time.Duration(2*len(s.jobs))*maxRunTime
}

const maxRunTime = 8 * time.Second

// runScheduler runs a scheduler for a time, or until over is closed. Who serves through the calm looks at its end whether the jobs were seen to.
func (s *controlWorkload) runScheduler(a *actor, length time.Duration, end <-chan struct{}) {
	m := &controlledMember{limit: pickOne(a.rng, 0, 1, 1, 2)}
	options := []scheduler.Option{scheduler.WithNow(a.now), scheduler.WithDrain(durationBetween(a.rng, 0, 5*time.Second))}
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
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	a.sim.actors.Go(func() {
		select {
		case <-time.After(length):
			if end == nil {
				s.checkCaughtUp(a)
			}
		case <-end:
		case <-done:
		}
		cancel()
	})
	err := m.Run(ctx)
	a.waitWhileFrozen()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.sim.addViolation(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// runJob is what the jobs do: they take some time, and heed their contexts.
func (s *controlWorkload) runJob(a *actor, m *controlledMember, j *controlledJob, ctx context.Context, run scheduler.Run) error {
	late := a.waitWhileFrozen() && ctx.Err() != nil
	c := &controlledRun{a, ctx, run}
	s.checkRun(m, j, c, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	t := time.NewTimer(pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, maxRunTime)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	a.waitWhileFrozen()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.running--
	delete(j.running, c)
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// checkRun checks a run that begins. A run is late whose context ended before its function could know of it.
func (s *controlWorkload) checkRun(m *controlledMember, j *controlledJob, c *controlledRun, late bool) {
	s.sim.countOperation("controlled run")
	run := c.run
	s.sim.history.add(s.path(), "%s runs %s %s, attempt %d, manual %v, token %d", c.actor.name, run.Job, run.ID, run.Attempt, run.Manual, run.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.running++; m.limit > 0 && m.running > m.limit {
		s.sim.addViolation(s.path(), "slots", "%s runs %d functions at once, at most %d are allowed", c.actor.name, m.running, m.limit)
	}
	s.checkOnce(j, run)
	if j.pausedAt > 0 && run.Token > j.pausedAt && !run.Manual {
		s.sim.addViolation(s.path(), "pause", "%s was claimed by transaction %d, and the job was paused by transaction %d", run.ID, run.Token, j.pausedAt)
	}
	if late {
		j.running[c] = true
		return
	}
	for other := range j.running {
		if j.Overlap != scheduler.OverlapAllow && s.isActive(other) && s.isActive(c) {
			s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s runs %s", c.actor.name, run.ID, other.actor.name, other.run.ID)
		}
	}
	j.running[c] = true
}

// checkOnce checks that each attempt is made once, that only what may be repeated is, and that no manual run begins that nobody has asked for.
func (s *controlWorkload) checkOnce(j *controlledJob, run scheduler.Run) {
	attempt := fmt.Sprint(run.Tick.Format(time.RFC3339), " ", run.Attempt)
	if run.Manual {
		attempt = fmt.Sprint(run.ID, " ", run.Attempt)
	}
	if j.began[attempt] {
		s.sim.addViolation(s.path(), "at most once", "%s of %s was run before as attempt %d", run.ID, j.Name, run.Attempt)
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
			s.sim.addViolation(s.path(), "triggers", "%d manual runs of %s have begun, %d were asked for", j.manualRuns, j.Name, j.possibleTriggers)
		}
	}
}

// isActive tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *controlWorkload) isActive(c *controlledRun) bool {
	return !hasEnded(c.ctx) && !c.actor.frozen() && c.actor.ctx.Err() == nil && !s.sim.isHitByOperator(c.actor.process)
}

// changeJob changes a job, unless somebody else does.
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
		s.logChange(a, ctx, "look at", j, err)
	}
}

// logChange tells whether a change was made. It is unknown whether one was made whose context or process ended.
func (s *controlWorkload) logChange(a *actor, ctx context.Context, what string, j *controlledJob, err error) (done, refused bool) {
	s.sim.history.add(s.path(), "%s: %s %s: %s", a.name, what, j.Name, outcome(err))
	switch {
	case err == nil:
		s.sim.countOperation("control")
		return true, false
	case errors.Is(err, scheduler.ErrUnknownJob), errors.Is(err, scheduler.ErrTooManyPending): // nobody has registered it so far
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

func (s *controlWorkload) reschedule(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob, r *rand.Rand) {
	spec := pickOne(r, j.specs...)
	s.logChange(a, ctx, "reschedule", j, m.Reschedule(ctx, j.Name, spec, nil))
}

// state reads a job's state beside the faults of links.
func (s *controlWorkload) state(j *controlledJob) (scheduler.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return scheduler.New(s.sim.operator, s.path()).State(ctx, j.Name)
}

// checkCaughtUp checks at the end of the calm that all that is due was seen to.
func (s *controlWorkload) checkCaughtUp(a *actor) {
	for _, j := range s.jobs {
		st, err := s.state(j)
		if err != nil {
			s.sim.addViolation(s.path(), "ticks", "the state of %s: %v", j.Name, err)
			continue
		}
		limit := time.Now().Add(-s.allowedDelay())
		if next := st.Next(time.Time{}); !next.IsZero() && next.Before(limit) {
			s.sim.addViolation(s.path(), "progress", "%s: the tick of %v was not seen to by %v: %+v", j.Name, next, time.Now(), st)
		}
		for _, waiting := range st.Pending {
			if waiting.Attempt > 1 && !waiting.Manual && !st.Paused.IsZero() {
				continue // a pause keeps back ticks' runs that are to be repeated
			}
			if waiting.Tick.Before(limit.Add(-time.Duration(len(st.Pending)) * maxRunTime)) {
				s.sim.addViolation(s.path(), "progress", "%s: the run that was asked for at %v has not begun by %v: %+v", j.Name, waiting.Tick, time.Now(), st)
			}
		}
	}
}

// checkAtEnd checks that each manual run is accounted for. The audit has seen to the ticks.
func (s *controlWorkload) checkAtEnd() {
	for _, j := range s.jobs {
		st, err := s.state(j)
		switch {
		case errors.Is(err, scheduler.ErrUnknownJob) || errors.Is(err, framework.ErrNoNode): // nobody came so far
			continue
		case err != nil:
			s.sim.addViolation(s.path(), "ticks", "the state of %s: %v", j.Name, err)
			continue
		}
		s.checkCounts(j, st)
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
		s.sim.addViolation(s.path(), "triggers", "%s: %d manual runs have begun, %d wait, %d were lost at most; %d were asked for", j.Name, j.manualRuns, waiting, unseen, j.confirmedTriggers)
	}
}
