package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/lockstep-go/lockstep/framework"
)

// execution is a claimed run that goes on in this member, until its outcome is stored.
type execution struct {
	*Scheduler
	tour    *tour
	session *framework.Session
	job     *job
	book    *book
	record  RunRecord
	created int64           // the transaction that created the job's node
	ended   context.Context // done when the run is to end for a reason of this member's own
	stop    context.CancelCauseFunc
}

func newExecution(d *duty, r RunRecord, token int64) *execution {
	r.Token = token
	e := &execution{
		Scheduler: d.Scheduler, tour: d.tour, session: d.session, job: d.job, book: d.post.book, record: r, created: d.post.book.created,
	}
	e.ended, e.stop = context.WithCancelCause(context.Background())
	return e
}

// is reports whether a stored run is this one.
func (e *execution) is(r RunRecord) bool {
	return r.Number == e.record.Number && r.generation == e.record.generation && r.member == e.record.member
}

// run is what the function is told.
func (e *execution) run() Run {
	r := e.record
	return Run{Job: e.job.Name, Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt, Token: r.Token, ID: r.ID}
}

var errRanBefore = errors.New("the tick was run before")

// live runs the job and stores the outcome. A tick that is not fresh was run here before somebody deleted
// the state: it is not run again.
func (e *execution) live(fresh bool) {
	defer func() {
		e.stop(nil)
		e.slots.give()
		e.job.local.end(e)
		e.releaseRuns(e.job.local)
		e.look(e.job.Name, e.book)
		e.wakeShift()
	}()
	if !fresh {
		e.finish(errRanBefore, nil)
		return
	}
	e.takeDefinition()
	ctx, end := e.tel.trace(context.Background(), e)
	hold, err := e.session.Hold(ctx, e.claim(e.job.Name, e.record.Number))
	if err != nil { // the session was lost: whoever has the job next takes the run for lost
		end(err, Lost)
		return
	}
	err, why := e.within(hold)
	hold.End(context.Canceled)
	outcome := e.finish(err, why)
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

// wakeShift lets those go on that wait for a slot.
func (e *execution) wakeShift() {
	if sh := e.present(); sh != nil {
		sh.wake()
	}
}

// within runs the job while its claim is held and it is not to end. It returns the job's error, and why its
// context had ended by then, if it had.
func (e *execution) within(hold *framework.Hold) (err, why error) {
	defer context.AfterFunc(e.ended, func() { hold.End(context.Cause(e.ended)) })()
	defer context.AfterFunc(e.tour.cut, func() { e.stop(context.Cause(e.tour.cut)) })()
	if e.ended.Err() != nil { // the job was removed while its claim was under way
		hold.End(context.Cause(e.ended))
	}
	if err := hold.Err(); err != nil {
		return err, err
	}
	e.tell(Event{Kind: EventStarted, Job: e.job.Name, Run: e.run()})
	err = e.tries(hold)
	if why = hold.Err(); err != nil && why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	e.tell(Event{Kind: EventFinished, Job: e.job.Name, Run: e.run(), Err: err})
	if err != nil {
		e.client.Logger().Warn("a run failed", "path", e.path, "job", e.job.Name, "run", e.record.ID, "error", err)
	}
	return err, why
}

var errStoppedBetweenTries = fmt.Errorf("%w before the next try", ErrDrained)

// tries calls the job until it succeeds, or has no retry left. When the scheduler is stopped, there is no other try here.
func (e *execution) tries(hold *framework.Hold) error {
	for try := 1; ; try++ {
		err := e.try(hold.Context())
		if err == nil || try > e.job.Retries || hold.Err() != nil {
			return err
		}
		if e.tour.ctx.Err() != nil {
			return fmt.Errorf("%w: %w", errStoppedBetweenTries, err)
		}
		e.tell(Event{Kind: EventRetrying, Job: e.job.Name, Run: e.run(), Err: err})
		waiting, cancel := context.WithCancel(hold.Context())
		stop := context.AfterFunc(e.tour.ctx, cancel)
		failed := framework.Pause(waiting, e.job.pause(try))
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

// try calls the job once, within its timeout.
func (e *execution) try(ctx context.Context) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if e.job.Timeout > 0 {
		within, cancel = context.WithTimeoutCause(ctx, e.job.Timeout, ErrTimeout)
	}
	defer cancel()
	defer e.watchReturn(within)()
	err := e.call(within)
	if err != nil && errors.Is(context.Cause(within), ErrTimeout) {
		return fmt.Errorf("%w after %v: %w", ErrTimeout, e.job.Timeout, err)
	}
	return err
}

// call calls the function. A panic, or the end of the goroutine, is an outcome.
func (e *execution) call(ctx context.Context) (err error) {
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
		err = e.job.Run(ctx, e.run())
	}()
	<-done
	return err
}

// watchReturn reports the run if it has not returned some time after a context's end. The function returned
// ends that.
func (e *execution) watchReturn(ctx context.Context) (stop func()) {
	returned := make(chan struct{})
	run := e.run()
	unwatch := context.AfterFunc(ctx, func() {
		if !wait(returned, e.stuckAfter) {
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
	e.tell(Event{Kind: EventStuck, Job: run.Job, Run: run, Err: why})
	_ = e.update(func(state *State, i int) ([]operation, error) { // what cannot be stored was told
		state.Running[i].Stuck = true
		return nil, nil
	})
}
