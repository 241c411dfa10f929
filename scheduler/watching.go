package scheduler

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// watchMembers keeps up with who is there, until the member session ends.
func (sh *memberSession) watchMembers() {
	sh.retryStep(sh.ctx, "the members cannot be seen", func() error {
		names, _, w, err := sh.session.WatchChildren(sh.ctx, sh.members())
		if err != nil {
			return err
		}
		defer w.Stop()
		if err := sh.refreshMembers(names); err != nil {
			return err
		}
		select {
		case <-w.C():
		case <-sh.revised:
			sh.invalidateMembers()
		case <-sh.ctx.Done():
		}
		return nil
	})
}

// retryStep repeats a step until ctx ends, after a pause when it has failed.
func (sh *memberSession) retryStep(ctx context.Context, trouble string, step func() error) {
	back := sh.client.Backoff()
	for ctx.Err() == nil {
		err := step()
		if err == nil {
			back.Reset()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		sh.client.Logger().Warn(trouble+" yet", "path", sh.path, "error", err)
		_ = back.Pause(ctx) // the loop sees it
	}
}

// refreshMembers reads what newcomers say of themselves, and has the jobs assigned anew.
func (sh *memberSession) refreshMembers(names []string) error {
	slices.Sort(names)
	met := make([]member, 0, len(names))
	for _, name := range names {
		m, known := sh.cachedMember(name)
		if !known {
			data, _, err := sh.session.Get(sh.ctx, framework.Join(sh.members(), name))
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err == nil {
				m, err = decodeMember(name, data)
			}
			if errors.Is(err, ErrBadState) || errors.Is(err, ErrNewerState) {
				sh.client.Logger().Warn("a member cannot be understood and gets no jobs", "path", sh.path, "member", name, "error", err)
				continue
			}
			if err != nil {
				return err
			}
		}
		met = append(met, m)
	}
	sh.jobsMu.Lock()
	sh.met, sh.strange = met, false
	sh.jobsMu.Unlock()
	sh.assignJobs()
	return nil
}

func (sh *memberSession) cachedMember(name string) (member, bool) {
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	i, known := slices.BinarySearchFunc(sh.met, name, func(m member, name string) int { return strings.Compare(m.node, name) })
	if !known || sh.strange {
		return member{}, false
	}
	return sh.met[i], true
}

// invalidateMembers has every member's description read again.
func (sh *memberSession) invalidateMembers() {
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	sh.strange = true
}

// watchChanges keeps up with what others change, until ctx ends.
func (sh *memberSession) watchChanges(ctx context.Context) {
	seen := int32(-1) // everything is looked at first: something may have been missed before
	sh.retryStep(ctx, "changes cannot be seen", func() error {
		data, st, w, err := sh.session.WatchData(ctx, sh.changes())
		if errors.Is(err, framework.ErrNoNode) {
			return sh.createRecord(ctx, sh.session, sh.changes(), changeLog{})
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
			if err := sh.applyChanges(ctx, jobs, all || seen < 0); err != nil {
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

// applyChanges looks at the jobs that were changed, or at all of them.
func (sh *memberSession) applyChanges(ctx context.Context, jobs []string, all bool) error {
	if all {
		jobs = sh.allJobNames()
		select {
		case sh.revised <- struct{}{}:
		default:
		}
	}
	for _, name := range jobs {
		sh.lookAtJob(name, nil)
		if err := sh.stopReplacedRuns(ctx, name); err != nil {
			return err
		}
	}
	return sh.dropRemoved(ctx, jobs, all)
}

// allJobNames are those of the jobs that this member has or that run here, sorted.
func (s *Scheduler) allJobNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.local))
}

// stopReplacedRuns ends the runs of a job that go on here and are not to: the job was removed, or its next run is due
// in another member.
func (sh *memberSession) stopReplacedRuns(ctx context.Context, name string) error {
	sh.Scheduler.mu.Lock()
	local, j := sh.local[name], sh.jobs[name]
	sh.Scheduler.mu.Unlock()
	if j != nil && !j.entered.Load() {
		j = nil // it is being registered, perhaps in the place of one that was removed
	}
	if local == nil || len(local.allRuns()) == 0 {
		return nil
	}
	state, err := newStateCache(sh.node(name)).readState(ctx, sh.session)
	switch {
	case errors.Is(err, ErrUnknownJob) && j != nil:
		sh.dropRemovedJob(j)
		return nil
	case errors.Is(err, ErrUnknownJob):
		local.endRunsOf(math.MaxInt64 - 1)
		return nil
	case errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState):
		return nil // who has the job tells of it; other jobs' changes are to be followed
	case err != nil:
		return err
	}
	if j != nil && j.removedBy(state) {
		sh.dropRemovedJob(j)
	}
	for _, e := range local.allRuns() {
		i := state.indexOfRun(e.record.Number)
		switch {
		case !state.belongsToRegistration(e.record):
			e.stop(ErrRemoved)
		case i >= 0 && e.isRun(state.Running[i]) && state.Running[i].replace:
			e.stop(ErrReplaced)
		}
	}
	return nil
}

// watchRun has a job looked at once a run of another member has ended, or was lost.
func (sh *memberSession) watchRun(p *ownedJob, number int64, w *framework.Watch) {
	defer w.Stop()
	select {
	case <-w.C():
	case <-sh.ctx.Done():
		return
	}
	sh.jobsMu.Lock()
	delete(p.watched, number)
	sh.jobsMu.Unlock()
	sh.lookAtJob(p.job.Name, nil)
}

// removedBy reports whether a stored state tells that the job was removed since it was entered: it is a tombstone, or
// was registered again. A state of an earlier registration is outdated, and tells nothing.
func (j *job) removedBy(state State) bool {
	known := j.generation.Load()
	return state.generation > known || state.generation == known && !state.removed.IsZero()
}

// dropRemoved forgoes those of these jobs that were removed and belong to other members, so that they can be added
// again: nobody looks at them here otherwise. If they are all there are, they are asked for at once.
func (sh *memberSession) dropRemoved(ctx context.Context, names []string, all bool) error {
	var others []*job
	for _, name := range names {
		if j := sh.otherMembersJob(name); j != nil {
			others = append(others, j)
		}
	}
	if all && len(others) > 0 {
		suspects, err := sh.mayBeRemoved(ctx)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(j *job) bool { return !suspects(j.Name) })
	}
	for _, j := range others {
		gone, err := sh.isRemoved(ctx, j)
		if err != nil {
			return err
		}
		if gone {
			sh.dropRemovedJob(j)
		}
	}
	return nil
}

// otherMembersJob is a job of that name which this member has, but which belongs to another; or nil.
func (sh *memberSession) otherMembersJob(name string) *job {
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	sh.Scheduler.mu.Lock()
	defer sh.Scheduler.mu.Unlock()
	if j := sh.jobs[name]; j != nil && j.entered.Load() && sh.posts[name] == nil {
		return j
	}
	return nil
}

// mayBeRemoved tells which jobs may have been removed: those without a node, and those that are listed as removed.
func (sh *memberSession) mayBeRemoved(ctx context.Context) (func(name string) bool, error) {
	there, _, err := sh.session.Children(ctx, sh.directory())
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	var list removedJobs
	data, _, err := sh.session.Get(ctx, sh.removedNode())
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
	for _, r := range list.jobs {
		removed[r.Job] = true
	}
	return func(name string) bool { return !known[name] || removed[name] }, nil
}

// isRemoved reports whether a job was removed, whatever a server that lags behind says.
func (sh *memberSession) isRemoved(ctx context.Context, j *job) (bool, error) {
	b := newStateCache(sh.node(j.Name))
	state, err := b.readState(ctx, sh.session)
	if errors.Is(err, ErrUnknownJob) {
		if err = sh.session.Sync(ctx, b.node); err == nil {
			state, err = b.readState(ctx, sh.session)
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
