package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
)

func init() { newWorkload["scheduler"] = newSchedulerWorkload }

// schedulerWorkload is a cluster of schedulers, one in each process, whose wall clocks are wrong
// and jump.
type schedulerWorkload struct {
	schedulerCluster
	jobs []scheduler.Job

	mu       sync.Mutex
	ranBy    map[string]string // the actor that has run each tick
	running  map[string]*jobRun
	runCount map[string]int64 // number of runs that have begun, by job
}

// jobRun is a run that has not returned.
type jobRun struct {
	actor *actor
	ctx   context.Context
	id    string
}

func newSchedulerWorkload(sim *simulation, spec workloadSpec) workload {
	s := &schedulerWorkload{schedulerCluster: schedulerCluster{workloadBase: workloadBase{sim, spec}},
		ranBy: map[string]string{}, running: map[string]*jobRun{}, runCount: map[string]int64{}}
	r := newRand(sim.plan.seed, spec.path)
	for i := range 1 + r.IntN(4) {
		s.jobs = append(s.jobs, scheduler.Job{
			Name: fmt.Sprintf("job%d", i), Spec: pickOne(r, "* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"),
			Misfire:   pickOne(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
			Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread),
			Deadline:  durationBetween(r, time.Second, 20*time.Second),
		})
	}
	newJobAudit(sim, s.path(), nil)
	return s
}

// runActor runs one member after the other. Only one actor of each process does.
func (s *schedulerWorkload) runActor(a *actor) {
	if a.name[len(a.name)-1] != 'a' {
		return
	}
	for a.nextStep() {
		s.runMember(a)
	}
}

func (s *schedulerWorkload) runMember(a *actor) {
	options := []scheduler.Option{scheduler.WithNow(a.now),
		scheduler.WithGrace(durationBetween(a.rng, 0, 5*time.Second))}
	m := scheduler.New(a.client, s.path(), options...)
	for _, j := range s.jobs {
		j.Run = func(ctx context.Context, run scheduler.Run) error { return s.runJob(a, ctx, run) }
		if err := m.Add(j); err != nil {
			panic(err)
		}
	}
	length := durationBetween(a.rng, a.maxPause, 20*a.maxPause)
	s.runScheduler(a, m, func(_ context.Context, stopped <-chan struct{}) { lasts(length, a.sim.programEnd, stopped) })
}

// runJob is the jobs' function: it takes some time, and ends early with its context.
func (s *schedulerWorkload) runJob(a *actor, ctx context.Context, run scheduler.Run) error {
	late := a.waitWhileFrozen() && ctx.Err() != nil
	s.checkRun(a, ctx, run, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	a.runFor(ctx, pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, 8*time.Second)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[run.Job]; now != nil && now.id == run.ID && now.actor == a {
		delete(s.running, run.Job)
	}
	if oneIn(r, 5) {
		return errors.New("the run failed")
	}
	return context.Cause(ctx)
}

// checkRun checks that the tick was not run before, and that no other run of the job is alive.
// late: its context ended before its function could know.
func (s *schedulerWorkload) checkRun(a *actor, ctx context.Context, run scheduler.Run, late bool) {
	s.sim.countOperation("run")
	s.sim.history.add(s.path(), "%s runs %s at %s, token %d", a.name, run.Job, run.Tick.Format(time.TimeOnly),
		run.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := run.Job + " " + run.Tick.Format(time.RFC3339)
	if other := s.ranBy[key]; other != "" {
		s.sim.addViolation(s.path(), "at most once", "%s runs %s, which %s has run", a.name, key, other)
	}
	s.ranBy[key] = a.name
	s.runCount[run.Job]++
	if late {
		return
	}
	if other := s.running[run.Job]; other != nil && other.actor.isRunning(other.ctx) && !a.frozen() && !hasEnded(ctx) &&
		!s.sim.isHitByOperator(a.process) {
		s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s does", a.name, key, other.actor.name)
	}
	s.running[run.Job] = &jobRun{a, ctx, run.ID}
}

// checkAtEnd checks that each tick is counted once, as run or as missed.
func (s *schedulerWorkload) checkAtEnd() {
	for _, j := range s.jobs {
		if st, ok := s.registeredState(j.Name); ok {
			s.checkCounts(j, st)
		}
	}
}

func (s *schedulerWorkload) checkCounts(j scheduler.Job, st scheduler.State) {
	schedule, err := scheduler.ParseSpec(j.Spec, nil)
	if err != nil {
		panic(err)
	}
	due := int64(0)
	for t := schedule.Next(st.Registered); !t.After(st.Last); t = schedule.Next(t) {
		due++
	}
	if due != st.Due() {
		s.sim.addViolation(s.path(), "ticks", "%s: %d ticks were due, %d were run, %v missed", j.Name, due,
			st.Fired, st.Missed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := st.Missed[scheduler.ReasonRunnerLost] + int64(len(st.Running))
	if begun := s.runCount[j.Name]; st.Fired > begun+int64(len(st.Running)) || st.Fired+lost < begun {
		s.sim.addViolation(s.path(), "ticks", "%s: %d runs have begun, %d are recorded as run and %d as lost", j.Name,
			begun, st.Fired, lost)
	}
}
