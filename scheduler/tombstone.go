package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// A job that is removed leaves a tombstone: its record stays, marked as removed, until its runs have ended and for
// keepTombstones after that. It keeps the run numbers and the latest tick, for the case that the job is registered
// again. <path>/removed lists the tombstones, so that old ones are found without reading every job.
const (
	// keepTombstones is how long a tombstone is kept, by the ensemble's clock.
	keepTombstones = 24 * time.Hour
	// maxTombstones is how many tombstones are kept. Beyond it the oldest is deleted first.
	maxTombstones = 256

	removedVersion = 1
)

// Remove removes a job and its history: no member runs it any more, and the contexts of its runs end, with
// ErrRemoved as the cause. Under OverlapForbid and OverlapReplace, a job that is registered again starts no run
// before those have returned.
//
// A member that is started with the job, or to which it is added, registers it anew: its counters begin at zero,
// its run numbers go on, and no tick that was run before runs again.
//
// A record of the removal stays for a day, and until the last run has ended. The next Remove or start of a member
// after that deletes it. At most 256 such records are kept, beside those whose runs go on.
//
// Its error wraps ErrUnknownJob, ErrInvalidJob, ErrBadState or ErrNewerState. A record that cannot be read has to be
// deleted by hand.
func (s *Scheduler) Remove(ctx context.Context, name string) error {
	var generation int64
	err := s.changeState(ctx, "remove", name, func(st *State, now time.Time) (bool, error) {
		generation = st.generation
		st.markRemoved(now)
		return true, nil
	}, s.deleteHistoryOps)
	if err != nil {
		return err
	}
	if j := s.jobNamed(name); j != nil && j.entered.Load() && j.generation.Load() <= generation {
		s.dropRemovedJob(j) // it can be added again at once
	}
	s.sweepTombstones(ctx)
	return nil
}

// sweepTombstones deletes the tombstones that need not be kept. If it cannot, the next one does.
func (s *Scheduler) sweepTombstones(ctx context.Context) {
	err := s.retryUntilSettled(ctx, func(session *framework.Session) error { return s.sweepOld(ctx, session) })
	if err != nil && ctx.Err() == nil {
		s.client.Logger().Warn("old records of removed jobs cannot be deleted now", "path", s.path, "error", err)
	}
}

// deleteHistoryOps is the operations that delete a job's history and list its tombstone.
func (s *Scheduler) deleteHistoryOps(ctx context.Context, session *framework.Session, name string, now time.Time) ([]tolerantOp, error) {
	list, version, err := s.readRemoved(ctx, session)
	if err != nil {
		return nil, err
	}
	list.jobs = slices.DeleteFunc(list.jobs, func(r removedJob) bool { return r.Job == name })
	list.jobs = append(list.jobs, removedJob{name, now})
	data, err := list.encode()
	if err != nil {
		return nil, err
	}
	past, _, err := s.historyParts(ctx, session, name)
	return append([]tolerantOp{{op: framework.SetOp(s.removedNode(), data, version)}}, past...), err
}

// historyParts returns the operations that delete a job's history, and whether any run has its claim.
func (s *Scheduler) historyParts(ctx context.Context, session *framework.Session, name string) (past []tolerantOp, claimed bool, err error) {
	children, _, err := session.Children(ctx, s.node(name))
	for _, child := range children {
		if strings.HasPrefix(child, pastPrefix) {
			op := framework.DeleteOp(framework.Join(s.node(name), child), framework.AnyVersion)
			past = append(past, tolerantOp{op: op, refused: framework.ErrNoNode})
		}
		claimed = claimed || strings.HasPrefix(child, claimPrefix)
	}
	return past, claimed, err
}

// markRemoved makes a state a tombstone. An earlier release, which knows none, takes it for a paused job without anything
// to run, and ends its runs.
func (s *State) markRemoved(now time.Time) {
	s.removed, s.Paused = now, now
	s.Pending, s.LastRun, s.Gaps, s.replaced = nil, nil, nil, nil
	for i := range s.Running {
		s.Running[i].replace = true
	}
}

// renewed returns the state of a job that is registered in the place of a tombstone. Runs of the former registration
// that go on keep their place, so that they are not overlapped; an earlier release counts them for no tick.
func (s State) renewed(j *job, now time.Time) State {
	s = s.clone()
	for i := range s.Running {
		s.Running[i].Manual = true
	}
	spec, zone := j.storedSpec()
	since := laterOf(now, s.ticksSeenUntil())
	return State{
		Spec: spec, Zone: zone, Revision: j.Revision, Registered: since, registered: since, Since: since, HoldUntil: s.HoldUntil,
		Number: s.Number, Running: s.Running, requests: s.requests, generation: s.generation + 1, rest: s.rest,
	}
}

// removedJob is an entry of the list of tombstones.
type removedJob struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
}

// removedJobs is what is stored in <path>/removed, the earliest removal first. Some of the jobs may be registered
// again.
type removedJobs struct {
	jobs []removedJob
	rest jsonFields
}

// decodeRemoved reads the stored list. Its error wraps ErrNewerState or ErrBadState.
func decodeRemoved(data []byte) (removedJobs, error) {
	f, err := openRecord(data, removedVersion)
	if err != nil {
		return removedJobs{}, err
	}
	r := removedJobs{rest: f}
	if err := f.takeField("jobs", &r.jobs); err != nil {
		return removedJobs{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	for _, j := range r.jobs {
		if err := validName(j.Job); err != nil {
			return removedJobs{}, fmt.Errorf("%w: %w", ErrBadState, err)
		}
		if y := j.At.Year(); y < 1970 || y > 9999 {
			return removedJobs{}, fmt.Errorf("%w: the year %d is not between 1970 and 9999", ErrBadState, y)
		}
	}
	return r, nil
}

func (r removedJobs) encode() ([]byte, error) {
	jobs := r.jobs
	if jobs == nil {
		jobs = []removedJob{}
	}
	return r.rest.withFields(map[string]any{"v": removedVersion, "jobs": jobs})
}

// readRemoved reads the list of tombstones and its version. A list that cannot be read begins anew: the tombstones
// that it named stay until their jobs are registered and removed again.
func (s *Scheduler) readRemoved(ctx context.Context, session *framework.Session) (removedJobs, int32, error) {
	for {
		data, st, err := session.Get(ctx, s.removedNode())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.removedNode(), removedJobs{}); err != nil {
				return removedJobs{}, 0, err
			}
			continue
		}
		if err != nil {
			return removedJobs{}, 0, err
		}
		list, err := decodeRemoved(data)
		if errors.Is(err, ErrBadState) {
			list, err = removedJobs{}, nil
		}
		return list, st.Version, framework.Wrap("removed", s.removedNode(), err)
	}
}

// sweepOld deletes the tombstones that are old, and the oldest of too many. Those whose runs go on stay.
func (s *Scheduler) sweepOld(ctx context.Context, session *framework.Session) error {
	if _, err := session.Exists(ctx, s.removedNode()); errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	list, version, err := s.readRemoved(ctx, session)
	if err != nil || len(list.jobs) == 0 {
		return err
	}
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	var left []removedJob
	for i, r := range list.jobs {
		gone := false
		if now.Sub(r.At) >= keepTombstones || len(list.jobs)-i > maxTombstones {
			if gone, err = s.deleteTombstone(ctx, session, r.Job, now); err != nil {
				return err
			}
		}
		if !gone {
			left = append(left, r)
		}
	}
	if len(left) == len(list.jobs) {
		return nil
	}
	list.jobs = left
	data, err := list.encode()
	if err != nil {
		return err
	}
	_, err = session.Set(ctx, s.removedNode(), data, version)
	return err
}

// deleteTombstone deletes a job's tombstone, unless a run has its claim or a tick that was run lies ahead. It reports
// whether there is nothing more to do about it: also if the job is registered again, and if somebody has put a node
// of another kind below it, which keeps it there for good.
func (s *Scheduler) deleteTombstone(ctx context.Context, session *framework.Session, name string, now time.Time) (gone bool, err error) {
	b := newStateCache(s.node(name))
	state, err := b.readState(ctx, session)
	switch {
	case errors.Is(err, ErrUnknownJob), errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState), err == nil && state.removed.IsZero():
		return true, nil
	case err != nil:
		return false, err
	}
	past, claimed, err := s.historyParts(ctx, session, name)
	if err != nil || claimed || state.ticksSeenUntil().After(now) {
		return false, err
	}
	_, err = multiTolerant(ctx, session, append(past, tolerantOp{op: framework.DeleteOp(b.node, b.version)}))
	switch {
	case errors.Is(err, framework.ErrNotEmpty):
		s.client.Logger().Warn("the record of a removed job stays, as somebody has put a node below it", "path", b.node)
		return true, nil
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrNoNode):
		return false, nil // somebody else was quicker: the next sweep sees
	}
	return err == nil, err
}

// newRequest names a control operation, so that it is known when its reply is lost.
func newRequest() string { return uuid.NewString()[:13] }

// The history of a job is a ring of nodes beside its claims, <job>/past-<slot>: run n is in slot n modulo
// the ring's size. So a run is recorded in the transaction that ends it, and nothing has to be read.
const (
	pastPrefix  = "past-"
	claimPrefix = "run-"

	recordVersion = 1
)

// historyOps is the operations that record runs that have ended.
func (s *Scheduler) historyOps(job string, runs ...RunRecord) ([]tolerantOp, error) {
	var ops []tolerantOp
	for _, r := range runs {
		data, err := encodeRun(r)
		if err != nil {
			return nil, err
		}
		node := framework.Join(s.node(job), fmt.Sprintf("%s%d", pastPrefix, r.Number%int64(s.history)))
		create, set := framework.CreateOp(node, data, framework.Persistent), framework.SetOp(node, data, framework.AnyVersion)
		if r.Number <= int64(s.history) {
			ops = append(ops, tolerantOp{create, framework.ErrNodeExists, &set})
		} else {
			ops = append(ops, tolerantOp{set, framework.ErrNoNode, &create})
		}
	}
	return ops, nil
}

func encodeRun(r RunRecord) ([]byte, error) {
	f := jsonFields{}
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return nil, err
	}
	return f.withFields(map[string]any{"v": recordVersion})
}

// decodeRun reads a recorded run. Its error wraps ErrNewerState or ErrBadState.
func decodeRun(data []byte) (RunRecord, error) {
	var r RunRecord
	if _, err := openRecord(data, recordVersion); err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	delete(r.rest, "v")
	return r, nil
}

// Runs returns the latest runs of a job, the newest first: those that go on, and as many of those that have
// ended as WithHistory keeps. This member need not have the job. Its error wraps ErrUnknownJob, ErrInvalidJob,
// ErrBadState or ErrNewerState.
func (s *Scheduler) Runs(ctx context.Context, name string) ([]RunRecord, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return nil, err
	}
	runs := slices.Clone(state.Running)
	names, _, err := s.client.Children(ctx, s.node(name))
	for _, child := range names {
		if err != nil || !strings.HasPrefix(child, pastPrefix) {
			continue
		}
		var r RunRecord
		r, err = s.readRun(ctx, name, child)
		if errors.Is(err, framework.ErrNoNode) {
			err = nil
			continue
		}
		runs = append(runs, r)
	}
	if err != nil {
		return nil, framework.Wrap("runs", s.node(name), err)
	}
	slices.SortFunc(runs, func(a, b RunRecord) int { return int(b.Number - a.Number) })
	return slices.CompactFunc(runs, func(a, b RunRecord) bool { return a.Number == b.Number }), nil
}

func (s *Scheduler) readRun(ctx context.Context, job, child string) (RunRecord, error) {
	data, _, err := s.client.Get(ctx, framework.Join(s.node(job), child))
	if err != nil {
		return RunRecord{}, err
	}
	return decodeRun(data)
}
