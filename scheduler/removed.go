package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// removedBy reports whether a stored state tells that the job was removed since it was entered: it is a tombstone, or
// was registered again. A state of an earlier registration is outdated, and tells nothing.
func (j *job) removedBy(state State) bool {
	known := j.generation.Load()
	return state.generation > known || state.generation == known && !state.removed.IsZero()
}

// dropRemoved forgoes those of these jobs that were removed and belong to other members, so that they can be added
// again: nobody looks at them here otherwise. If they are all there are, they are asked for at once.
func (sh *shift) dropRemoved(ctx context.Context, names []string, all bool) error {
	var others []*job
	for _, name := range names {
		if j := sh.others(name); j != nil {
			others = append(others, j)
		}
	}
	if all && len(others) > 0 {
		suspects, err := sh.suspects(ctx)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(j *job) bool { return !suspects(j.Name) })
	}
	for _, j := range others {
		gone, err := sh.gone(ctx, j)
		if err != nil {
			return err
		}
		if gone {
			sh.forgo(j)
		}
	}
	return nil
}

// others is a job of that name which this member has, but which belongs to another; or nil.
func (sh *shift) others(name string) *job {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.Scheduler.mu.Lock()
	defer sh.Scheduler.mu.Unlock()
	if j := sh.jobs[name]; j != nil && j.entered.Load() && sh.posts[name] == nil {
		return j
	}
	return nil
}

// suspects tells which jobs may have been removed: those without a node, and those that are listed as removed.
func (sh *shift) suspects(ctx context.Context) (func(name string) bool, error) {
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

// gone reports whether a job was removed, whatever a server that lags behind says.
func (sh *shift) gone(ctx context.Context, j *job) (bool, error) {
	b := newBook(sh.node(j.Name))
	state, err := b.read(ctx, sh.session)
	if errors.Is(err, ErrUnknownJob) {
		if err = sh.session.Sync(ctx, b.node); err == nil {
			state, err = b.read(ctx, sh.session)
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
