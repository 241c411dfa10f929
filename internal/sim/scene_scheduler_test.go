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

func init() { makers["scheduler"] = newSchedulerScene }

// schedulerScene is a cluster of schedulers, one in each process, whose wall clocks are wrong and jump.
type schedulerScene struct {
	base
	jobs []scheduler.Job

	mu      sync.Mutex
	runs    map[string]string // who has run each tick
	running map[string]*jobRun
	ran     map[string]int64 // runs that have begun, of each job
}

// jobRun is a run that goes on.
type jobRun struct {
	a   *actor
	ctx context.Context
	id  string
}

func newSchedulerScene(w *world, spec sceneSpec) scene {
	s := &schedulerScene{base: base{w, spec}, runs: map[string]string{}, running: map[string]*jobRun{}, ran: map[string]int64{}}
	r := stream(w.plan.seed, spec.path)
	for i := range 1 + r.IntN(4) {
		s.jobs = append(s.jobs, scheduler.Job{
			Name: fmt.Sprintf("job%d", i), Spec: pick(r, "* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"),
			Misfire:   pick(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
			Placement: pick(r, scheduler.OnLeader, scheduler.Spread), Deadline: between(r, time.Second, 20*time.Second),
		})
	}
	newJobAudit(w, s.path(), nil)
	return s
}

// stays allows for what its election's stays allows for, and for a session's watch on a run that was lost before it
// looked.
func (s *schedulerScene) stays(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// play runs a scheduler, and again after it was stopped. One actor of each process does.
func (s *schedulerScene) play(a *actor) {
	if a.name[len(a.name)-1] != 'a' {
		return
	}
	for a.goOn() {
		s.serve(a)
	}
}

func (s *schedulerScene) serve(a *actor) {
	options := []scheduler.Option{scheduler.WithNow(a.now), scheduler.WithDrain(between(a.r, 0, 5*time.Second))}
	m := scheduler.New(a.client, s.path(), options...)
	for _, j := range s.jobs {
		j.Run = func(ctx context.Context, run scheduler.Run) error { return s.run(a, ctx, run) }
		if err := m.Add(j); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	length := between(a.r, a.lazy, 20*a.lazy)
	go func() {
		select {
		case <-time.After(length):
		case <-a.w.over:
		case <-done:
		}
		cancel()
	}()
	err := m.Run(ctx)
	a.gate()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.w.violate(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// run is what the jobs do: they take some time, and heed their contexts.
func (s *schedulerScene) run(a *actor, ctx context.Context, run scheduler.Run) error {
	late := a.gate() && ctx.Err() != nil
	s.begin(a, ctx, run, late)
	r := stream(s.w.plan.seed, s.path()+run.Job+run.ID)
	t := time.NewTimer(pick(r, 0, between(r, 0, time.Second), between(r, 0, 8*time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	a.gate()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[run.Job]; now != nil && now.id == run.ID && now.a == a {
		delete(s.running, run.Job)
	}
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// begin checks that the tick was not run before, and that no other run of the job goes on. A run is late that was over
// before its function could know of it.
func (s *schedulerScene) begin(a *actor, ctx context.Context, run scheduler.Run, late bool) {
	s.w.count("run")
	s.w.h.note(s.path(), "%s runs %s at %s, token %d", a.name, run.Job, run.Tick.Format(time.TimeOnly), run.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := run.Job + " " + run.Tick.Format(time.RFC3339)
	if other := s.runs[key]; other != "" {
		s.w.violate(s.path(), "at most once", "%s runs %s, which %s has run", a.name, key, other)
	}
	s.runs[key] = a.name
	s.ran[run.Job]++
	if late {
		return
	}
	if other := s.running[run.Job]; other != nil && s.goesOn(other) && !a.frozen() && !over(ctx) && !s.w.isDoomedProcess(a.process) {
		s.w.violate(s.path(), "overlap", "%s runs %s while %s does", a.name, key, other.a.name)
	}
	s.running[run.Job] = &jobRun{a, ctx, run.ID}
}

// goesOn tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *schedulerScene) goesOn(r *jobRun) bool {
	return !over(r.ctx) && !r.a.frozen() && r.a.ctx.Err() == nil && !s.w.isDoomedProcess(r.a.process)
}

// settled checks that each tick is accounted for: run or missed, once.
func (s *schedulerScene) settled() {
	m := scheduler.New(s.w.operator, s.path())
	for _, j := range s.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		st, err := m.State(ctx, j.Name)
		cancel()
		switch {
		case errors.Is(err, scheduler.ErrUnknownJob) || errors.Is(err, framework.ErrNoNode): // nobody came so far
			continue
		case err != nil:
			s.w.violate(s.path(), "ticks", "the state of %s: %v", j.Name, err)
			continue
		}
		s.balance(j, st)
	}
}

func (s *schedulerScene) balance(j scheduler.Job, st scheduler.State) {
	schedule, err := scheduler.ParseSpec(j.Spec, nil)
	if err != nil {
		panic(err)
	}
	due := int64(0)
	for t := schedule.Next(st.Registered); !t.After(st.Last); t = schedule.Next(t) {
		due++
	}
	if due != st.Due() {
		s.w.violate(s.path(), "ticks", "%s: %d were due, %d were run, %v missed", j.Name, due, st.Fired, st.Missed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := st.Missed[scheduler.ReasonRunnerLost] + int64(len(st.Running))
	if begun := s.ran[j.Name]; st.Fired > begun+int64(len(st.Running)) || st.Fired+lost < begun {
		s.w.violate(s.path(), "ticks", "%s: %d runs have begun, %d are recorded as run and %d as lost", j.Name, begun, st.Fired, lost)
	}
}
