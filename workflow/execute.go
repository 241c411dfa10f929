package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/queue"
)

// runner executes the runs of one kind, with deliveries of its queue.
type runner struct {
	store *runStore
	kind  Kind
}

// handle is the handler of the queue's items. It settles the delivery, except when it returns nil for an item that is over.
func (x *runner) handle(ctx context.Context, d *queue.Delivery[runItem]) error {
	err := x.handleUntilSettled(ctx, d)
	if err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrLost) {
		return queue.RetryAfter(longestPause, err) // such as a record of a newer release
	}
	return err
}

// handleUntilSettled executes the run, and again if somebody has changed its record meanwhile.
func (x *runner) handleUntilSettled(ctx context.Context, d *queue.Delivery[runItem]) error {
	again := false
	return recipe.OnSession(ctx, x.store.client, func(s *framework.Session) error {
		if again { // a transaction was refused: maybe by the guard
			if _, err := s.Multi(ctx, d.Guard()); err != nil && !failure.IsTransient(err) && !errors.Is(err, framework.ErrOutcomeUnknown) {
				return fmt.Errorf("%w: %w", queue.ErrLost, err)
			}
		}
		again = true
		return x.executeOnce(ctx, s, d)
	}, failure.IsTransient)
}

// executeOnce looks what is to be done with the item, does it, and settles the delivery. It returns ErrAgain if that has to be decided again.
func (x *runner) executeOnce(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem]) error {
	item := d.Value
	r, err := x.store.read(ctx, s, item.Run)
	switch {
	case errors.Is(err, ErrNoRun) || err == nil && (r.ID != item.ID || r.Turn != item.Turn):
		return nil // the run was removed, or has another item
	case err != nil:
		return err
	case r.State.IsFinished() && r.Held:
		return x.store.letGo(ctx, s, d, r)
	case r.State.IsFinished():
		return nil
	case r.State == Waiting:
		if err := x.store.takeUp(ctx, s, d, r); err != nil {
			return err
		}
		return recipe.ErrAgain // it is read as it is stored now
	}
	if losses := d.Attempt - 1; losses > x.kind.cfg.losses {
		next := r.runRecord
		next.State, next.Error = Failed, fmt.Sprintf("%d executors were lost; the last error was: %s", losses, shortenReason(r.Error))
		return x.store.finish(ctx, s, d, r, next)
	}
	return x.execute(ctx, s, d, r)
}

// errChanged is the cause with which the context of a run's function ends when the record was changed by someone else.
var errChanged = errors.New("the run's record was changed")

// execute calls the run's function and writes what has become of the run.
func (x *runner) execute(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run, err := openStoredRun(within, s, x.store, r, &runExecutor{within, d, r.unchanged()}, uuid.NewString())
	if err != nil {
		return err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		cancel(watchRun(within, s, r))
	}()
	traced, end := x.store.tel.startExecution(within, r.node, r.Workflow, r.Trace, d.Token())
	result, err := x.callFunction(traced, run, r.Input)
	ended := context.Cause(within)
	cancel(nil)
	<-watched
	switch {
	case ctx.Err() != nil:
		end("lost", err)
		return failure.Ended(ctx)
	case ended != nil:
		end("changed", err)
		return recipe.ErrAgain
	}
	outcome, settled := x.settle(ctx, s, d, r, run, result, err)
	if settled != nil {
		outcome, err = "changed", settled
	}
	end(outcome, err)
	return settled
}

// watchRun returns, with an error, when the record is not the one that was read any more.
func watchRun(ctx context.Context, s *framework.Session, r storedRun) error {
	for {
		_, stat, changed, err := s.WatchData(ctx, r.node)
		if err == nil && (stat.Version != r.stat.Version || stat.Czxid != r.stat.Czxid) {
			changed.Stop()
			err = fmt.Errorf("%w: %w", ErrCancelled, errChanged)
		}
		if err == nil {
			_, err = recipe.WaitForWatch(ctx, s, changed)
		}
		if err != nil {
			return err
		}
	}
}

// callFunction calls the run's function. A panic is an error.
func (x *runner) callFunction(ctx context.Context, run *Run, input json.RawMessage) (result json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, v)
			x.store.client.Logger().Error("the function of a run panicked", "path", run.ledger.path, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	return x.kind.run(ctx, run, input)
}

// settle writes what has become of a run: finished, waiting, or to be tried again.
func (x *runner) settle(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun, run *Run, result json.RawMessage, err error) (outcome string, settled error) {
	next := r.runRecord
	waits, checks := run.state.awaited()
	var permanent *permanentError
	switch {
	case len(waits) > 0 && (err == nil || errors.Is(err, ErrWaiting)):
		next.Waits, next.Failures, next.Error = waits, 0, ""
		return "waiting", x.store.suspend(ctx, s, d, r, next, checks)
	case err == nil:
		next.State, next.Result, next.Error = Done, result, ""
		return "done", x.store.finish(ctx, s, d, r, next)
	}
	next.Failures++
	next.Error = shortenReason(err.Error())
	if next.Failures >= x.kind.cfg.attempts || errors.As(err, &permanent) {
		next.State = Failed
		x.store.client.Logger().Error("a run has failed", "path", r.node, "kind", r.Workflow, "attempts", next.Failures, "error", err)
		return "failed", x.store.finish(ctx, s, d, r, next)
	}
	x.store.client.Logger().Warn("a run's attempt has failed", "path", r.node, "kind", r.Workflow, "attempt", next.Failures, "error", err)
	now, err := x.store.now(ctx, s)
	if err != nil {
		return "retried", err
	}
	next.Waits = []runWait{{Until: now.Add(x.kind.cfg.pauseAfter(next.Failures)).UnixMilli() + 1, Retry: true}}
	return "retried", x.store.suspend(ctx, s, d, r, next, nil)
}

// work executes the runs of the kind until ctx ends.
func (x *runner) work(ctx context.Context, grace time.Duration) error {
	q, err := x.store.queueOf(x.kind.name)
	if err != nil {
		return err
	}
	return q.Work(ctx, x.kind.cfg.workers, x.handle, queue.WithGrace(grace))
}
