package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

func init() { newWorkload["scheduler"] = newSchedulerWorkload }

// schedulerWorkload is a cluster of schedulers, one in each process, whose wall clocks are wrong and jump.
type schedulerWorkload struct {
	workloadBase
	jobs []scheduler.Job

	mu       sync.Mutex
	ranBy    map[string]string // who has run each tick
	running  map[string]*jobRun
	runCount map[string]int64 // runs that have begun, of each job
}

// jobRun is a run that goes on.
type jobRun struct {
	actor *actor
	ctx   context.Context
	id    string
}

func newSchedulerWorkload(sim *simulation, spec workloadSpec) workload {
	s := &schedulerWorkload{workloadBase: workloadBase{sim, spec}, ranBy: map[string]string{}, running: map[string]*jobRun{}, runCount: map[string]int64{}}
	r := newRand(sim.plan.seed, spec.path)
	for i := range 1 + r.IntN(4) {
		s.jobs = append(s.jobs, scheduler.Job{
			Name: fmt.Sprintf("job%d", i), Spec: pickOne(r, "* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"),
			Misfire:   pickOne(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
			Placement: pickOne(r, scheduler.OnLeader, scheduler.Spread), Deadline: durationBetween(r, time.Second, 20*time.Second),
		})
	}
	newJobAudit(sim, s.path(), nil)
	return s
}

// mayRemain allows for what its election's stays allows for, and for a session's watch on a run that was lost before it
// looked.
func (s *schedulerWorkload) mayRemain(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// runActor runs a scheduler, and again after it was stopped. One actor of each process does.
func (s *schedulerWorkload) runActor(a *actor) {
	if a.name[len(a.name)-1] != 'a' {
		return
	}
	for a.nextStep() {
		s.runScheduler(a)
	}
}

func (s *schedulerWorkload) runScheduler(a *actor) {
	options := []scheduler.Option{scheduler.WithNow(a.now), scheduler.WithDrain(durationBetween(a.rng, 0, 5*time.Second))}
	m := scheduler.New(a.client, s.path(), options...)
	for _, j := range s.jobs {
		j.Run = func(ctx context.Context, run scheduler.Run) error { return s.runJob(a, ctx, run) }
		if err := m.Add(j); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	length := durationBetween(a.rng, a.maxPause, 20*a.maxPause)
	go func() {
		select {
		case <-time.After(length):
		case <-a.sim.programEnd:
		case <-done:
		}
		cancel()
	}()
	err := m.Run(ctx)
	a.waitWhileFrozen()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.sim.addViolation(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// runJob is what the jobs do: they take some time, and heed their contexts.
func (s *schedulerWorkload) runJob(a *actor, ctx context.Context, run scheduler.Run) error {
	late := a.waitWhileFrozen() && ctx.Err() != nil
	s.checkRun(a, ctx, run, late)
	r := newRand(s.sim.plan.seed, s.path()+run.Job+run.ID)
	t := time.NewTimer(pickOne(r, 0, durationBetween(r, 0, time.Second), durationBetween(r, 0, 8*time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	a.waitWhileFrozen()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[run.Job]; now != nil && now.id == run.ID && now.actor == a {
		delete(s.running, run.Job)
	}
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// checkRun checks that the tick was not run before, and that no other run of the job goes on. A run is late that was over
// before its function could know of it.
func (s *schedulerWorkload) checkRun(a *actor, ctx context.Context, run scheduler.Run, late bool) {
	s.sim.countOperation("run")
	s.sim.history.add(s.path(), "%s runs %s at %s, token %d", a.name, run.Job, run.Tick.Format(time.TimeOnly), run.Token)
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
	if other := s.running[run.Job]; other != nil && s.isActive(other) && !a.frozen() && !hasEnded(ctx) && !s.sim.isHitByOperator(a.process) {
		s.sim.addViolation(s.path(), "overlap", "%s runs %s while %s does", a.name, key, other.actor.name)
	}
	s.running[run.Job] = &jobRun{a, ctx, run.ID}
}

// isActive tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *schedulerWorkload) isActive(r *jobRun) bool {
	return !hasEnded(r.ctx) && !r.actor.frozen() && r.actor.ctx.Err() == nil && !s.sim.isHitByOperator(r.actor.process)
}

// checkAtEnd checks that each tick is accounted for: run or missed, once.
func (s *schedulerWorkload) checkAtEnd() {
	m := scheduler.New(s.sim.operator, s.path())
	for _, j := range s.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		st, err := m.State(ctx, j.Name)
		cancel()
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
		s.sim.addViolation(s.path(), "ticks", "%s: %d were due, %d were run, %v missed", j.Name, due, st.Fired, st.Missed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := st.Missed[scheduler.ReasonRunnerLost] + int64(len(st.Running))
	if begun := s.runCount[j.Name]; st.Fired > begun+int64(len(st.Running)) || st.Fired+lost < begun {
		s.sim.addViolation(s.path(), "ticks", "%s: %d runs have begun, %d are recorded as run and %d as lost", j.Name, begun, st.Fired, lost)
	}
}
