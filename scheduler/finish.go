package scheduler

import (
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// finish stores a run's outcome and deletes its claim, in one transaction. It tries until that is done
// or the session is lost, and the claim with it; then whoever has the job next takes the run for lost. So it does
// when the outcome cannot be stored, as the state was written by a later release, for example: the run ends all the same.
// why is the cause of its context's end, if that had ended.
func (e *execution) finish(err, why error) Outcome {
	r := e.record
	r.Ended, r.Outcome, r.Error = e.now().UTC().Truncate(time.Millisecond), outcomeOf(err, why), errorText(err)
	err = e.update(func(state *State, i int) ([]operation, error) {
		stored := state.Running[i]
		unclaim := framework.DeleteOp(e.claim(e.job.Name, r.Number), framework.AnyVersion)
		ended := []operation{{op: unclaim, refused: framework.ErrNoNode}}
		if !state.counts(stored) {
			state.drop(stored)
			return ended, nil
		}
		r.Stuck, r.rest, r.member, r.request = stored.Stuck, stored.rest, "", stored.request
		state.ended(r)
		if r.Outcome == Stopped && e.job.Guarantee == AtLeastOnce {
			state.ask(Pending{Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt + 1, reruns: r.reruns, request: r.request})
		}
		past, err := e.remember(e.job.Name, r)
		return append(ended, past...), err
	})
	if err != nil {
		e.client.Logger().Error("what became of a run cannot be stored", "path", e.path, "job", e.job.Name, "run", e.record.ID,
			"outcome", r.Outcome, "error", err)
		e.tell(Event{Kind: EventFailed, Job: e.job.Name, Run: e.run(), Err: err})
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

// update changes the stored state of a run that goes on, and tries until that is done, the run has an
// outcome already, or the session is lost. Its error tells why that cannot be done.
func (e *execution) update(change func(state *State, i int) ([]operation, error)) error {
	back := e.client.Retries()
	for e.session.Err() == nil {
		err := e.updateOnce(change)
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

func (e *execution) updateOnce(change func(state *State, i int) ([]operation, error)) error {
	b := e.book
	defer b.take()()
	state, err := b.read(e.session.Context(), e.session)
	if err != nil {
		return err
	}
	i := state.run(e.record.Number)
	if i < 0 || b.created != e.created || !e.is(state.Running[i]) {
		return nil // stored by a former try, or taken for lost
	}
	state = state.clone()
	ops, err := change(&state, i)
	if err != nil {
		return err
	}
	_, err = b.write(e.session.Context(), e.session, state, nil, ops)
	return err
}
