package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// runner runs the claimed runs of one activation and stores their outcomes.
type runner struct {
	store      *store
	report     *reporter
	jobs       *jobTable
	slots      *runSlots
	activation *activation
	stuckAfter time.Duration
	// the trace context of the campaign by which this member runs the job, or nil
	termTrace func(*job, *framework.Session) map[string]string
	// called when a run has ended here; known is the cache that its outcome was written with
	ended func(job string, known *stateCache)
}

// execution is a claimed run that goes on in this member, until its outcome is stored.
type execution struct {
	*runner
	session *framework.Session
	job     *job
	cache   *stateCache
	created int64     // the transaction that created the job's node
	record  storedRun // its Attempt rises
	local   *localRun
}

// startUnlessRunning starts a run that a session has claimed. The run takes over a slot that the
// caller has taken. A run that was started before is not started again: by a check of the job whose
// claim had a lost reply, or when the job belonged to this member earlier.
func (n *runner) startUnlessRunning(session *framework.Session, j *job, cache *stateCache, r storedRun, token int64) {
	r.Token = token
	e := &execution{
		runner: n, session: session, job: j, cache: cache, created: cache.created, record: r,
		local: newLocalRun(r, session.ID()),
	}
	runs := j.local
	fresh, begun := runs.beginRun(e.local)
	if !begun {
		e.local.stop(nil)
		n.slots.giveBack()
		return
	}
	n.jobs.keepRuns(runs)
	n.activation.runs.Go(func() {
		defer func() {
			e.local.stop(nil)
			n.slots.giveBack()
			runs.endRun(e.local)
			n.jobs.releaseRuns(runs)
			n.ended(j.Name, cache)
		}()
		e.runAndRecord(fresh)
	})
}

// describeRun returns the Run that the job's function gets.
func (e *execution) describeRun() Run {
	r := e.record
	return Run{Job: e.job.Name, Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt, Token: r.Token, ID: r.ID}
}

var errRanBefore = errors.New("the tick was run before")

// runAndRecord runs the job and stores the outcome. A tick that is not fresh is not run again: it
// was run here before an operator deleted the state.
func (e *execution) runAndRecord(fresh bool) {
	if !fresh {
		e.recordOutcome(errRanBefore, nil)
		return
	}
	ctx, end := e.report.tel.startRunSpan(context.Background(), e.job.Name, e.record.RunRecord,
		e.termTrace(e.job, e.session), e.report.now)
	hold, err := primitives.Of(e.session).Hold(ctx, e.claim())
	if err != nil { // the session was lost: the job's next owner takes the run for lost
		end(err, Lost, e.record.Attempt)
		return
	}
	err, why := e.runWhileHeld(hold)
	hold.End(context.Canceled)
	outcome := e.recordOutcome(err, why)
	if e.session.Err() != nil {
		outcome = Lost
	}
	end(err, outcome, e.record.Attempt)
}

// claim is the run's claim: one transaction has created it and given the run its token. Another
// registration of the job may use the name again.
func (e *execution) claim() primitives.Created {
	return primitives.Created{Path: e.store.nodes.Claim(e.job.Name, e.record.Number), Zxid: e.record.Token}
}

// runWhileHeld runs the job with a context that ends with the claim, and when the run is stopped.
// It returns the job's error, and the cause of its context's end, or nil if the context has not
// ended.
func (e *execution) runWhileHeld(hold primitives.Hold) (err, why error) {
	ended, drainOver := e.local.ended, e.activation.drainOver
	defer context.AfterFunc(ended, func() { hold.End(context.Cause(ended)) })()
	defer context.AfterFunc(drainOver, func() { e.local.stop(context.Cause(drainOver)) })()
	if ended.Err() != nil { // the job was removed while its claim was under way
		hold.End(context.Cause(ended))
	}
	if err := hold.Err(); err != nil {
		return err, err
	}
	if latest := e.jobs.latestDefinition(e.job.local); latest.generation.Load() == e.record.Generation {
		e.job = latest // it may have been updated while the claim was under way, or while the session awoke
	}
	e.report.passEvent(Event{Kind: EventStarted, Job: e.job.Name, Run: e.describeRun()})
	err = e.runAttempts(hold)
	if why = hold.Err(); err != nil && why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	e.report.passEvent(Event{Kind: EventFinished, Job: e.job.Name, Run: e.describeRun(), Err: err})
	if err != nil {
		e.report.warn("a run failed", "job", e.job.Name, "run", e.record.ID, "error", err)
	}
	return err, why
}

var errStoppedBetweenAttempts = fmt.Errorf("%w before the next attempt", errDrained)

// runAttempts calls the job until it succeeds, has no attempt left or returns a permanent error. A
// scheduler that is being stopped begins no further attempt.
func (e *execution) runAttempts(hold primitives.Hold) error {
	stopped := e.activation.ctx
	for attempts := 1; ; attempts++ {
		err := e.runOnce(hold.Context())
		if err == nil || attempts >= e.job.Attempts || hold.Err() != nil || isPermanent(err) {
			return err
		}
		if stopped.Err() != nil {
			return fmt.Errorf("%w: %w", errStoppedBetweenAttempts, err)
		}
		e.report.passEvent(Event{Kind: EventRetrying, Job: e.job.Name, Run: e.describeRun(), Err: err})
		waiting, cancel := context.WithCancel(hold.Context())
		stop := context.AfterFunc(stopped, cancel)
		failed := recipe.Pause(waiting, e.job.pauseAfter(attempts))
		stop()
		cancel()
		switch {
		case hold.Err() != nil:
			return err
		case failed != nil:
			return fmt.Errorf("%w: %w", errStoppedBetweenAttempts, err)
		}
		e.record.Attempt++
	}
}

// runOnce calls the job once, within its timeout. A panic, and the end of the job's goroutine, are
// errors that wrap framework.ErrPanic.
func (e *execution) runOnce(ctx context.Context) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if e.job.Timeout > 0 {
		within, cancel = context.WithTimeoutCause(ctx, e.job.Timeout, errTimeout)
	}
	defer cancel()
	defer e.watchReturn(within)()
	err := usercode.Call(e.report.log, errPanic, "a job",
		[]any{"path", e.report.path, "job", e.job.Name, "run", e.record.ID},
		func() error { return e.job.Run(within, e.describeRun()) })
	if err != nil && errors.Is(context.Cause(within), errTimeout) {
		return fmt.Errorf("%w after %v: %w", errTimeout, e.job.Timeout, err)
	}
	return err
}

// watchReturn reports the run as stuck if stop was not called within stuckAfter of the end of a
// context.
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

// reportStuck reports a run that does not return, in this member and in the stored state.
func (e *execution) reportStuck(run Run, why error) {
	e.report.tel.countStuck(run.Job)
	e.report.log.Error("a job does not return though its context has ended", "path", e.report.path, "job", run.Job,
		"run", run.ID, "cause", why)
	e.report.passEvent(Event{Kind: EventStuck, Job: run.Job, Run: run, Err: why})
	_ = e.updateRecord(func(state *jobState, i int) ([]tolerantOp, error) {
		// if this fails, the event and the log still report the run
		state.Running[i].Stuck = true
		return nil, nil
	})
}

// recordOutcome stores a run's outcome and deletes its claim, in one transaction. It repeats the
// transaction until it succeeds or the session is lost. If the session is lost, or the outcome
// cannot be stored, for example because a later release has written the state, the claim is deleted
// without an outcome, and the job's next owner records the run as lost. If the servers refuse that
// deletion, too, it is tried again in the background until the session ends; it deletes no later
// claim of that name. why is the cause of the end of the run's context, or nil.
func (e *execution) recordOutcome(err, why error) Outcome {
	r, claim := e.record, e.claim()
	r.Ended, r.Outcome, r.Error = e.report.now().UTC().Truncate(time.Millisecond), outcomeOf(err, why), errorText(err)
	err = e.updateRecord(func(state *jobState, i int) ([]tolerantOp, error) {
		stored := state.Running[i]
		unclaim := framework.DeleteOp(claim.Path, framework.AnyVersion)
		ended := []tolerantOp{{op: unclaim, refused: framework.ErrNoNode}}
		if !state.belongsToRegistration(stored) {
			state.removeRun(stored)
			return ended, nil
		}
		r.Stuck, r.unknown, r.Member, r.Request = stored.Stuck, stored.unknown, "", stored.Request
		state.recordEnd(r)
		if r.Outcome == Stopped && e.job.Guarantee == AtLeastOnce {
			state.addRequested(pendingRun{Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt + 1, Reruns: r.Reruns,
				Request: r.Request})
		}
		past, err := e.store.historyOps(e.job.Name, nil, r)
		return append(ended, past...), err
	})
	if err != nil {
		e.report.log.Error("the outcome of a run cannot be stored", "path", e.report.path, "job", e.job.Name,
			"run", e.record.ID,
			"outcome", r.Outcome, "error", err)
		e.report.passEvent(Event{Kind: EventFailed, Job: e.job.Name, Run: e.describeRun(), Err: err})
		primitives.Of(e.session).DiscardOwn(nil, claim)
		return Lost
	}
	return r.Outcome
}

// outcomeOf is the outcome that a job's error stands for.
func outcomeOf(err, why error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, errStoppedBetweenAttempts):
		return Stopped
	case errors.Is(err, errPanic):
		return Panicked
	case errors.Is(err, errTimeout):
		return TimedOut
	case isPermanent(err):
		return Failed
	case errors.Is(why, errDrained), errors.Is(err, failure.ErrDraining):
		return Stopped
	case errors.Is(why, ErrReplaced), errors.Is(why, ErrRemoved):
		return Replaced
	}
	return Failed
}

// updateRecord changes the stored state of a run that goes on. It repeats the change until it
// succeeds, the run has an outcome already, or the session is lost. Its error says why the state
// cannot be changed.
func (e *execution) updateRecord(change func(state *jobState, i int) ([]tolerantOp, error)) error {
	back := recipe.NewBackoff(e.store.client)
	for e.session.Err() == nil {
		err := e.updateRecordOnce(change)
		switch {
		case err == nil, errors.Is(err, errUnknownJob):
			return nil
		case errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer),
			errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			return err
		case errors.Is(err, framework.ErrBadVersion):
			continue
		case errors.Is(err, framework.ErrSuspended): // the next try waits for the connection
			_ = e.session.Sync(e.session.Context(), e.cache.node) // its failure is the next try's
			continue
		}
		if e.session.Err() == nil {
			e.report.warn("the outcome of a run cannot be stored yet", "job", e.job.Name, "run", e.record.ID, "error",
				err)
			_ = back.Pause(e.session.Context()) // the loop ends with the session
		}
	}
	return nil
}

func (e *execution) updateRecordOnce(change func(state *jobState, i int) ([]tolerantOp, error)) error {
	cache := e.cache
	defer cache.lock()()
	state, err := cache.readState(e.session.Context(), e.session)
	if err != nil {
		return err
	}
	i := state.indexOfRun(e.record.Number)
	if i < 0 || cache.created != e.created || !e.local.isRun(state.Running[i]) {
		return nil // an earlier try has stored it, or another member has taken the run for lost
	}
	state = state.clone()
	ops, err := change(&state, i)
	if err != nil {
		return err
	}
	_, err = cache.writeState(e.session.Context(), e.session, state, nil, ops)
	return err
}
