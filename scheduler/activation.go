package scheduler

import (
	"context"
	"sync"
	"time"
)

// activation is one call of Run, and the goroutines that it waits for.
type activation struct {
	ctx       context.Context // of the call: no run is started once it is done
	drainOver context.Context // done when the grace is over: runs that still go on must end
	endRuns   context.CancelCauseFunc
	done      context.Context // done when Run waits for no run any more
	finish    context.CancelFunc

	registering     context.Context // done when no job is registered any more
	stopRegistering context.CancelFunc
	registered      chan struct{} // closed when the jobs that were added before Run are registered

	runs          sync.WaitGroup
	registrations sync.WaitGroup // of jobs that are added or updated meanwhile
	listeners     sync.WaitGroup // of changes

	mu       sync.Mutex
	draining bool // no registration or listener is started any more
}

func newActivation(ctx context.Context) *activation {
	a := &activation{ctx: ctx, registered: make(chan struct{})}
	a.drainOver, a.endRuns = context.WithCancelCause(context.Background())
	a.done, a.finish = context.WithCancel(context.Background())
	a.registering, a.stopRegistering = context.WithCancel(ctx)
	return a
}

// endContexts ends all contexts of the activation.
func (a *activation) endContexts() {
	a.stopRegistering()
	a.finish()
	a.endRuns(errDrained)
}

// goRegister runs a registration in the background, and reports false when the activation drains.
func (a *activation) goRegister(f func()) bool { return a.goUnlessDraining(&a.registrations, f) }

// goListen runs a listener in the background, and reports false when the activation drains.
func (a *activation) goListen(f func()) bool { return a.goUnlessDraining(&a.listeners, f) }

func (a *activation) goUnlessDraining(group *sync.WaitGroup, f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return false
	}
	group.Go(f)
	return true
}

// drainRuns waits until the runs have returned. It ends their contexts after the grace. It
// reports false if some have not returned stuckAfter later.
func (a *activation) drainRuns(drain, stuckAfter time.Duration) bool {
	a.stopRegistering()
	a.mu.Lock()
	a.draining = true
	a.mu.Unlock()
	a.registrations.Wait()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		a.runs.Wait()
	}()
	if waitAtMost(returned, drain) {
		return true
	}
	a.endRuns(errDrained)
	return waitAtMost(returned, stuckAfter)
}

// waitAtMost waits for done for at most d, and reports whether it was closed.
func waitAtMost(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
