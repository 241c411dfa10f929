package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// A job that is removed leaves a tombstone: its record stays, marked as removed, until its runs
// have ended and for keepTombstones after that. It keeps the run numbers and the latest tick, for
// the case that the job is registered again. <path>/removed lists the tombstones, so that old ones
// are found without reading every job.
const (
	// keepTombstones is how long a tombstone is kept, by the ensemble's clock.
	keepTombstones = 24 * time.Hour
	// maxTombstones is how many tombstones are kept. Beyond it the oldest is deleted first.
	maxTombstones = 256

	removedVersion = 1
)

// removedJob is an entry of the list of tombstones.
type removedJob struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
}

// removedJobs is what is stored in <path>/removed, the earliest removal first. Some of the jobs may
// be registered again.
type removedJobs struct {
	Jobs    []removedJob `json:"jobs"`
	unknown recipe.Unknown
}

// decodeRemoved reads the stored list. Its error wraps framework.ErrNewer or
// framework.ErrBadRecord.
func decodeRemoved(data []byte) (r removedJobs, err error) {
	if r.unknown, err = recipe.Decode(data, removedVersion, &r); err != nil {
		return removedJobs{}, err
	}
	for i := range r.Jobs {
		if err := errors.Join(validName(r.Jobs[i].Job), checkTimes(&r.Jobs[i].At)); err != nil {
			return removedJobs{}, fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
		}
	}
	return r, nil
}

func (r removedJobs) encode() ([]byte, error) {
	if r.Jobs == nil {
		r.Jobs = []removedJob{}
	}
	return r.unknown.Encode(removedVersion, r)
}

// readRemoved reads the list of tombstones and its version. A list that cannot be read begins anew:
// the tombstones that it named stay until their jobs are registered and removed again.
func (s *store) readRemoved(ctx context.Context, session *framework.Session) (removedJobs, int32, error) {
	for {
		data, stat, err := session.Get(ctx, s.nodes.Removed())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.nodes.Removed(), removedJobs{}); err != nil {
				return removedJobs{}, 0, err
			}
			continue
		}
		if err != nil {
			return removedJobs{}, 0, err
		}
		list, err := decodeRemoved(data)
		if errors.Is(err, framework.ErrBadRecord) {
			list, err = removedJobs{}, nil
		}
		return list, stat.Version, failure.Wrap("removed", s.nodes.Removed(), err)
	}
}

// tombstoneOps returns the operations that list a job's tombstone and delete its history.
func (s *store) tombstoneOps(ctx context.Context, session *framework.Session, job string,
	now time.Time) ([]tolerantOp, error) {
	list, version, err := s.readRemoved(ctx, session)
	if err != nil {
		return nil, err
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(r removedJob) bool { return r.Job == job })
	list.Jobs = append(list.Jobs, removedJob{job, now})
	data, err := list.encode()
	if err != nil {
		return nil, err
	}
	past, _, err := s.deleteHistoryOps(ctx, session, job)
	return append([]tolerantOp{{op: framework.SetOp(s.nodes.Removed(), data, version)}}, past...), err
}

// sweepTombstones deletes the tombstones that are old, and the oldest of too many. Those of jobs
// that still run stay. A failure is only logged, since the next sweep does the same.
func (s *store) sweepTombstones(ctx context.Context) {
	err := s.onSession(ctx, func(session *framework.Session) error { return s.sweepOnce(ctx, session) })
	if err != nil && ctx.Err() == nil {
		s.client.Logger().Warn("old records of removed jobs cannot be deleted now", "path", string(s.nodes), "error",
			err)
	}
}

func (s *store) sweepOnce(ctx context.Context, session *framework.Session) error {
	if _, err := session.Exists(ctx, s.nodes.Removed()); errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	list, version, err := s.readRemoved(ctx, session)
	if err != nil || len(list.Jobs) == 0 {
		return err
	}
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	var kept []removedJob
	for i, r := range list.Jobs {
		gone := false
		if now.Sub(r.At) >= keepTombstones || len(list.Jobs)-i > maxTombstones {
			if gone, err = s.deleteTombstone(ctx, session, r.Job, now); err != nil {
				return err
			}
		}
		if !gone {
			kept = append(kept, r)
		}
	}
	if len(kept) == len(list.Jobs) {
		return nil
	}
	list.Jobs = kept
	data, err := list.encode()
	if err != nil {
		return err
	}
	_, err = session.Set(ctx, s.nodes.Removed(), data, version)
	return err
}

// deleteTombstone deletes a job's tombstone, unless a run still has its claim or the latest tick
// lies ahead of the ensemble's clock. It reports whether the tombstone can leave the list. That is
// so, too, if the job is registered again, if the record cannot be read, and if another program has
// put a node below it, which keeps the servers from deleting it.
func (s *store) deleteTombstone(ctx context.Context, session *framework.Session, job string,
	now time.Time) (gone bool, err error) {
	cache := newStateCache(s.nodes.Job(job))
	state, err := cache.readState(ctx, session)
	switch {
	case errors.Is(err, errUnknownJob), errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer),
		err == nil &&
			state.Removed.IsZero():
		return true, nil
	case err != nil:
		return false, err
	}
	past, claimed, err := s.deleteHistoryOps(ctx, session, job)
	if err != nil || claimed || state.ticksSeenUntil().After(now) {
		return false, err
	}
	_, err = multiTolerant(ctx, session, append(past, tolerantOp{op: framework.DeleteOp(cache.node, cache.version)}))
	switch {
	case errors.Is(err, framework.ErrNotEmpty):
		s.client.Logger().Warn("the record of a removed job stays, as somebody has put a node below it",
			"path", cache.node)
		return true, nil
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrNoNode):
		return false, nil // another member was faster: the next sweep reads the result
	}
	return err == nil, err
}
