package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/usercode"
	"github.com/lockstep-go/lockstep/queue"
)

// runner executes the runs of one kind, with deliveries of its queue.
type runner struct {
	store    *runStore
	function Function
}

// handle is the handler of the queue's items. When it has executed the run, it has settled the
// delivery itself. Otherwise queue.Work settles the delivery: it acknowledges an older
// item of the run, for which handle returns nil, and gives the item back after an error.
func (x *runner) handle(ctx context.Context, d *queue.Delivery[runItem]) error {
	err := x.handleUntilSettled(ctx, d)
	if err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrLost) {
		// for example, a newer release has written the record
		x.store.client.Logger().Warn("a run cannot be executed; this is tried again", "path",
			x.store.runNode(d.Value.ID), "kind", x.function.kind, "after", longestPause, "error", err)
		return queue.RetryAfter(longestPause, fmt.Errorf("%s: %w", notExecuted, err))
	}
	return err
}

// notExecuted begins the reason with which handle gives an item back. Items come back for other
// reasons, too: an executor was lost, or the grace of Work has ended.
const notExecuted = "the run cannot be executed"

// handleUntilSettled executes the run, and again if somebody has changed its record meanwhile.
func (x *runner) handleUntilSettled(ctx context.Context, d *queue.Delivery[runItem]) error {
	again := false
	return recipe.OnSession(ctx, x.store.client, func(s *framework.Session) error {
		if again { // a transaction was refused: maybe by the guard
			if err := x.checkDelivery(ctx, s, d); err != nil {
				return err
			}
		}
		again = true
		return x.executeOnce(ctx, s, d)
	}, failure.IsTransient)
}

// executeOnce reads the run, does what the run's state asks for, and settles the delivery. It
// returns ErrAgain if the run must be read again.
func (x *runner) executeOnce(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem]) error {
	item := d.Value
	r, err := x.store.read(ctx, s, item.ID)
	switch {
	case errors.Is(err, errNoRun) || err == nil && (r.UUID != item.UUID || r.ItemNumber != item.ItemNumber):
		return nil // the run was removed, or has another item
	case err != nil:
		return err
	case r.State.IsFinished() && r.Held:
		return x.store.ackHeldItem(ctx, s, d, r)
	case r.State.IsFinished():
		return nil
	case r.State == Waiting:
		if err := x.store.resumeAfterTime(ctx, s, d, r); err != nil {
			return err
		}
		return recipe.ErrAgain // read the record that resumeAfterTime has written
	case strings.HasPrefix(d.LastError, notExecuted): // and so no executor was lost
		return x.store.renewItem(ctx, s, d, r)
	}
	return x.execute(ctx, s, d, r)
}

// execute calls the run's function and writes the outcome.
func (x *runner) execute(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run, err := openStoredRun(within, s, x.store, r, &runExecutor{within, d, r.unchanged()})
	switch {
	case err == nil:
	case ctx.Err() != nil || errors.Is(err, recipe.ErrAgain) || failure.IsTransient(err):
		return err
	default: // for example, a newer release has written a step's record
		x.store.client.Logger().Warn("the steps of a run cannot be read; this is tried again", "path", r.node, "kind",
			r.Workflow, "after", longestPause, "error", err)
		return x.pause(ctx, s, d, r, longestPause, err)
	}
	r = run.state.stored
	run.claim = runClaim{r.ItemNumber, d.Attempt}
	if losses := d.Attempt - max(1, run.state.claim); losses > x.function.cfg.losses {
		next := r.runRecord
		next.State, next.Error = Failed,
			fmt.Sprintf("%d executors were lost; the last error was: %s", losses, stored.Shorten(r.Error, maxReason))
		return x.store.finish(ctx, s, d, r, next)
	} else if losses > x.function.cfg.losses/2 {
		leave, err := x.executeAlone(ctx, s, r, losses)
		if err != nil {
			return err
		}
		defer leave()
		run.recorded = leave
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
	outcome, written := x.writeOutcome(ctx, d, r, run, result, err)
	if written != nil {
		outcome, err = "changed", written
	}
	end(outcome, err)
	return written
}

// aloneWithin is the time within which the suspected runs that a process has taken at once ask to
// be executed, each at a random moment. So the run that is first differs from process to process.
const aloneWithin = 5 * time.Second

// executeAlone waits until no other suspected run is executed in this process: one that has used up
// more than half of its losses. One of them may be what crashes its processes. While the others are
// executed alone, they are not lost with it, and the first step that they record ends the
// suspicion. Call leave then, or when the run is not executed any more.
func (x *runner) executeAlone(ctx context.Context, s *framework.Session, r storedRun,
	losses int) (leave func(), err error) {
	x.store.client.Logger().Warn("a run that has lost many executors is executed alone among such runs", "path", r.node,
		"kind", r.Workflow, "losses", losses)
	if err := recipe.Pause(ctx, rand.N(aloneWithin)); err != nil {
		return nil, err
	}
	select {
	case x.store.suspected <- struct{}{}:
	case <-ctx.Done():
		return nil, failure.Ended(ctx)
	}
	leave = sync.OnceFunc(func() { <-x.store.suspected })
	now, err := x.store.read(ctx, s, r.id)
	if err == nil && (now.stat.Czxid != r.stat.Czxid || now.stat.Version != r.stat.Version) ||
		errors.Is(err, errNoRun) {
		// cancelled, for example
		err = recipe.ErrAgain
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// watchRun waits until the record is not the one that was read any more. It always returns an
// error: ErrCancelled or errRequeued after a change, or why the record cannot be watched.
func watchRun(ctx context.Context, s *framework.Session, r storedRun) error {
	for {
		data, stat, changed, err := s.WatchData(ctx, r.node)
		if err == nil && (stat.Version != r.stat.Version || stat.Czxid != r.stat.Czxid) {
			changed.Stop()
			why := ErrCancelled
			// a cancelled run keeps its latest item until its executor has acknowledged that
			if now, err := parseRun(r.node, data); err == nil && now.UUID == r.UUID && now.ItemNumber != r.ItemNumber {
				why = errRequeued
			}
			err = fmt.Errorf("%w: %w", why, errChanged)
		}
		if err == nil {
			_, err = recipe.WaitForWatch(ctx, s, changed)
		}
		if err != nil {
			return err
		}
	}
}

// callFunction calls the run's function. A panic, and the end of its goroutine, are errors.
func (x *runner) callFunction(ctx context.Context, run *Run,
	input json.RawMessage) (result json.RawMessage, err error) {
	err = usercode.Call(x.store.client.Logger(), errPanic, "the function of a run", []any{"path", run.ledger.path},
		func() (err error) {
			result, err = x.function.call(ctx, run, input)
			return err
		})
	return result, err
}

// writeOutcome writes the outcome of a call of the run's function: the run has finished, waits, or
// is tried again after a pause.
func (x *runner) writeOutcome(ctx context.Context, d *queue.Delivery[runItem], r storedRun, run *Run,
	result json.RawMessage, err error) (outcome string, written error) {
	next := r.runRecord
	finish := func(s *framework.Session) error { return x.store.finish(ctx, s, d, r, next) }
	waits := run.state.awaited()
	var permanent *permanentError
	switch {
	case len(waits) > 0 && (err == nil || errors.Is(err, ErrWaiting)):
		next.Waits, next.Failures, next.Error = waits, 0, ""
		return "waiting", x.writeWhileUnchanged(ctx, d, r,
			func(s *framework.Session) error { return x.store.suspend(ctx, s, d, r, next) })
	case err == nil:
		next.State, next.Result, next.Error = Done, result, ""
		return "done", x.writeWhileUnchanged(ctx, d, r, finish)
	}
	next.Failures++
	next.Error = stored.Shorten(err.Error(), maxReason)
	if next.Failures >= x.function.cfg.attempts || errors.As(err, &permanent) {
		next.State = Failed
		x.store.client.Logger().Error("a run has failed", "path", r.node, "kind", r.Workflow, "attempts",
			next.Failures, "error", err)
		return "failed", x.writeWhileUnchanged(ctx, d, r, finish)
	}
	x.store.client.Logger().Warn("a run's attempt has failed", "path", r.node, "kind", r.Workflow, "attempt",
		next.Failures, "error", err)
	failed := r
	failed.Failures = next.Failures
	return "retried", x.writeWhileUnchanged(ctx, d, r, func(s *framework.Session) error {
		return x.pause(ctx, s, d, failed, x.function.cfg.pauseAfter(next.Failures), err)
	})
}

// writeWhileUnchanged repeats a write of the outcome as long as the record and the delivery are
// those with which the function was called: for example, a sibling has woken the parent meanwhile,
// and the servers have refused the run's end with the parent's former version. It returns ErrAgain
// if the run must be read again.
func (x *runner) writeWhileUnchanged(ctx context.Context, d *queue.Delivery[runItem], r storedRun,
	write func(s *framework.Session) error) error {
	again := false
	err := recipe.OnSession(ctx, x.store.client, func(s *framework.Session) error {
		if again {
			now, err := x.store.read(ctx, s, r.id)
			switch {
			case errors.Is(err, errNoRun) ||
				err == nil && (now.stat.Czxid != r.stat.Czxid || now.stat.Version != r.stat.Version):
				return errChanged
			case err != nil:
				return err
			}
			if err := x.checkDelivery(ctx, s, d); err != nil {
				return err
			}
		}
		again = true
		return write(s)
	}, failure.IsTransient)
	if errors.Is(err, errChanged) {
		return recipe.ErrAgain
	}
	return err
}

// checkDelivery returns queue.ErrLost if the servers refuse the delivery's guard.
func (x *runner) checkDelivery(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem]) error {
	_, err := s.Multi(ctx, d.Guard())
	if err != nil && !failure.IsTransient(err) && !errors.Is(err, framework.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %w", queue.ErrLost, err)
	}
	return nil
}

// pause lets the run wait after an error, before its function is called again.
func (x *runner) pause(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun,
	pause time.Duration, reason error) error {
	now, err := x.store.now(ctx, s)
	if err != nil {
		return err
	}
	next := r.runRecord
	next.Error = stored.Shorten(reason.Error(), maxReason)
	next.Waits = []runWait{{Until: now.Add(pause).UnixMilli() + 1, Retry: true}}
	return x.store.suspend(ctx, s, d, r, next)
}

// work executes the runs of the kind until ctx ends.
func (x *runner) work(ctx context.Context, grace time.Duration) error {
	q, err := x.store.queueOf(x.function.kind)
	if err != nil {
		return err
	}
	return q.Work(ctx, x.function.cfg.workers, x.handle, queue.WithGrace(grace))
}
