package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Trigger has a job run once as soon as it may, wherever it belongs: at once, or when the run that goes on has
// ended, under OverlapForbid and OverlapReplace. If runs follow each other without a pause, at most the tick that
// is due goes before it. Paused jobs run too. What is asked for is stored: it survives
// its member. Its error wraps ErrUnknownJob, ErrInvalidJob, ErrTooManyPending, ErrBadState or ErrNewerState.
func (s *Scheduler) Trigger(ctx context.Context, name string) error {
	request := newRequest()
	return s.amendAs(ctx, "trigger", name, request, func(st *State, now time.Time) (bool, error) {
		if len(st.Pending) >= maxPending {
			return false, fmt.Errorf("%w: %d runs of job %q", ErrTooManyPending, len(st.Pending), name)
		}
		st.ask(Pending{Tick: now.Truncate(time.Second), Manual: true, Attempt: 1, request: request})
		return true, nil
	}, nil)
}

// asked tells whether a request is known, whatever has become of its run since.
func (s State) asked(request string) bool { return slices.Contains(s.requests, request) }

// note remembers a request beside the latest ones: a connection may be gone for long before its reply is settled.
func (s *State) note(request string) {
	s.requests = append(s.requests, request)
	if over := len(s.requests) - maxRequests; over > 0 {
		s.requests = s.requests[over:]
	}
}

// Pause keeps a job from running until Resume, except when it is asked for with Trigger. A run that goes on is not
// disturbed. If its member dies or stops, a tick's run is not repeated before Resume; a run that was asked for with
// Trigger is repeated, as if the job were not paused. Ticks that are due meanwhile are missed. Pausing a paused job
// changes nothing. Its error wraps ErrUnknownJob, ErrInvalidJob, ErrBadState or ErrNewerState.
func (s *Scheduler) Pause(ctx context.Context, name string) error {
	return s.amend(ctx, "pause", name, func(st *State, now time.Time) (bool, error) {
		if !st.Paused.IsZero() {
			return false, nil
		}
		st.Paused = now
		return true, nil
	}, nil)
}

// Resume lets a paused job run again, from its next tick on. Ticks that were not seen to are recorded as
// missed, with ReasonPaused. Resuming a job that is not paused changes nothing. Its errors are Pause's.
func (s *Scheduler) Resume(ctx context.Context, name string) error {
	return s.amend(ctx, "resume", name, func(st *State, now time.Time) (bool, error) {
		if st.Paused.IsZero() {
			return false, nil
		}
		schedule, err := st.schedule()
		if err != nil {
			return false, err
		}
		st.pass(schedule, now, ReasonPaused)
		st.Paused, st.Since = time.Time{}, later(st.Since, now)
		return true, nil
	}, nil)
}

// Reschedule changes a job's schedule for all members, until a release gives it another one. See the package's
// documentation. Ticks of the old schedule that were not seen to are recorded as missed, with
// ReasonChanged. Its error wraps ErrInvalidSpec or is one of Pause's.
func (s *Scheduler) Reschedule(ctx context.Context, name, spec string, zone *time.Location) error {
	schedule, err := ParseSpec(spec, zone)
	if err != nil {
		return framework.Wrap("reschedule", s.node(name), err)
	}
	spec, in := schedule.String(), schedule.Location().String()
	return s.amend(ctx, "reschedule", name, func(st *State, now time.Time) (bool, error) {
		if st.Spec == spec && st.Zone == in {
			return false, nil
		}
		st.declaredSpec, st.declaredZone = st.declared()
		if st.declaredSpec == spec && st.declaredZone == in {
			st.declaredSpec, st.declaredZone = "", ""
		}
		st.reschedule(spec, in, now)
		return true, nil
	}, nil)
}

// amend changes a job's state once, and tells the members in the same transaction. change may be called more than
// once, each time with what is stored; it returns whether there is anything to write. more, if it is not nil, returns
// further operations of the transaction. now is the ensemble's time.
func (s *Scheduler) amend(ctx context.Context, op, name string, change func(st *State, now time.Time) (bool, error), more moreOperations) error {
	return s.amendAs(ctx, op, name, newRequest(), change, more)
}

type moreOperations func(ctx context.Context, session *framework.Session, name string, now time.Time) ([]operation, error)

// amendAs is amend under a given request, by which an earlier try is known whose reply was lost.
func (s *Scheduler) amendAs(ctx context.Context, op, name, request string, change func(st *State, now time.Time) (bool, error), more moreOperations) error {
	if err := s.valid(name); err != nil {
		return framework.Wrap(op, s.path, err)
	}
	var passed []Gap // by the try that was applied, which is the latest
	err := s.settling(ctx, func(session *framework.Session) error {
		b := newBook(s.node(name))
		if err := session.Sync(ctx, b.node); err != nil {
			return err
		}
		state, err := b.read(ctx, session)
		if err != nil || state.asked(request) {
			return err
		}
		passed = nil
		if !state.removed.IsZero() {
			return fmt.Errorf("%w %q", ErrUnknownJob, name)
		}
		now, err := s.ensembleTime(ctx, session)
		if err != nil {
			return err
		}
		state = state.clone()
		changed, err := change(&state, now)
		if err != nil || !changed {
			return err
		}
		state.note(request)
		passed = state.passed
		tell, err := s.announce(ctx, session, name)
		if err != nil {
			return err
		}
		ops := []operation{{op: tell}}
		if more != nil {
			others, err := more(ctx, session, name, now)
			if err != nil {
				return err
			}
			ops = append(ops, others...)
		}
		_, err = b.write(ctx, session, state, nil, ops)
		return err
	})
	if err == nil {
		s.tellMissed(name, passed)
	}
	return framework.Wrap(op, s.node(name), err)
}

// valid refuses what no call can use.
func (s *Scheduler) valid(name string) error {
	if s.err != nil {
		return s.err
	}
	return validName(name)
}
