package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// schedulerCluster is what the workloads with schedulers have in common: each process runs one
// member of the cluster at a time.
type schedulerCluster struct {
	workloadBase
	runAfterHeal bool // the members run for a while after all faults are healed, and must catch up
}

// mayRemain allows the watch that an election allows, and a session's watch on a run that was lost
// before the session read it.
func (c *schedulerCluster) mayRemain(path string) bool {
	return path == c.path()+"/election~waiting" || strings.HasPrefix(path, c.path()+"/jobs/")
}

// runMember runs one member for a time, or until end is closed.
type runMember func(a *actor, length time.Duration, end <-chan struct{})

// startMembers starts an actor beside the first one of a process. It runs one member after the
// other until the end of the program. With runAfterHeal it then runs a last one for timeAfterHeal,
// whose end is nil.
func (c *schedulerCluster) startMembers(first *actor, timeAfterHeal time.Duration, run runMember) {
	if first.name != first.process.name+"a" {
		return
	}
	a := newActor(first.process, c.spec, 20)
	c.sim.actors.Go(func() {
		for a.nextStep() {
			run(a, durationBetween(a.rng, a.maxPause, 20*a.maxPause), c.sim.programEnd)
		}
		if c.runAfterHeal && a.ctx.Err() == nil {
			c.sim.history.add(c.path(), "%s runs for %v after the faults", a.name, timeAfterHeal)
			run(a, timeAfterHeal, nil)
		}
	})
}

// runScheduler runs a scheduler until wait returns. stopped is closed if the scheduler stops
// before.
func (c *schedulerCluster) runScheduler(a *actor, m *scheduler.Scheduler,
	wait func(ctx context.Context, stopped <-chan struct{})) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	c.sim.actors.Go(func() {
		defer cancel()
		wait(ctx, stopped)
	})
	err := m.Run(ctx)
	a.waitWhileFrozen()
	stuck := errors.Is(err, framework.ErrUnfinished) // runs in a frozen process
	if err != nil && a.ctx.Err() == nil && !stuck {
		c.sim.addViolation(c.path(), "errors", "%s cannot run: %v", a.name, err)
	}
}

// lasts waits for length, and reports whether it has passed before end or stopped was closed.
func lasts(length time.Duration, end, stopped <-chan struct{}) bool {
	select {
	case <-time.After(length):
		return true
	case <-end:
	case <-stopped:
	}
	return false
}

// runFor is the body of a job's function: it takes some time, and ends early with its context.
func (a *actor) runFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	a.waitWhileFrozen()
}

// isRunning reports whether a run with this context can still act: its process runs, and no
// operator has ended a session of it.
func (a *actor) isRunning(ctx context.Context) bool {
	return !hasEnded(ctx) && !a.frozen() && a.ctx.Err() == nil && !a.sim.isHitByOperator(a.process)
}

// state reads a job's state with the operator's client, which has no faults.
func (c *schedulerCluster) state(job string) (scheduler.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return scheduler.New(c.sim.operator, c.path()).State(ctx, job)
}

// registeredState is state at the end of the simulation. It reports false for a job that no member
// has registered, and for one whose state cannot be read, which is a violation.
func (c *schedulerCluster) registeredState(job string) (st scheduler.State, ok bool) {
	st, err := c.state(job)
	unregistered := errors.Is(err, framework.ErrNotFound) || errors.Is(err, framework.ErrNoNode)
	if err != nil && !unregistered {
		c.sim.addViolation(c.path(), "ticks", "the state of %s: %v", job, err)
	}
	return st, err == nil
}

// checkNextTick checks that no tick before limit is due still.
func (c *schedulerCluster) checkNextTick(job string, st scheduler.State, limit time.Time) {
	if next := st.Next(time.Time{}); !next.IsZero() && next.Before(limit) {
		c.sim.addViolation(c.path(), "progress", "%s: the tick of %v is still due at %v: %+v", job, next,
			time.Now(), st)
	}
}
