package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// execution is a claimed run that goes on in this member, until its outcome is stored.
type execution struct {
	*Scheduler
	activation *activation
	session    *framework.Session
	job        *job
	book       *stateCache
	record     RunRecord
	created    int64           // the transaction that created the job's node
	ended      context.Context // done when the run is to end for a reason of this member's own
	stop       context.CancelCauseFunc
}

func newExecution(d *jobPass, r RunRecord, token int64) *execution {
	r.Token = token
	e := &execution{
		Scheduler: d.Scheduler, activation: d.activation, session: d.session, job: d.job, book: d.post.book, record: r, created: d.post.book.created,
	}
	e.ended, e.stop = context.WithCancelCause(context.Background())
	return e
}

// isRun reports whether a stored run is this one.
func (e *execution) isRun(r RunRecord) bool {
	return r.Number == e.record.Number && r.generation == e.record.generation && r.member == e.record.member
}

// describeRun is what the function is told.
func (e *execution) describeRun() Run {
	r := e.record
	return Run{Job: e.job.Name, Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt, Token: r.Token, ID: r.ID}
}

var errRanBefore = errors.New("the tick was run before")

// runAndRecord runs the job and stores the outcome. A tick that is not fresh was run here before somebody deleted
// the state: it is not run again.
func (e *execution) runAndRecord(fresh bool) {
	defer func() {
		e.stop(nil)
		e.slots.giveBack()
		e.job.local.endRun(e)
		e.releaseRuns(e.job.local)
		e.lookAtJob(e.job.Name, e.book)
		e.wakeWaiting()
	}()
	if !fresh {
		e.recordOutcome(errRanBefore, nil)
		return
	}
	e.takeDefinition()
	ctx, end := e.tel.trace(context.Background(), e)
	hold, err := e.session.Hold(ctx, e.claim(e.job.Name, e.record.Number))
	if err != nil { // the session was lost: whoever has the job next takes the run for lost
		end(err, Lost)
		return
	}
	err, why := e.runWhileHeld(hold)
	hold.End(context.Canceled)
	outcome := e.recordOutcome(err, why)
	if e.session.Err() != nil {
		outcome = Lost
	}
	end(err, outcome)
}

// takeDefinition has the run go by the job's latest definition here: the job may have been updated while the claim was under way.
func (e *execution) takeDefinition() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.job.local.latest; j.generation.Load() == e.record.generation {
		e.job = j
	}
}

// wakeWaiting lets those go on that wait for a slot.
func (e *execution) wakeWaiting() {
	if sh := e.currentSession(); sh != nil {
		sh.wakeDispatcher()
	}
}

// runWhileHeld runs the job while its claim is held and it is not to end. It returns the job's error, and why its
// context had ended by then, if it had.
func (e *execution) runWhileHeld(hold *framework.Hold) (err, why error) {
	defer context.AfterFunc(e.ended, func() { hold.End(context.Cause(e.ended)) })()
	defer context.AfterFunc(e.activation.cut, func() { e.stop(context.Cause(e.activation.cut)) })()
	if e.ended.Err() != nil { // the job was removed while its claim was under way
		hold.End(context.Cause(e.ended))
	}
	if err := hold.Err(); err != nil {
		return err, err
	}
	e.sendEvent(Event{Kind: EventStarted, Job: e.job.Name, Run: e.describeRun()})
	err = e.runWithRetries(hold)
	if why = hold.Err(); err != nil && why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	e.sendEvent(Event{Kind: EventFinished, Job: e.job.Name, Run: e.describeRun(), Err: err})
	if err != nil {
		e.client.Logger().Warn("a run failed", "path", e.path, "job", e.job.Name, "run", e.record.ID, "error", err)
	}
	return err, why
}

var errStoppedBetweenTries = fmt.Errorf("%w before the next try", ErrDrained)

// runWithRetries calls the job until it succeeds, or has no retry left. When the scheduler is stopped, there is no other try here.
func (e *execution) runWithRetries(hold *framework.Hold) error {
	for try := 1; ; try++ {
		err := e.runOnce(hold.Context())
		if err == nil || try > e.job.Retries || hold.Err() != nil {
			return err
		}
		if e.activation.ctx.Err() != nil {
			return fmt.Errorf("%w: %w", errStoppedBetweenTries, err)
		}
		e.sendEvent(Event{Kind: EventRetrying, Job: e.job.Name, Run: e.describeRun(), Err: err})
		waiting, cancel := context.WithCancel(hold.Context())
		stop := context.AfterFunc(e.activation.ctx, cancel)
		failed := framework.Pause(waiting, e.job.retryPause(try))
		stop()
		cancel()
		switch {
		case hold.Err() != nil:
			return err
		case failed != nil:
			return fmt.Errorf("%w: %w", errStoppedBetweenTries, err)
		}
		e.record.Attempt++
	}
}

// runOnce calls the job once, within its timeout.
func (e *execution) runOnce(ctx context.Context) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if e.job.Timeout > 0 {
		within, cancel = context.WithTimeoutCause(ctx, e.job.Timeout, ErrTimeout)
	}
	defer cancel()
	defer e.watchReturn(within)()
	err := e.callFunction(within)
	if err != nil && errors.Is(context.Cause(within), ErrTimeout) {
		return fmt.Errorf("%w after %v: %w", ErrTimeout, e.job.Timeout, err)
	}
	return err
}

// callFunction calls the function. A panic, or the end of the goroutine, is an outcome.
func (e *execution) callFunction(ctx context.Context) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = fmt.Errorf("%w: it has ended its goroutine", ErrPanic) // unless it returns
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: %v", ErrPanic, v)
				e.client.Logger().Error("a job panicked", "path", e.path, "job", e.job.Name, "run", e.record.ID,
					"panic", v, "stack", string(debug.Stack()))
			}
		}()
		err = e.job.Run(ctx, e.describeRun())
	}()
	<-done
	return err
}

// watchReturn reports the run if it has not returned some time after a context's end. The function returned
// ends that.
func (e *execution) watchReturn(ctx context.Context) (stop func()) {
	returned := make(chan struct{})
	run := e.describeRun()
	unwatch := context.AfterFunc(ctx, func() {
		if !waitAtMost(returned, e.stuckAfter) {
			e.reportStuck(run, context.Cause(ctx))
		}
	})
	return func() {
		unwatch()
		close(returned)
	}
}

// reportStuck tells of a run that does not return, here and in the stored state.
func (e *execution) reportStuck(run Run, why error) {
	e.tel.stuck(run.Job)
	e.client.Logger().Error("a job does not return though its context has ended", "path", e.path, "job", run.Job,
		"run", run.ID, "cause", why)
	e.sendEvent(Event{Kind: EventStuck, Job: run.Job, Run: run, Err: why})
	_ = e.updateRecord(func(state *State, i int) ([]tolerantOp, error) { // what cannot be stored was told
		state.Running[i].Stuck = true
		return nil, nil
	})
}

// recordOutcome stores a run's outcome and deletes its claim, in one transaction. It tries until that is done
// or the session is lost, and the claim with it; then whoever has the job next takes the run for lost. So it does
// when the outcome cannot be stored, as the state was written by a later release, for example: the run ends all the same.
// why is the cause of its context's end, if that had ended.
func (e *execution) recordOutcome(err, why error) Outcome {
	r := e.record
	r.Ended, r.Outcome, r.Error = e.now().UTC().Truncate(time.Millisecond), outcomeOf(err, why), errorText(err)
	err = e.updateRecord(func(state *State, i int) ([]tolerantOp, error) {
		stored := state.Running[i]
		unclaim := framework.DeleteOp(e.claim(e.job.Name, r.Number), framework.AnyVersion)
		ended := []tolerantOp{{op: unclaim, refused: framework.ErrNoNode}}
		if !state.belongsToRegistration(stored) {
			state.removeRun(stored)
			return ended, nil
		}
		r.Stuck, r.rest, r.member, r.request = stored.Stuck, stored.rest, "", stored.request
		state.recordEnd(r)
		if r.Outcome == Stopped && e.job.Guarantee == AtLeastOnce {
			state.addRequested(Pending{Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt + 1, reruns: r.reruns, request: r.request})
		}
		past, err := e.historyOps(e.job.Name, r)
		return append(ended, past...), err
	})
	if err != nil {
		e.client.Logger().Error("what became of a run cannot be stored", "path", e.path, "job", e.job.Name, "run", e.record.ID,
			"outcome", r.Outcome, "error", err)
		e.sendEvent(Event{Kind: EventFailed, Job: e.job.Name, Run: e.describeRun(), Err: err})
		_ = e.session.DeleteIfPresent(e.session.Context(), e.claim(e.job.Name, r.Number)) // else it goes with the session
		return Lost
	}
	return r.Outcome
}

// outcomeOf is the outcome that a job's error stands for.
func outcomeOf(err, why error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, errStoppedBetweenTries):
		return Stopped
	case errors.Is(err, ErrPanic):
		return Panicked
	case errors.Is(err, ErrTimeout):
		return TimedOut
	case errors.Is(why, ErrDrained), errors.Is(err, ErrDrained):
		return Stopped
	case errors.Is(why, ErrReplaced), errors.Is(why, ErrRemoved):
		return Replaced
	}
	return Failed
}

// updateRecord changes the stored state of a run that goes on, and tries until that is done, the run has an
// outcome already, or the session is lost. Its error tells why that cannot be done.
func (e *execution) updateRecord(change func(state *State, i int) ([]tolerantOp, error)) error {
	back := e.client.Backoff()
	for e.session.Err() == nil {
		err := e.updateRecordOnce(change)
		switch {
		case err == nil, errors.Is(err, ErrUnknownJob):
			return nil
		case errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState), errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			return err
		case errors.Is(err, framework.ErrBadVersion):
			continue
		case errors.Is(err, framework.ErrSuspended): // the next try waits for the connection
			_ = e.session.Sync(e.session.Context(), e.node(e.job.Name)) // its failure is the next try's
			continue
		}
		if e.session.Err() == nil {
			e.client.Logger().Warn("what became of a run cannot be stored yet", "path", e.path, "job", e.job.Name,
				"run", e.record.ID, "error", err)
			_ = back.Pause(e.session.Context()) // the loop sees it
		}
	}
	return nil
}

func (e *execution) updateRecordOnce(change func(state *State, i int) ([]tolerantOp, error)) error {
	b := e.book
	defer b.lock()()
	state, err := b.readState(e.session.Context(), e.session)
	if err != nil {
		return err
	}
	i := state.indexOfRun(e.record.Number)
	if i < 0 || b.created != e.created || !e.isRun(state.Running[i]) {
		return nil // stored by a former try, or taken for lost
	}
	state = state.clone()
	ops, err := change(&state, i)
	if err != nil {
		return err
	}
	_, err = b.writeState(e.session.Context(), e.session, state, nil, ops)
	return err
}
