package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// changeFollower follows the change log with one session. It enqueues changed jobs for a check,
// ends the runs that another member has marked to end, and drops jobs that were removed.
type changeFollower struct {
	store   *store
	report  *reporter
	jobs    *jobTable
	session *framework.Session

	recheck func(job string)      // the job's state was changed
	owns    func(job string) bool // the job belongs to this member, which checks it anyway
	reread  func()                // members may have changed their descriptions
	removed func(*job)            // the job is gone
}

// followChanges follows the changes until ctx ends.
func (f *changeFollower) followChanges(ctx context.Context) {
	// at first, and in a record that was created again, everything may have changed: this member
	// may have missed changes
	seen, created := int32(-1), int64(0)
	var refused []string // changed jobs whose states may not be read: they are read again later
	repeatStep(ctx, f.store.client, f.report, "the changes cannot be read", func() error {
		data, stat, w, err := f.session.WatchData(ctx, f.store.nodes.Changes())
		if errors.Is(err, framework.ErrNoNode) {
			return f.store.createRecord(ctx, f.session, f.store.nodes.Changes(), changeLog{})
		}
		if err != nil {
			return err
		}
		defer w.Stop()
		c, err := parseChanges(data)
		if err != nil {
			return err
		}
		if stat.Czxid != created {
			seen, created = -1, stat.Czxid
		}
		if stat.Version != seen || len(refused) > 0 {
			jobs, all := c.changedSince(seen, stat.Version)
			jobs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(jobs, refused))))
			still, err := f.applyChanges(ctx, jobs, all || seen < 0)
			if err != nil {
				return err
			}
			seen, refused = stat.Version, still
		}
		var retry <-chan time.Time
		if len(refused) > 0 {
			retry = time.After(refusedReadAgainAfter)
		}
		select {
		case <-w.C():
		case <-retry:
		case <-ctx.Done():
		}
		return nil
	})
}

// applyChanges acts on the changes of some jobs, or of all. It returns the jobs whose states the
// servers refuse to show.
func (f *changeFollower) applyChanges(ctx context.Context, jobs []string, all bool) (refused []string, err error) {
	if all {
		jobs = f.jobs.knownNames()
		f.reread()
	}
	for _, name := range jobs {
		f.recheck(name)
		err := f.stopReplacedRuns(ctx, name)
		switch {
		case errors.Is(err, framework.ErrNoAuth):
			f.report.warn("the state of a changed job may not be read yet", "job", name, "error", err)
			refused = append(refused, name)
		case err != nil:
			return nil, err
		}
	}
	unread, err := f.dropRemoved(ctx, jobs, all)
	return append(refused, unread...), err
}

// stopReplacedRuns ends the runs of a job that go on here and must end: the job was removed, or
// another member waits with the next run of the job.
func (f *changeFollower) stopReplacedRuns(ctx context.Context, name string) error {
	j, runs := f.jobs.findRuns(name)
	if j != nil && !j.entered.Load() {
		j = nil // it is being registered, perhaps in the place of a removed job
	}
	if runs == nil {
		return nil
	}
	// before the state is read: a run that begins later may be of a job that is registered
	// meanwhile
	present := runs.allRuns()
	if len(present) == 0 {
		return nil
	}
	state, err := newStateCache(f.store.nodes.Job(name)).readState(ctx, f.session)
	switch {
	case errors.Is(err, errUnknownJob) && j != nil:
		f.removed(j)
		return nil
	case errors.Is(err, errUnknownJob):
		for _, r := range present {
			r.stop(ErrRemoved)
		}
		return nil
	case errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer):
		return nil // the job's owner reports it; go on with the changes of other jobs
	case err != nil:
		return err
	}
	if j != nil && j.removedBy(state) {
		f.removed(j)
	}
	for _, r := range runs.allRuns() {
		i := state.indexOfRun(r.record.Number)
		switch {
		case slices.Contains(present, r) && !state.belongsToRegistration(r.record):
			r.stop(ErrRemoved)
		case i >= 0 && r.isRun(state.Running[i]) && state.Running[i].Replace:
			r.stop(ErrReplaced)
		}
	}
	return nil
}

// dropRemoved drops the jobs among names that were removed and belong to other members, so that
// they can be added again: this member does not check such jobs. all says that names are all of its
// jobs: then it reads in two requests which of them may have been removed. It returns the jobs
// whose states the servers refuse to show.
func (f *changeFollower) dropRemoved(ctx context.Context, names []string, all bool) (refused []string, err error) {
	var others []*job
	for _, name := range names {
		if j := f.jobs.findJob(name); j != nil && j.entered.Load() && !f.owns(name) {
			others = append(others, j)
		}
	}
	if all && len(others) > 0 {
		suspects, err := f.mayBeRemoved(ctx)
		if err != nil {
			return nil, err
		}
		others = slices.DeleteFunc(others, func(j *job) bool { return !suspects(j.Name) })
	}
	for _, j := range others {
		gone, err := f.isRemoved(ctx, j)
		switch {
		case errors.Is(err, framework.ErrNoAuth):
			refused = append(refused, j.Name)
		case err != nil:
			return nil, err
		case gone:
			f.removed(j)
		}
	}
	return refused, nil
}

// mayBeRemoved returns which jobs may have been removed: those without a node, and those that are
// listed as removed.
func (f *changeFollower) mayBeRemoved(ctx context.Context) (func(name string) bool, error) {
	there, _, err := f.session.Children(ctx, f.store.nodes.Jobs())
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	var list removedJobs
	data, _, err := f.session.Get(ctx, f.store.nodes.Removed())
	if err == nil {
		list, err = decodeRemoved(data)
	}
	if err != nil && !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrBadRecord) &&
		!errors.Is(err, framework.ErrNewer) {
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
	cache := newStateCache(f.store.nodes.Job(j.Name))
	state, err := cache.readState(ctx, f.session)
	if errors.Is(err, errUnknownJob) {
		if err = f.session.Sync(ctx, cache.node); err == nil {
			state, err = cache.readState(ctx, f.session)
		}
	}
	switch {
	case errors.Is(err, errUnknownJob):
		return true, nil
	case errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer):
		return false, nil
	}
	return err == nil && j.removedBy(state), err
}
