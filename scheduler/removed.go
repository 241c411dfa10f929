package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

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
		there, _, err := sh.session.Children(ctx, sh.directory())
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		slices.Sort(there)
		others = slices.DeleteFunc(others, func(j *job) bool {
			_, found := slices.BinarySearch(there, j.Name)
			return found
		})
	}
	for _, j := range others {
		gone, err := sh.gone(ctx, j.Name)
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

// gone tells whether a job's state is not there, whatever a server that lags behind says.
func (sh *shift) gone(ctx context.Context, name string) (bool, error) {
	_, err := sh.session.Exists(ctx, sh.node(name))
	if errors.Is(err, framework.ErrNoNode) {
		if err = sh.session.Sync(ctx, sh.node(name)); err == nil {
			_, err = sh.session.Exists(ctx, sh.node(name))
		}
	}
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	return false, err
}
