package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// start runs a claimed tick in a goroutine of its own, until its outcome is stored. The job must have
// begun the tick.
func (d *duty) start(ctx context.Context, run Run) {
	d.runs.Go(func() {
		defer d.job.end()
		ctx, end := d.trace(context.WithoutCancel(ctx), run)
		hold, err := d.session.Hold(ctx, d.claim(run.Job))
		if err != nil { // the session was lost: the next leader takes the tick for missed
			end(err)
			return
		}
		err = d.within(hold, run)
		hold.End(context.Canceled)
		end(err)
		d.finish(run, err)
	})
}

// within runs the job while its claim is held, the term was not lost, and there is time.
func (d *duty) within(hold *framework.Hold, run Run) error {
	lost := func() {
		if cause := context.Cause(d.term.Context()); !errors.Is(cause, election.ErrResigned) {
			hold.End(cause)
		}
	}
	defer context.AfterFunc(d.term.Context(), lost)()
	defer context.AfterFunc(d.cut, func() { hold.End(context.Cause(d.cut)) })()
	if err := hold.Err(); err != nil {
		return err
	}
	d.tell(Event{Kind: EventStarted, Job: run.Job, Run: run})
	err := d.call(hold.Context(), run)
	d.tell(Event{Kind: EventFinished, Job: run.Job, Run: run, Err: err})
	if err != nil {
		d.client.Logger().Warn("a run failed", "path", d.path, "job", run.Job, "run", run.ID, "error", err)
	}
	return err
}

// call calls the job. A panic, or the end of the goroutine, is an outcome.
func (d *duty) call(ctx context.Context, run Run) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = fmt.Errorf("%w: it has ended its goroutine", ErrPanic) // unless it returns
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: %v", ErrPanic, v)
				d.client.Logger().Error("a job panicked", "path", d.path, "job", run.Job, "run", run.ID,
					"panic", v, "stack", string(debug.Stack()))
			}
		}()
		err = d.job.Run(ctx, run)
	}()
	<-done
	return err
}

// finish stores a run's outcome and deletes its claim, in one transaction. It tries until that is done
// or the session is lost, and the claim with it; then the next leader takes the tick for missed.
func (d *duty) finish(run Run, outcome error) {
	ended := d.now().UTC()
	back := d.client.Retries()
	for d.session.Err() == nil {
		state, version, err := d.read()
		if err == nil && (state.Running == nil || state.Running.ID != run.ID) {
			return // stored by a former try, or taken for missed
		}
		if err == nil {
			err = d.store(state.finished(ended, outcome), version)
		}
		switch {
		case err == nil, errors.Is(err, ErrUnknownJob):
			return
		case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
			continue
		}
		if d.session.Err() == nil {
			d.client.Logger().Warn("a run's outcome cannot be stored yet", "path", d.path, "job", run.Job, "run", run.ID, "error", err)
			_ = back.Pause(d.session.Context()) // the loop sees it
		}
	}
}

// store writes the state and deletes the claim, unless somebody has deleted that already. The term may be
// over: the version is guard enough.
func (d *duty) store(state State, version int32) error {
	data, err := state.encode()
	if err != nil {
		return err
	}
	ctx := d.session.Context()
	write := framework.SetOp(d.node(d.job.Name), data, version)
	_, err = d.session.Multi(ctx, framework.DeleteOp(d.claim(d.job.Name), framework.AnyVersion), write)
	var tx *framework.TxError
	if errors.As(err, &tx) && tx.Index == 0 && errors.Is(err, framework.ErrNoNode) {
		_, err = d.session.Multi(ctx, write)
	}
	return err
}

// finished is the state with the outcome of its present run.
func (s State) finished(ended time.Time, outcome error) State {
	run := *s.Running
	run.Ended, run.Error = ended, errorText(outcome)
	s.Running, s.LastRun = nil, &run
	return s
}

// errorText is what is stored of an error: valid, and not too long.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if text == "" {
		text = "error without text"
	}
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}
