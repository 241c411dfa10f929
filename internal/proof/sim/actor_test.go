package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// actor is a goroutine of a process that runs a workload.
type actor struct {
	*process
	name     string
	rng      *rand.Rand
	maxPause time.Duration // the longest pause between steps
	minPause time.Duration // the shortest one, if it is not 0
	hold     time.Duration // the usual hold, if it is not 0
}

func newActor(p *process, spec workloadSpec, n int) *actor {
	name := fmt.Sprintf("%s%c", p.name, 'a'+n)
	return &actor{process: p, name: name, rng: newRand(p.sim.plan.seed, "actor "+spec.path+" "+name),
		maxPause: p.sim.plan.duration / 20}
}

// nextStep waits for a random time, and reports whether to take another step.
func (a *actor) nextStep() bool {
	if a.minPause > 0 {
		ctx, cancel := a.untilRoused()
		a.sleep(ctx, durationBetween(a.rng, a.minPause, 2*a.minPause))
		cancel()
		return a.ctx.Err() == nil && !a.sim.programEnded()
	}
	a.sleep(a.ctx, pickOne(a.rng, 0, durationBetween(a.rng, 0, 5*time.Millisecond),
		durationBetween(a.rng, 0, 500*time.Millisecond), durationBetween(a.rng, 0, a.maxPause)))
	return a.ctx.Err() == nil && !a.sim.programEnded()
}

// sleep waits for d, or until ctx ends or the program ends, and longer while the process is frozen.
func (a *actor) sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-a.sim.programEnd:
		}
	}
	a.waitWhileFrozen()
}

// callContext returns a context for one call, which may end at any point of it.
func (a *actor) callContext() (context.Context, context.CancelFunc) {
	switch a.rng.IntN(5) {
	case 0:
		return context.WithTimeout(a.ctx, pickOne(a.rng, durationBetween(a.rng, 0, 20*time.Millisecond),
			durationBetween(a.rng, 0, 2*time.Second), durationBetween(a.rng, 0, 2*a.sim.plan.sessionTimeout)))
	case 1:
		ctx, cancel := context.WithCancel(a.ctx)
		a.afterRequests(1+a.rng.IntN(8), cancel)
		return ctx, cancel
	}
	return context.WithCancel(a.ctx)
}

// hasSession reports whether a session is the process's current one.
func (a *actor) hasSession(id int64) bool {
	ctx, cancel := context.WithTimeout(a.ctx, time.Nanosecond)
	defer cancel()
	s, err := a.client.Session(ctx)
	return err == nil && int64(s.ID()) == id && s.Err() == nil
}

// isExpectedError reports whether a call may fail with err: its context or its process has ended,
// the servers have not confirmed a cleanup in time, or err is one of also.
func (a *actor) isExpectedError(ctx context.Context, err error, also ...error) bool {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		a.sim.countFault(contextEnd)
		return true
	}
	for _, other := range append([]error{framework.ErrUnconfirmed}, also...) {
		if errors.Is(err, other) {
			return true
		}
	}
	return a.ctx.Err() != nil && (errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrSessionLost))
}

// outcome describes an error for the history.
func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// lagServer lets the process's server lag behind for a while, in which others write. A real
// follower that lags for longer is cut off by its leader; and a session that holds nothing makes no
// request that would bring its server up to date.
func (a *actor) lagServer() {
	for _, session := range a.sim.zk.Sessions() {
		if a.sim.observer.processOf(session.ID) == a.process {
			duration, lag := durationBetween(a.rng, time.Second, 4*time.Second), a.sim.zk.Lag
			if duration%2 == 0 { // one of two is the leader. A real one lags for milliseconds, this one for seconds
				lag = a.sim.zk.LagAsLeader
			}
			if catchUp, err := lag(session.ID); err == nil {
				a.sim.countOperation("lag")
				time.AfterFunc(duration, catchUp)
			}
		}
	}
	a.sleep(a.ctx, durationBetween(a.rng, 0, time.Second))
}
