// Package drain stops the parts of a service, one stage after the other, within the time that the
// stop has. The service runner of package lockstep and the fx modules share it.
package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// Stage is a step of a stop. Stages are stopped in their order.
type Stage int

// The stages. The client is closed after the last one.
const (
	Pool       Stage = iota // registrations: callers pick other instances from now on
	Work                    // queue workers, executors of runs, jobs, and other functions of the program
	Leadership              // elections
	Background              // what the stages above use: configuration values, and monitors
	Membership              // members of groups: others see this process until its work has ended
	stages
)

// Of the time that is left for a stop, functions get three quarters. A task is waited for an eighth
// longer, in which it gives back what its functions have not finished. The rest is for later
// stages, and for the close of the client.
const (
	forFunctions = 3.0 / 4
	forTask      = 7.0 / 8
)

// FunctionTime returns how long functions may go on in a stop that may last for stop.
func FunctionTime(stop time.Duration) time.Duration {
	return time.Duration(float64(stop) * forFunctions)
}

// StopTime returns how long a stop must be able to last so that functions may go on for d.
func StopTime(d time.Duration) time.Duration { return time.Duration(float64(d) / forFunctions) }

// stopCause is the cause of a context that a stop has ended.
type stopCause struct{ functionsEnd time.Time } // zero: no limit

func (*stopCause) Error() string { return "the service stops" }

// Grace returns how long the functions of a recipe may go on whose context ctx has ended: their own
// grace, or less if the service that stops has less time.
func Grace(ctx context.Context, own time.Duration) time.Duration {
	var cause *stopCause
	if !errors.As(context.Cause(ctx), &cause) || cause.functionsEnd.IsZero() {
		return own
	}
	return max(0, min(own, time.Until(cause.functionsEnd)))
}

// Cleanup returns a context for what a task gives back when its context ctx has ended. It ends when
// functions must have returned.
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	var cause *stopCause
	if !errors.As(context.Cause(ctx), &cause) || cause.functionsEnd.IsZero() {
		return context.WithCancel(context.WithoutCancel(ctx))
	}
	return context.WithDeadline(context.WithoutCancel(ctx), cause.functionsEnd)
}

// ErrUnfinished is returned when a task has not ended within its part of the stop.
var ErrUnfinished = failure.KindOf(failure.ErrUnfinished, "it has not ended")

// Task is a function that runs until it is stopped.
type Task struct {
	name string
	f    func(context.Context)

	ctx    context.Context
	cancel context.CancelCauseFunc
	start  sync.Once
	ended  chan struct{}
}

// NewTask returns a task that calls f once it is started. The context of f has the values of ctx
// and does not end with it. The name is in the task's errors.
func NewTask(ctx context.Context, name string, f func(context.Context)) *Task {
	t := &Task{name: name, f: f, ended: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return t
}

// Start calls the function, unless the task was stopped before.
func (t *Task) Start() {
	t.start.Do(func() {
		go func() {
			defer close(t.ended)
			t.f(t.ctx)
		}()
	})
}

// Wait waits until the function has returned, or ctx has ended, and reports whether it has
// returned.
func (t *Task) Wait(ctx context.Context) bool {
	select {
	case <-t.ended:
	case <-ctx.Done():
	}
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// Stop ends the context of the function, and waits until it has returned, for its part of the time
// that stopping has left. Its error wraps ErrUnfinished.
func (t *Task) Stop(stopping context.Context) error {
	t.start.Do(func() { close(t.ended) })
	cause := &stopCause{}
	began := time.Now()
	wait, end := Part(stopping)
	defer end()
	if deadline, limited := stopping.Deadline(); limited {
		cause.functionsEnd = began.Add(FunctionTime(deadline.Sub(began)))
	}
	t.cancel(cause)
	select {
	case <-t.ended:
		return nil
	case <-wait.Done():
		return fmt.Errorf("%s: %w within %v of the stop", t.name, ErrUnfinished,
			time.Since(began).Round(time.Millisecond))
	}
}

// Part returns a context that ends when a task is no longer waited for.
func Part(stopping context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := stopping.Deadline()
	if !limited {
		return context.WithCancel(stopping)
	}
	return context.WithTimeout(stopping, time.Duration(float64(time.Until(deadline))*forTask))
}

// Sequence stops what was added to it, in the order of the stages. It is safe for concurrent use.
type Sequence struct {
	mu    sync.Mutex
	stops [stages][]func(context.Context) error
}

// Add adds a function that StopThrough calls once.
func (s *Sequence) Add(stage Stage, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops[stage] = append(s.stops[stage], stop)
}

// StopThrough stops the stages up to last, one after the other, and all of one stage at the same
// time. It goes on after errors, and returns all of them.
func (s *Sequence) StopThrough(stopping context.Context, last Stage) error {
	var errs []error
	for stage := range last + 1 {
		s.mu.Lock()
		stops := s.stops[stage]
		s.stops[stage] = nil
		s.mu.Unlock()
		failed := make([]error, len(stops))
		var all sync.WaitGroup
		for i, stop := range stops {
			all.Go(func() { failed[i] = stop(stopping) })
		}
		all.Wait()
		errs = append(errs, failed...)
	}
	return errors.Join(errs...)
}

// StopAll stops all stages.
func (s *Sequence) StopAll(stopping context.Context) error { return s.StopThrough(stopping, stages-1) }
