package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Trigger asks for one run of a job by its owner: at once, or under OverlapForbid and
// OverlapReplace when the run that goes on has ended. MinHold delays it. If runs follow each other
// without a pause, at most the tick that is due goes before it. Paused jobs run too. The request is
// stored, so it survives this member and the owner. It is stored once, also when replies are lost.
//
// A job that this Scheduler has is registered first, as by Run. So Trigger may be called at any
// time after Add, and so may Pause, Resume, Reschedule and Remove. The error wraps
// framework.ErrNotFound if neither a member nor this Scheduler has registered the job. It may also
// wrap framework.ErrInvalid, ErrTooManyPending, framework.ErrBadRecord or framework.ErrNewer, or is
// that of ctx.
func (s *Scheduler) Trigger(ctx context.Context, name string) error {
	return s.changeState(ctx, "trigger", name, func(state *jobState, now time.Time, request string) (bool, error) {
		if len(state.Pending) >= maxPending {
			return false, fmt.Errorf("%w: %d runs of job %q", ErrTooManyPending, len(state.Pending), name)
		}
		state.addRequested(pendingRun{Tick: now.Truncate(time.Second), Manual: true, Attempt: 1, Request: request})
		return true, nil
	}, nil)
}

// Pause keeps a job from running until Resume, except when it is asked for with Trigger. A run that
// goes on is not disturbed. If its member dies or stops, a tick's run is not repeated before
// Resume; a run that was asked for with Trigger is repeated, as if the job were not paused. Ticks
// that are due meanwhile are missed. Pausing a paused job has no effect. Its error wraps
// framework.ErrNotFound, framework.ErrInvalid, framework.ErrBadRecord or framework.ErrNewer.
func (s *Scheduler) Pause(ctx context.Context, name string) error {
	return s.changeState(ctx, "pause", name, func(state *jobState, now time.Time, _ string) (bool, error) {
		if !state.Paused.IsZero() {
			return false, nil
		}
		state.Paused = now
		return true, nil
	}, nil)
}

// Resume lets a paused job run again, from its next tick on. It records the due ticks of the pause
// as missed, with ReasonPaused. Resuming a job that is not paused has no effect. Its errors are
// those of Pause.
func (s *Scheduler) Resume(ctx context.Context, name string) error {
	return s.changeState(ctx, "resume", name, func(state *jobState, now time.Time, _ string) (bool, error) {
		if state.Paused.IsZero() {
			return false, nil
		}
		schedule, err := state.schedule()
		if err != nil {
			return false, err
		}
		state.missDueTicks(schedule, now, ReasonPaused)
		state.Paused, state.Since = time.Time{}, latestOf(state.Registered, state.Since, now)
		return true, nil
	}, nil)
}

// Reschedule changes a job's schedule for all members, until a release gives it another one. See
// the package's documentation. It records due ticks of the old schedule that were not run as
// missed, with ReasonChanged. Its error wraps framework.ErrInvalid or is one of those of Pause.
func (s *Scheduler) Reschedule(ctx context.Context, name, spec string, zone *time.Location) error {
	schedule, err := ParseSpec(spec, zone)
	if err != nil {
		return failure.Wrap("reschedule", s.store.nodes.Job(name), err)
	}
	spec, in := schedule.String(), schedule.Zone().String()
	return s.changeState(ctx, "reschedule", name, func(state *jobState, now time.Time, _ string) (bool, error) {
		if state.Spec == spec && state.Zone == in {
			return false, nil
		}
		state.DeclaredSpec, state.DeclaredZone = state.declaredSchedule()
		if state.DeclaredSpec == spec && state.DeclaredZone == in {
			state.DeclaredSpec, state.DeclaredZone = "", ""
		}
		state.setSchedule(spec, in, now)
		return true, nil
	}, nil)
}

// Remove removes a job and its history: no member has it any more, nor does this Scheduler, and the
// contexts of its runs end, with ErrRemoved as the cause. Under OverlapForbid and OverlapReplace, a
// job that is registered again starts its first run after those have returned.
//
// A member that is started with the job later, or to which it is added later, registers it again:
// its counters begin at zero, its run numbers go on, and ticks that were run before do not run
// again.
//
// A record of the removal stays for a day, and until the last run has ended. The next Remove or
// start of a member after that deletes it. At most 256 such records are kept, beside those of jobs
// that still run.
//
// Its error wraps framework.ErrNotFound, framework.ErrInvalid, framework.ErrBadRecord or
// framework.ErrNewer. A record that cannot be read has to be deleted by hand.
func (s *Scheduler) Remove(ctx context.Context, name string) error {
	var generation int64
	err := s.changeState(ctx, "remove", name, func(state *jobState, now time.Time, _ string) (bool, error) {
		generation = state.Generation
		state.markRemoved(now)
		return true, nil
	}, s.store.tombstoneOps)
	if err != nil {
		return err
	}
	if j := s.jobs.findJob(name); j != nil && j.entered.Load() && j.generation.Load() <= generation {
		s.participation.dropRemoved(j) // it can be added again at once
	}
	s.store.sweepTombstones(ctx)
	return nil
}

// changeState changes a job's state once, and announces that to the members in the same
// transaction. It may call change more than once, each time with the stored state, the ensemble's
// time and the request, by which it recognizes an earlier try with a lost reply. change returns
// whether there is anything to write. If more is not nil, it returns further operations of the
// transaction.
func (s *Scheduler) changeState(ctx context.Context, op, name string,
	change func(state *jobState, now time.Time, request string) (bool, error),
	more func(ctx context.Context, session *framework.Session, job string, now time.Time) ([]tolerantOp, error),
) error {
	if err := s.checkName(name); err != nil {
		return failure.Wrap(op, s.Path(), err)
	}
	if err := s.registrar.enterFirst(ctx, name); err != nil {
		return failure.Wrap(op, s.store.nodes.Job(name), err)
	}
	request := uuid.NewString()[:13]
	var passed []Gap // by the try that was applied, which is the latest
	err := s.store.onSession(ctx, func(session *framework.Session) error {
		cache := newStateCache(s.store.nodes.Job(name))
		if err := session.Sync(ctx, cache.node); err != nil {
			return err
		}
		state, err := cache.readState(ctx, session)
		if err != nil || state.knowsRequest(request) {
			return err
		}
		passed = nil
		if !state.Removed.IsZero() {
			return fmt.Errorf("%w %q", errUnknownJob, name)
		}
		now, err := s.store.ensembleTime(ctx, session)
		if err != nil {
			return err
		}
		state = state.clone()
		changed, err := change(&state, now, request)
		if err != nil || !changed {
			return err
		}
		state.rememberRequest(request)
		passed = state.newGaps
		announce, err := s.store.announceOp(ctx, session, name)
		if err != nil {
			return err
		}
		ops := []tolerantOp{{op: announce}}
		if more != nil {
			others, err := more(ctx, session, name, now)
			if err != nil {
				return err
			}
			ops = append(ops, others...)
		}
		_, err = cache.writeState(ctx, session, state, nil, ops)
		return err
	})
	if err == nil {
		s.report.reportMissed(name, passed)
	}
	return failure.Wrap(op, s.store.nodes.Job(name), err)
}

// checkName returns what is wrong with the scheduler's arguments or the name of a job.
func (s *Scheduler) checkName(name string) error {
	if s.err != nil {
		return s.err
	}
	return validName(name)
}
