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
	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/lockstep-go/lockstep/workflow"
)

func init() { newWorkload["runs"] = newRunsWorkload }

// runsWorkload is runs of workflows that every process may execute, while actors start, signal,
// cancel, retry and look at them.
type runsWorkload struct {
	workloadBase
	audit    *runAudit
	attempts int
	losses   int
	operated bool // operators delete more claims than the plan says

	working sync.WaitGroup
	stopped context.Context // ends when the members have to stop
	stop    context.CancelFunc
}

// simRetention is how long finished runs stay: the shortest time that there is.
const simRetention = time.Minute

// simIdleRun is how long a run may be active without an executor once the faults are over.
const simIdleRun = 2 * time.Minute

// simOp is an operation of a run's function. A run's input is a list of them.
type simOp struct {
	Do     string // step, sleep, await, child, parallel
	Name   string
	Millis int64   `json:",omitempty"` // of a sleep, or the limit of an await
	Kind   string  `json:",omitempty"` // of a child
	Ops    []simOp `json:",omitempty"` // of a child, or of both branches of a parallel
}

var simKinds = []string{"alpha", "beta"}

func newRunsWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &runsWorkload{workloadBase: workloadBase{sim, spec}, audit: newRunAudit(sim, spec.path, simRetention),
		attempts: pickOne(r, 2, 10), losses: pickOne(r, 2, 50), operated: oneIn(r, 3)}
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

// mayBeDeleted lets an operator take the claim on a run away from its executor, which finds out
// some time later.
func (s *runsWorkload) mayBeDeleted(node string) bool {
	return strings.HasPrefix(node, s.path()+"/queues/") && strings.Contains(node, "/tickets/")
}

// mayRemain allows the markers of writers, which last as long as their sessions.
func (s *runsWorkload) mayRemain(node string) bool {
	return strings.HasPrefix(node, s.path()+"/queues/") && strings.Contains(node, "/writers/")
}

// drawOps draws the operations of a run, which has so many. Their names are unique in it.
func drawOps(r *rand.Rand, depth int, count *int) (ops []simOp) {
	for range 1 + r.IntN(4) {
		op := simOp{Do: pickOne(r, "step", "step", "step", "sleep", "await", "await", "child", "parallel")}
		op.Name = fmt.Sprint(op.Do, *count)
		*count++
		switch op.Do {
		case "sleep":
			op.Millis = durationBetween(r, 0, pickOne(r, time.Second, 20*time.Second, time.Minute)).Milliseconds()
		case "await":
			if oneIn(r, 2) {
				op.Millis = durationBetween(r, time.Second, 30*time.Second).Milliseconds()
			}
		case "child":
			if op.Kind = pickOne(r, simKinds...); depth > 2 {
				continue
			}
			op.Ops = drawOps(r, depth+1, new(int))
		case "parallel":
			if depth > 2 {
				continue
			}
			op.Ops = drawOps(r, depth+1, count)
		}
		ops = append(ops, op)
	}
	return ops
}

// flows are the workflows with which the process's actors call.
func (s *runsWorkload) flows(p *process) *workflow.Workflows {
	return processLocal(p, s.path(), func() *workflow.Workflows {
		w := workflow.New(p.client, s.path(), workflow.WithRetention(simRetention),
			workflow.WithFailedRetention(simRetention))
		s.goWork(p, func() {
			<-s.untilStopped(p).Done()
			_ = w.Close(p.ctx)
		})
		r := newRand(s.sim.plan.seed, "worker "+s.path()+p.name)
		if p.slot == 0 || !oneIn(r, 3) {
			s.goWork(p, func() { s.work(p, r) })
		}
		return w
	})
}

// goWork runs a task of a process that ends after its process has, or the workload was stopped.
func (s *runsWorkload) goWork(p *process, task func()) {
	s.working.Add(1)
	s.sim.tasks.Go(func() {
		defer s.working.Done()
		task()
	})
}

// untilStopped returns a context that ends with the process, and when the workload was stopped.
func (s *runsWorkload) untilStopped(p *process) context.Context {
	ctx, cancel := context.WithCancel(p.ctx)
	context.AfterFunc(s.stopped, cancel)
	return ctx
}

// work executes runs with one Workflows after another.
func (s *runsWorkload) work(p *process, r *rand.Rand) {
	all := s.untilStopped(p)
	for all.Err() == nil {
		w := workflow.New(p.client, s.path(), workflow.WithRetention(simRetention),
			workflow.WithFailedRetention(simRetention), workflow.WithGrace(pickOne(r, 0, time.Second, 10*time.Second)))
		kinds := pickOne(r, simKinds, simKinds, simKinds[:1], simKinds[1:])
		if s.sim.programEnded() {
			kinds = simKinds
		}
		for _, kind := range kinds {
			if err := w.Register(s.function(p, workflow.NewKind[[]simOp, string](kind), 1+r.IntN(4))); err != nil {
				s.audit.add("errors", "%s cannot register: %v", p.name, err)
			}
		}
		ctx, cancel := context.WithTimeout(all, durationBetween(r, time.Second, s.sim.plan.duration))
		if s.sim.programEnded() {
			ctx = all
		} else {
			s.endWithProgram(ctx, cancel)
		}
		err := w.Work(ctx)
		if err != nil && !(ctx.Err() != nil && errors.Is(err, framework.ErrDraining)) && p.ctx.Err() == nil {
			s.audit.add("errors", "%s cannot work: %v", p.name, err)
		}
		cancel()
		_ = w.Close(p.ctx)
	}
}

// endWithProgram ends a context at the end of the program.
func (s *runsWorkload) endWithProgram(ctx context.Context, cancel context.CancelFunc) {
	s.sim.tasks.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.sim.programEnd:
			cancel()
		}
	})
}

// function is the function of a kind that a process executes.
func (s *runsWorkload) function(p *process, kind workflow.Kind[[]simOp, string], workers int) workflow.Function {
	return kind.Function(func(ctx context.Context, run *workflow.Run, ops []simOp) (result string, err error) {
		p.waitWhileFrozen()
		e := &execution{process: p, ctx: ctx}
		s.audit.begin(e, run.UUID())
		s.sim.history.add(s.path(), "%s executes %s", p.name, run.ID())
		defer func() {
			s.sim.history.add(s.path(), "%s has executed %s: %q, %s", p.name, run.ID(), result, outcome(err))
			s.audit.end(e, result, err)
		}()
		x := &simExecution{s, e, run}
		return x.perform(ctx, ops, "")
	}, workflow.WithWorkers(workers), workflow.WithRunAttempts(s.attempts, time.Second),
		workflow.WithMaxLosses(s.losses))
}

// simExecution performs the operations of a run.
type simExecution struct {
	*runsWorkload
	*execution
	run *workflow.Run
}

var errAttempt = errors.New("the attempt failed")

// perform returns the results of the operations.
func (x *simExecution) perform(ctx context.Context, ops []simOp, branch string) (string, error) {
	r := newRand(x.sim.plan.seed, fmt.Sprint(x.run.UUID(), branch, x.sim.nextNumber()))
	var results []string
	for _, op := range ops {
		switch {
		case oneIn(r, 60):
			return "", errAttempt
		case oneIn(r, 200):
			return "", workflow.Permanent(errAttempt)
		case oneIn(r, 200):
			panic("the attempt panics")
		}
		result, err := x.performOne(ctx, r, op)
		if err != nil {
			return "", fmt.Errorf("%s: %w", op.Name, err)
		}
		results = append(results, result)
	}
	return strings.Join(results, ","), nil
}

func (x *simExecution) performOne(ctx context.Context, r *rand.Rand, op simOp) (string, error) {
	switch op.Do {
	case "step":
		result, err := workflow.Step(ctx, x.run, op.Name,
			func(ctx context.Context, key workflow.Key) (string, error) { return x.effect(ctx, r, op.Name, key) },
			workflow.WithStepAttempts(1+r.IntN(3), time.Second))
		if err == nil {
			x.audit.checkStep(x.execution, op.Name, result)
		}
		return result, err
	case "sleep":
		err := x.run.Sleep(ctx, op.Name, time.Duration(op.Millis)*time.Millisecond)
		if err == nil {
			x.audit.checkTimer(x.execution, op)
		}
		return "slept", err
	case "await":
		data, err := workflow.Await[int](ctx, x.run, op.Name, time.Duration(op.Millis)*time.Millisecond)
		return x.audit.checkAwait(x.execution, op, data, err)
	case "child":
		result, err := workflow.NewKind[[]simOp, string](op.Kind).Child(ctx, x.run, op.Name, op.Ops)
		if err == nil {
			x.audit.checkStep(x.execution, op.Name, result)
		}
		return result, err
	}
	half := len(op.Ops) / 2
	var left, right string
	err := x.run.Parallel(ctx, func(ctx context.Context) (err error) {
		left, err = x.perform(ctx, op.Ops[:half], "left")
		return err
	}, func(ctx context.Context) (err error) {
		right, err = x.perform(ctx, op.Ops[half:], "right")
		return err
	})
	return left + "|" + right, err
}

// effect is what a step does.
func (x *simExecution) effect(ctx context.Context, r *rand.Rand, name string, key workflow.Key) (string, error) {
	x.process.waitWhileFrozen()
	x.audit.beginEffect(x.execution, name, key)
	t := time.NewTimer(durationBetween(r, 0, pickOne(r, time.Millisecond, time.Second, 5*time.Second, 20*time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	x.process.waitWhileFrozen()
	if oneIn(r, 8) {
		return "", errEffect
	}
	result := fmt.Sprint(x.sim.nextNumber())
	x.audit.endEffect(x.execution, name, result)
	return result, nil
}

func (s *runsWorkload) runActor(a *actor) {
	w := s.flows(a.process)
	for n := 1; a.nextStep(); n++ {
		if oneIn(a.rng, 10) {
			a.lagServer()
		}
		if s.operated && oneIn(a.rng, 8) && s.sim.deleteNode(a.rng) {
			s.sim.countFault(deleteNode)
		}
		ctx, cancel := a.callContext()
		s.endWithProgram(ctx, cancel)
		switch name := s.pickName(a); {
		case name == "" || oneIn(a.rng, 3):
			s.start(a, ctx, w, n)
		case oneIn(a.rng, 3):
			s.signal(a, ctx, w, name)
		case oneIn(a.rng, 4):
			s.cancel(a, ctx, w, s.audit.executed(a.rng, name))
		case oneIn(a.rng, 3):
			s.retry(a, ctx, w, name)
		default:
			s.look(a, ctx, w, name)
		}
		cancel()
	}
}

// pickName picks one of the latest runs, or "".
func (s *runsWorkload) pickName(a *actor) string {
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	if len(s.audit.lives) == 0 {
		return ""
	}
	return s.audit.lives[len(s.audit.lives)-1-a.rng.IntN(min(12, len(s.audit.lives)))].name
}

// start starts a run: a new one, or a former one again, perhaps with another input.
func (s *runsWorkload) start(a *actor, ctx context.Context, w *workflow.Workflows, n int) {
	name := fmt.Sprintf("%s-%d", a.name, n)
	if again := s.pickName(a); again != "" && oneIn(a.rng, 3) {
		name = again
	}
	base := newRand(s.sim.plan.seed, "input of "+name)
	kind, ops := pickOne(base, simKinds...), drawOps(base, 1, new(int))
	if oneIn(a.rng, 8) {
		ops = ops[1:]
	}
	from := s.audit.now()
	_, err := workflow.NewKind[[]simOp, string](kind).Start(ctx, w, name, ops)
	s.done(a, "starts", name, err)
	s.audit.checkStart(runCall{a, ctx, from, name, err}, kind, ops)
}

func (s *runsWorkload) signal(a *actor, ctx context.Context, w *workflow.Workflows, name string) {
	signal := s.audit.awaited(name, a.rng)
	data := a.rng.IntN(3)
	from := s.audit.now()
	err := w.Signal(ctx, name, signal, data)
	s.done(a, "signals "+signal+" to", name, err)
	s.audit.checkSignal(runCall{a, ctx, from, name, err}, signal, data)
}

func (s *runsWorkload) cancel(a *actor, ctx context.Context, w *workflow.Workflows, name string) {
	from := s.audit.noteCancel(name)
	err := w.Cancel(ctx, name, "because")
	s.done(a, "cancels", name, err)
	s.audit.checkCancel(runCall{a, ctx, from, name, err})
	if err == nil && oneIn(a.rng, 2) { // the function of the cancelled turn may not know of it yet
		s.retry(a, ctx, w, name)
	}
}

func (s *runsWorkload) retry(a *actor, ctx context.Context, w *workflow.Workflows, name string) {
	from, step := s.audit.noteRetry(name, a.rng)
	err := w.Retry(ctx, name, step)
	s.done(a, "retries from "+step, name, err)
	s.audit.checkRetry(runCall{a, ctx, from, name, err})
}

// look inspects a run, waits for it or lists all.
func (s *runsWorkload) look(a *actor, ctx context.Context, w *workflow.Workflows, name string) {
	from := s.audit.now()
	switch a.rng.IntN(3) {
	case 0:
		info, err := w.Inspect(ctx, name)
		s.done(a, "inspects", name, err)
		s.audit.checkInfo(runCall{a, ctx, from, name, err}, info, false)
	case 1:
		ctx, cancel := context.WithTimeout(ctx, durationBetween(a.rng, time.Second, time.Minute))
		defer cancel()
		info, err := w.Wait(ctx, name)
		s.done(a, "waits for", name, err)
		s.audit.checkInfo(runCall{a, ctx, from, name, err}, info, true)
	default:
		infos, err := failure.Collect(w.List(ctx))
		s.done(a, "lists", fmt.Sprint(len(infos)), err)
		s.audit.checkList(runCall{a, ctx, from, "", err}, infos)
	}
}

func (s *runsWorkload) done(a *actor, what, name string, err error) {
	a.waitWhileFrozen()
	s.sim.countOperation("call of workflows")
	s.sim.history.add(s.path(), "%s %s %s: %s", a.name, what, name, outcome(err))
}

// checkAtEnd lets a new process execute all runs to their ends, and waits until they are removed.
func (s *runsWorkload) checkAtEnd() {
	p := s.sim.startProcess(len(s.sim.plan.workloads)+100, 0)
	r := newRand(s.sim.plan.seed, "end "+s.path())
	s.goWork(p, func() { s.work(p, r) })
	w := workflow.New(p.client, s.path())
	s.finishAll(p.ctx, w)
	s.awaitRemoval()
	if err := w.Close(p.ctx); err != nil {
		s.audit.add("errors", "the workflows cannot be closed: %v", err)
	}
	s.stop()
	if !waitFor(s.sim.waitLimit(), &s.working) {
		s.audit.add("progress", "a member still works %v after its end", s.sim.waitLimit())
	}
	p.close()
	time.Sleep(10 * time.Second) // time for the client to close
}

// finishAll waits until all runs have ended, and sends them the signals that they wait for.
func (s *runsWorkload) finishAll(ctx context.Context, w *workflow.Workflows) {
	idleSince := map[string]time.Time{} // since when each active run has no executor
	for deadline := time.Now().Add(3 * time.Hour); ; time.Sleep(5 * time.Second) {
		stuck := s.audit.unfinished()
		if len(stuck) == 0 {
			return
		}
		for _, l := range stuck {
			info, err := w.Inspect(ctx, l.name)
			if err != nil || info.State != workflow.Active || info.Taken != nil || info.TakenErr != nil {
				delete(idleSince, l.name)
			} else if since, ok := idleSince[l.name]; !ok {
				idleSince[l.name] = time.Now()
			} else if time.Since(since) > simIdleRun {
				s.audit.add("progress", "no member takes %s, which is active since %v", l.name, info.Changed)
				return
			}
			for signal := range l.signals {
				if err := w.Signal(ctx, l.name, signal, 1); err != nil && !errors.Is(err, workflow.ErrFinished) &&
					!errors.Is(err, workflow.ErrSignalled) {
					s.audit.add("errors", "cannot signal %s to %s: %v", signal, l.name, err)
				}
			}
		}
		if time.Now().After(deadline) {
			info, err := w.Inspect(ctx, stuck[0].name)
			s.audit.add("progress", "%d runs do not end, such as %s, which is %s and waits for %q (%v)", len(stuck),
				stuck[0].name, info.State, info.Waits, err)
			return
		}
	}
}

// awaitRemoval waits until nothing of any run is left.
func (s *runsWorkload) awaitRemoval() {
	var left []string
	for deadline := time.Now().Add(simRetention + 10*time.Minute); time.Now().Before(deadline); time.Sleep(
		5 * time.Second) {
		left = nil
		for _, node := range s.sim.zk.Tree(s.path()) {
			rest := strings.TrimPrefix(node.Path, s.path()+"/")
			depth := strings.Count(rest, "/")
			_, name, _ := strings.Cut(rest[strings.LastIndex(rest, "/")+1:], "i-")
			if strings.HasPrefix(rest, "runs/") && depth > 1 ||
				(strings.HasPrefix(rest, "ended/") || strings.HasPrefix(rest, "failed/")) && depth > 1 ||
				strings.HasPrefix(rest, "queues/") && name != "" {
				left = append(left, node.Path)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	s.audit.add("leftovers", "%d nodes are left, such as %s", len(left), left[0])
}
