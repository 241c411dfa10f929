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

func init() { makers["control"] = newControlScene }

// controlScene is a cluster of schedulers whose jobs are paused, resumed, triggered and rescheduled while they run. Members have wrong wall
// clocks and bounds of concurrent runs. In half of the seeds the members go on for a while after all faults are healed, and must catch up.
type controlScene struct {
	base
	jobs   []*controlledJob
	encore bool

	mu sync.Mutex
}

// controlledJob is a job's books. Only who has its turn changes the job, so that changes have an order. The scene's mu guards what is below it.
type controlledJob struct {
	scheduler.Job
	specs []string
	turn  chan struct{}

	began    map[string]bool // runs of ticks and attempts
	ids      map[string]bool // runs that have begun
	running  map[*controlledRun]bool
	pausedAt int64 // what is claimed above this transaction is claimed while the job is paused; 0 if that is not known
	unclear  bool  // the outcome of a Resume is unknown: it may still happen
	asked    int   // triggers that have returned nil
	maybe    int   // triggers that may have happened, those that have returned nil included
	manual   int   // manual runs that have begun as their first attempt
}

// controlledRun is a call of a job's function.
type controlledRun struct {
	a   *actor
	ctx context.Context
	run scheduler.Run
}

// controlledMember is a scheduler in a process, and how many functions it runs at present.
type controlledMember struct {
	*scheduler.Scheduler
	limit int // 0: none

	running int // guarded by the scene's mu
}

func newControlScene(w *world, spec sceneSpec) scene {
	r := stream(w.plan.seed, spec.path)
	s := &controlScene{base: base{w, spec}, encore: oneIn(r, 2)}
	for i := range 1 + r.IntN(4) {
		j := &controlledJob{
			Job: scheduler.Job{
				Name: fmt.Sprintf("job%d", i), Deadline: between(r, time.Second, 20*time.Second),
				Misfire:   pick(r, scheduler.MisfireLatest, scheduler.MisfireSkip, scheduler.MisfireAll),
				Placement: pick(r, scheduler.OnLeader, scheduler.Spread), Guarantee: pick(r, scheduler.AtMostOnce, scheduler.AtLeastOnce),
				Overlap: pick(r, scheduler.OverlapForbid, scheduler.OverlapAllow, scheduler.OverlapReplace),
				MinHold: pick(r, 0, 0, between(r, 0, 5*time.Second)),
			},
			specs: []string{"* * * * * *", "*/5 * * * * *", "@every 2s", "@every 7s"}, turn: make(chan struct{}, 1),
			began: map[string]bool{}, ids: map[string]bool{}, running: map[*controlledRun]bool{},
		}
		j.Spec = pick(r, j.specs...)
		s.jobs = append(s.jobs, j)
	}
	newJobAudit(w, s.path(), nil)
	return s
}

// stays allows for what the scheduler scene allows for.
func (s *controlScene) stays(path string) bool {
	return path == s.path()+"/election~waiting" || strings.HasPrefix(path, s.path()+"/jobs/")
}

// play changes jobs. The first actor of each process lets it be a member too.
func (s *controlScene) play(a *actor) {
	if a.name == a.process.name+"a" {
		member := newActor(a.process, s.spec, 20)
		a.w.actors.Go(func() { s.belong(member) })
	}
	for a.goOn() {
		s.change(a)
	}
}

// belong is a member for some time, and then another one, and so on.
func (s *controlScene) belong(a *actor) {
	for a.goOn() {
		s.serve(a, between(a.r, a.lazy, 20*a.lazy), a.w.over)
	}
	if s.encore && a.ctx.Err() == nil {
		a.w.h.note(s.path(), "%s goes on for %v", a.name, s.calm())
		s.serve(a, s.calm(), nil)
	}
}

// calm is how long members go on after all is healed.
func (s *controlScene) calm() time.Duration { return s.slack() + time.Minute }

// slack is how late a job may be seen to when all is well: a dead member's session has to end first, and runs of all jobs may have to wait
// for the only slot of a member.
func (s *controlScene) slack() time.Duration {
	return 3*s.w.plan.timeout + 20*time.Second + time.Duration(2*len(s.jobs))*longestRun
}

const longestRun = 8 * time.Second

// serve runs a scheduler for a time, or until over is closed. Who serves through the calm looks at its end whether the jobs were seen to.
func (s *controlScene) serve(a *actor, length time.Duration, over <-chan struct{}) {
	m := &controlledMember{limit: pick(a.r, 0, 1, 1, 2)}
	options := []scheduler.Option{scheduler.WithNow(a.now), scheduler.WithDrain(between(a.r, 0, 5*time.Second))}
	if m.limit > 0 {
		options = append(options, scheduler.WithMaxConcurrent(m.limit))
	}
	m.Scheduler = scheduler.New(a.client, s.path(), options...)
	for _, j := range s.jobs {
		job := j.Job
		job.Run = func(ctx context.Context, run scheduler.Run) error { return s.run(a, m, j, ctx, run) }
		if err := m.Add(job); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	a.w.actors.Go(func() {
		select {
		case <-time.After(length):
			if over == nil {
				s.checkCaughtUp(a)
			}
		case <-over:
		case <-done:
		}
		cancel()
	})
	err := m.Run(ctx)
	a.gate()
	if err != nil && a.ctx.Err() == nil && !errors.Is(err, scheduler.ErrStuck) { // runs in a frozen process are stuck
		s.w.violate(s.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// run is what the jobs do: they take some time, and heed their contexts.
func (s *controlScene) run(a *actor, m *controlledMember, j *controlledJob, ctx context.Context, run scheduler.Run) error {
	late := a.gate() && ctx.Err() != nil
	c := &controlledRun{a, ctx, run}
	s.begin(m, j, c, late)
	r := stream(s.w.plan.seed, s.path()+run.Job+run.ID)
	t := time.NewTimer(pick(r, 0, between(r, 0, time.Second), between(r, 0, longestRun)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	a.gate()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.running--
	delete(j.running, c)
	if oneIn(r, 5) {
		return errors.New("some trouble")
	}
	return context.Cause(ctx)
}

// begin checks a run that begins. A run is late whose context ended before its function could know of it.
func (s *controlScene) begin(m *controlledMember, j *controlledJob, c *controlledRun, late bool) {
	s.w.count("controlled run")
	run := c.run
	s.w.h.note(s.path(), "%s runs %s %s, attempt %d, manual %v, token %d", c.a.name, run.Job, run.ID, run.Attempt, run.Manual, run.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.running++; m.limit > 0 && m.running > m.limit {
		s.w.violate(s.path(), "slots", "%s runs %d functions at once, at most %d are allowed", c.a.name, m.running, m.limit)
	}
	s.checkOnce(j, run)
	if j.pausedAt > 0 && run.Token > j.pausedAt && !run.Manual {
		s.w.violate(s.path(), "pause", "%s was claimed by transaction %d, and the job was paused by transaction %d", run.ID, run.Token, j.pausedAt)
	}
	if late {
		j.running[c] = true
		return
	}
	for other := range j.running {
		if j.Overlap != scheduler.OverlapAllow && s.goesOn(other) && s.goesOn(c) {
			s.w.violate(s.path(), "overlap", "%s runs %s while %s runs %s", c.a.name, run.ID, other.a.name, other.run.ID)
		}
	}
	j.running[c] = true
}

// checkOnce checks that each attempt is made once, that only what may be repeated is, and that no manual run begins that nobody has asked for.
func (s *controlScene) checkOnce(j *controlledJob, run scheduler.Run) {
	attempt := fmt.Sprint(run.Tick.Format(time.RFC3339), " ", run.Attempt)
	if run.Manual {
		attempt = fmt.Sprint(run.ID, " ", run.Attempt)
	}
	if j.began[attempt] {
		s.w.violate(s.path(), "at most once", "%s of %s was run before as attempt %d", run.ID, j.Name, run.Attempt)
	}
	j.began[attempt] = true
	if j.ids[run.ID] {
		s.w.violate(s.path(), "at most once", "%s of %s was run before", run.ID, j.Name)
	}
	j.ids[run.ID] = true
	if run.Attempt > 1 && (j.Guarantee != scheduler.AtLeastOnce || run.Attempt > 1+scheduler.MaxReruns) {
		s.w.violate(s.path(), "at most once", "%s of %s is run as attempt %d", run.ID, j.Name, run.Attempt)
	}
	if run.Manual && run.Attempt == 1 {
		if j.manual++; j.manual > j.maybe {
			s.w.violate(s.path(), "triggers", "%d manual runs of %s have begun, %d were asked for", j.manual, j.Name, j.maybe)
		}
	}
}

// goesOn tells whether a run's context stands, in a process that runs and that no operator has thrown out.
func (s *controlScene) goesOn(c *controlledRun) bool {
	return !over(c.ctx) && !c.a.frozen() && c.a.ctx.Err() == nil && !s.w.isDoomedProcess(c.a.process)
}

// change changes a job, unless somebody else does.
func (s *controlScene) change(a *actor) {
	j := s.jobs[a.r.IntN(len(s.jobs))]
	select {
	case j.turn <- struct{}{}:
	default:
		return
	}
	defer func() { <-j.turn }()
	ctx, cancel := a.patience()
	defer cancel()
	m := scheduler.New(a.client, s.path())
	switch a.r.IntN(8) {
	case 0:
		s.pause(a, ctx, m, j)
	case 1, 2:
		s.resume(a, ctx, m, j)
	case 3, 4, 5:
		s.trigger(a, ctx, m, j)
	case 6:
		s.reschedule(a, ctx, m, j, a.r)
	default:
		_, err := m.State(ctx, j.Name)
		s.told(a, ctx, "look at", j, err)
	}
}

// told tells whether a change was made. It is unknown whether one was made whose context or process ended.
func (s *controlScene) told(a *actor, ctx context.Context, what string, j *controlledJob, err error) (done, refused bool) {
	s.w.h.note(s.path(), "%s: %s %s: %s", a.name, what, j.Name, outcome(err))
	switch {
	case err == nil:
		s.w.count("control")
		return true, false
	case errors.Is(err, scheduler.ErrUnknownJob), errors.Is(err, scheduler.ErrTooManyPending): // nobody has registered it so far
		return false, true
	case a.ctx.Err() == nil && !a.excused(ctx, err):
		s.w.violate(s.path(), "errors", "%s cannot %s %s: %v", a.name, what, j.Name, err)
	}
	return false, false
}

func (s *controlScene) pause(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	if done, _ := s.told(a, ctx, "pause", j, m.Pause(ctx, j.Name)); !done {
		return
	}
	zxid := s.w.zk.Zxid()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !j.unclear && j.pausedAt == 0 {
		j.pausedAt = zxid
	}
}

func (s *controlScene) resume(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	s.mu.Lock()
	j.pausedAt = 0
	s.mu.Unlock()
	done, refused := s.told(a, ctx, "resume", j, m.Resume(ctx, j.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	j.unclear = !done && (j.unclear || !refused)
}

func (s *controlScene) trigger(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob) {
	s.mu.Lock()
	j.maybe++
	s.mu.Unlock()
	done, refused := s.told(a, ctx, "trigger", j, m.Trigger(ctx, j.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	if done {
		j.asked++
	}
	if refused {
		j.maybe--
	}
}

func (s *controlScene) reschedule(a *actor, ctx context.Context, m *scheduler.Scheduler, j *controlledJob, r *rand.Rand) {
	spec := pick(r, j.specs...)
	s.told(a, ctx, "reschedule", j, m.Reschedule(ctx, j.Name, spec, nil))
}

// state reads a job's state beside the faults of links.
func (s *controlScene) state(j *controlledJob) (scheduler.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return scheduler.New(s.w.operator, s.path()).State(ctx, j.Name)
}

// checkCaughtUp checks at the end of the calm that all that is due was seen to.
func (s *controlScene) checkCaughtUp(a *actor) {
	for _, j := range s.jobs {
		st, err := s.state(j)
		if err != nil {
			s.w.violate(s.path(), "ticks", "the state of %s: %v", j.Name, err)
			continue
		}
		limit := time.Now().Add(-s.slack())
		if next := st.Next(time.Time{}); !next.IsZero() && next.Before(limit) {
			s.w.violate(s.path(), "progress", "%s: the tick of %v was not seen to by %v: %+v", j.Name, next, time.Now(), st)
		}
		for _, waiting := range st.Pending {
			if waiting.Attempt > 1 && !waiting.Manual && !st.Paused.IsZero() {
				continue // a pause keeps back ticks' runs that are to be repeated
			}
			if waiting.Tick.Before(limit.Add(-time.Duration(len(st.Pending)) * longestRun)) {
				s.w.violate(s.path(), "progress", "%s: the run that was asked for at %v has not begun by %v: %+v", j.Name, waiting.Tick, time.Now(), st)
			}
		}
	}
}

// settled checks that each manual run is accounted for. The audit has seen to the ticks.
func (s *controlScene) settled() {
	for _, j := range s.jobs {
		st, err := s.state(j)
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

func (s *controlScene) balance(j *controlledJob, st scheduler.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun := int64(len(j.ids)); begun > st.Number {
		s.w.violate(s.path(), "ticks", "%s: %d runs have begun, %d are recorded", j.Name, begun, st.Number)
	}
	waiting := 0
	for _, p := range st.Pending {
		if p.Manual && p.Attempt == 1 {
			waiting++
		}
	}
	if unseen := int(st.Number) - len(j.ids); j.manual+waiting+unseen < j.asked {
		s.w.violate(s.path(), "triggers", "%s: %d manual runs have begun, %d wait, %d were lost at most; %d were asked for", j.Name, j.manual, waiting, unseen, j.asked)
	}
}
