package scheduler

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// changeFollower follows the change log with one session: it has changed jobs checked, ends the runs that another member wants to end, and
// drops jobs that were removed.
type changeFollower struct {
	store   *store
	report  *reporter
	jobs    *jobTable
	session *framework.Session

	recheck func(job string)      // the job's state was changed
	owns    func(job string) bool // the job belongs to this member, which checks it anyway
	revised func()                // members may have changed their descriptions
	removed func(*job)            // the job is gone
}

// followChanges follows the changes until ctx ends.
func (f *changeFollower) followChanges(ctx context.Context) {
	seen := int32(-1) // the first time, everything may have changed: this member may have missed changes
	repeatStep(ctx, f.store.client, f.report, "the changes cannot be read", func() error {
		data, st, w, err := f.session.WatchData(ctx, f.store.nodes.changes())
		if errors.Is(err, framework.ErrNoNode) {
			return f.store.createRecord(ctx, f.session, f.store.nodes.changes(), changeLog{})
		}
		if err != nil {
			return err
		}
		defer w.Stop()
		c, err := parseChanges(data)
		if err != nil {
			return err
		}
		if st.Version != seen {
			jobs, all := c.changedSince(seen, st.Version)
			if err := f.applyChanges(ctx, jobs, all || seen < 0); err != nil {
				return err
			}
			seen = st.Version
		}
		select {
		case <-w.C():
		case <-ctx.Done():
		}
		return nil
	})
}

// applyChanges acts on the changes of some jobs, or of all.
func (f *changeFollower) applyChanges(ctx context.Context, jobs []string, all bool) error {
	if all {
		jobs = f.jobs.knownNames()
		f.revised()
	}
	for _, name := range jobs {
		f.recheck(name)
		if err := f.stopReplacedRuns(ctx, name); err != nil {
			return err
		}
	}
	return f.dropRemoved(ctx, jobs, all)
}

// stopReplacedRuns ends the runs of a job that go on here and are not to: the job was removed, or its next run is due
// in another member.
func (f *changeFollower) stopReplacedRuns(ctx context.Context, name string) error {
	j, runs := f.jobs.findRuns(name)
	if j != nil && !j.entered.Load() {
		j = nil // it is being registered, perhaps in the place of one that was removed
	}
	if runs == nil || len(runs.allRuns()) == 0 {
		return nil
	}
	state, err := newStateCache(f.store.nodes.job(name)).readState(ctx, f.session)
	switch {
	case errors.Is(err, ErrUnknownJob) && j != nil:
		f.removed(j)
		return nil
	case errors.Is(err, ErrUnknownJob):
		runs.endRunsOf(math.MaxInt64 - 1)
		return nil
	case errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState):
		return nil // the job's owner reports it; other jobs' changes are to be followed
	case err != nil:
		return err
	}
	if j != nil && j.removedBy(state) {
		f.removed(j)
	}
	for _, r := range runs.allRuns() {
		i := state.indexOfRun(r.record.Number)
		switch {
		case !state.belongsToRegistration(r.record):
			r.stop(ErrRemoved)
		case i >= 0 && r.isRun(state.Running[i]) && state.Running[i].Replace:
			r.stop(ErrReplaced)
		}
	}
	return nil
}

// dropRemoved drops those of these jobs that were removed and belong to other members, so that they can be added
// again: this member does not check them. If these are all of its jobs, it reads which may have been removed at once.
func (f *changeFollower) dropRemoved(ctx context.Context, names []string, all bool) error {
	var others []*job
	for _, name := range names {
		if j := f.jobs.findJob(name); j != nil && j.entered.Load() && !f.owns(name) {
			others = append(others, j)
		}
	}
	if all && len(others) > 0 {
		suspects, err := f.mayBeRemoved(ctx)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(j *job) bool { return !suspects(j.Name) })
	}
	for _, j := range others {
		gone, err := f.isRemoved(ctx, j)
		if err != nil {
			return err
		}
		if gone {
			f.removed(j)
		}
	}
	return nil
}

// mayBeRemoved returns which jobs may have been removed: those without a node, and those that are listed as removed.
func (f *changeFollower) mayBeRemoved(ctx context.Context) (func(name string) bool, error) {
	there, _, err := f.session.Children(ctx, f.store.nodes.jobs())
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	var list removedJobs
	data, _, err := f.session.Get(ctx, f.store.nodes.removed())
	if err == nil {
		list, err = decodeRemoved(data)
	}
	if err != nil && !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, ErrBadState) && !errors.Is(err, ErrNewerState) {
		return nil, err
	}
	known, removed := map[string]bool{}, map[string]bool{}
	for _, name := range there {
		known[name] = true
	}
	for _, r := range list.Jobs {
		removed[r.Job] = true
	}
	return func(name string) bool { return !known[name] || removed[name] }, nil
}

// isRemoved reports whether a job was removed, also if the session's server lags behind.
func (f *changeFollower) isRemoved(ctx context.Context, j *job) (bool, error) {
	cache := newStateCache(f.store.nodes.job(j.Name))
	state, err := cache.readState(ctx, f.session)
	if errors.Is(err, ErrUnknownJob) {
		if err = f.session.Sync(ctx, cache.node); err == nil {
			state, err = cache.readState(ctx, f.session)
		}
	}
	switch {
	case errors.Is(err, ErrUnknownJob):
		return true, nil
	case errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState):
		return false, nil
	}
	return err == nil && j.removedBy(state), err
}
