package scheduler

import (
	"context"
	"errors"
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
	return s.changeStateAs(ctx, "trigger", name, request, func(st *State, now time.Time) (bool, error) {
		if len(st.Pending) >= maxPending {
			return false, fmt.Errorf("%w: %d runs of job %q", ErrTooManyPending, len(st.Pending), name)
		}
		st.addRequested(Pending{Tick: now.Truncate(time.Second), Manual: true, Attempt: 1, request: request})
		return true, nil
	}, nil)
}

// knowsRequest reports whether a request is known, whatever has become of its run since.
func (s State) knowsRequest(request string) bool { return slices.Contains(s.requests, request) }

// rememberRequest remembers a request beside the latest ones: a connection may be gone for long before its reply is settled.
func (s *State) rememberRequest(request string) {
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
	return s.changeState(ctx, "pause", name, func(st *State, now time.Time) (bool, error) {
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
	return s.changeState(ctx, "resume", name, func(st *State, now time.Time) (bool, error) {
		if st.Paused.IsZero() {
			return false, nil
		}
		schedule, err := st.schedule()
		if err != nil {
			return false, err
		}
		st.missDueTicks(schedule, now, ReasonPaused)
		st.Paused, st.Since = time.Time{}, laterOf(laterOf(st.Registered, st.Since), now)
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
	return s.changeState(ctx, "reschedule", name, func(st *State, now time.Time) (bool, error) {
		if st.Spec == spec && st.Zone == in {
			return false, nil
		}
		st.declaredSpec, st.declaredZone = st.declaredSchedule()
		if st.declaredSpec == spec && st.declaredZone == in {
			st.declaredSpec, st.declaredZone = "", ""
		}
		st.setSchedule(spec, in, now)
		return true, nil
	}, nil)
}

// changeState changes a job's state once, and tells the members in the same transaction. change may be called more than
// once, each time with what is stored; it returns whether there is anything to write. more, if it is not nil, returns
// further operations of the transaction. now is the ensemble's time.
func (s *Scheduler) changeState(ctx context.Context, op, name string, change func(st *State, now time.Time) (bool, error), more moreOperations) error {
	return s.changeStateAs(ctx, op, name, newRequest(), change, more)
}

type moreOperations func(ctx context.Context, session *framework.Session, name string, now time.Time) ([]tolerantOp, error)

// changeStateAs is amend under a given request, by which an earlier try is known whose reply was lost.
func (s *Scheduler) changeStateAs(ctx context.Context, op, name, request string, change func(st *State, now time.Time) (bool, error), more moreOperations) error {
	if err := s.checkName(name); err != nil {
		return framework.Wrap(op, s.path, err)
	}
	var passed []Gap // by the try that was applied, which is the latest
	err := s.retryUntilSettled(ctx, func(session *framework.Session) error {
		b := newStateCache(s.node(name))
		if err := session.Sync(ctx, b.node); err != nil {
			return err
		}
		state, err := b.readState(ctx, session)
		if err != nil || state.knowsRequest(request) {
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
		state.rememberRequest(request)
		passed = state.passed
		tell, err := s.announceOp(ctx, session, name)
		if err != nil {
			return err
		}
		ops := []tolerantOp{{op: tell}}
		if more != nil {
			others, err := more(ctx, session, name, now)
			if err != nil {
				return err
			}
			ops = append(ops, others...)
		}
		_, err = b.writeState(ctx, session, state, nil, ops)
		return err
	})
	if err == nil {
		s.reportMissed(name, passed)
	}
	return framework.Wrap(op, s.node(name), err)
}

// checkName refuses what no call can use.
func (s *Scheduler) checkName(name string) error {
	if s.err != nil {
		return s.err
	}
	return validName(name)
}

// changeLog is what is stored in <path>/changes: the names of the jobs that somebody has changed last beside
// running them. Each member watches this one node, so that nobody has to ask. It is written in the
// transaction that makes the change; the node's version tells how many there were.
type changeLog struct {
	latest []change // oldest first
	rest   jsonFields
}

// change is one change. It was made by the write that gave the node this version.
type change struct {
	Version int32  `json:"n"`
	Job     string `json:"job,omitempty"` // "" is all of them, and the members' own descriptions
}

const (
	changesVersion = 1
	maxChanges     = 32
)

// decodeChanges reads the stored changes. Its error wraps ErrNewerState or ErrBadState.
func decodeChanges(data []byte) (changeLog, error) {
	var c changeLog
	f, err := openRecord(data, changesVersion)
	if err != nil {
		return changeLog{}, err
	}
	c.rest = f
	if err := f.takeField("changes", &c.latest); err != nil {
		return changeLog{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return c, nil
}

func (c changeLog) encode() ([]byte, error) {
	latest := c.latest
	if latest == nil {
		latest = []change{}
	}
	return c.rest.withFields(map[string]any{"v": changesVersion, "changes": latest})
}

// appended is the changes after one more, which is the write behind a version.
func (c changeLog) appended(job string, version int32) changeLog {
	latest := append(slices.Clone(c.latest), change{version + 1, job})
	if over := len(latest) - maxChanges; over > 0 {
		latest = latest[over:]
	}
	return changeLog{latest, c.rest}
}

// changedSince are the jobs that were changed after a version and until another; all if that cannot be told any more.
func (c changeLog) changedSince(version, now int32) (jobs []string, all bool) {
	next := version + 1
	for _, ch := range c.latest {
		if ch.Version <= version {
			continue
		}
		if ch.Version != next || ch.Job == "" {
			return nil, true
		}
		jobs = append(jobs, ch.Job)
		next++
	}
	return jobs, next != now+1
}

// parseChanges is decodeChanges, but begins anew with what cannot be read: it means that anything may have
// changed.
func parseChanges(data []byte) (changeLog, error) {
	c, err := decodeChanges(data)
	if errors.Is(err, ErrBadState) {
		return changeLog{}, nil
	}
	return c, err
}

// readChanges reads the changes and the node's version.
func (s *Scheduler) readChanges(ctx context.Context, session *framework.Session) (changeLog, int32, error) {
	for {
		data, st, err := session.Get(ctx, s.changes())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.changes(), changeLog{}); err != nil {
				return changeLog{}, 0, err
			}
			continue
		}
		if err != nil {
			return changeLog{}, 0, err
		}
		c, err := parseChanges(data)
		return c, st.Version, framework.Wrap("changes", s.changes(), err)
	}
}

// createRecord creates one of the records that are there once for all jobs.
func (s *Scheduler) createRecord(ctx context.Context, session *framework.Session, node string, r interface{ encode() ([]byte, error) }) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, s.path); err != nil {
		return err
	}
	err = session.CreateIfMissing(ctx, node, data, framework.Persistent)
	if errors.Is(err, framework.ErrNoNode) {
		return nil // the directory was deleted: look again
	}
	return err
}

// changedJobs is what is announced of jobs that were changed at once: one of them, or all there are.
func changedJobs(jobs []string) string {
	if len(jobs) == 1 {
		return jobs[0]
	}
	return ""
}

// announceOp is the operation that tells the members of a change, and is refused if there was another meanwhile.
func (s *Scheduler) announceOp(ctx context.Context, session *framework.Session, job string) (framework.Op, error) {
	c, version, err := s.readChanges(ctx, session)
	if err != nil {
		return framework.Op{}, err
	}
	data, err := c.appended(job, version).encode()
	return framework.SetOp(s.changes(), data, version), err
}
