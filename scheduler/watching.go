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

// watchMembers keeps up with who is there, until the shift ends.
func (sh *shift) watchMembers() {
	sh.retrying(sh.ctx, "the members cannot be seen", func() error {
		names, _, w, err := sh.session.WatchChildren(sh.ctx, sh.members())
		if err != nil {
			return err
		}
		defer w.Stop()
		if err := sh.meet(names); err != nil {
			return err
		}
		select {
		case <-w.C():
		case <-sh.revised:
			sh.estrange()
		case <-sh.ctx.Done():
		}
		return nil
	})
}

// retrying repeats a step until ctx ends, after a pause when it has failed.
func (sh *shift) retrying(ctx context.Context, trouble string, step func() error) {
	back := sh.client.Retries()
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

// meet reads what newcomers say of themselves, and has the jobs assigned anew.
func (sh *shift) meet(names []string) error {
	slices.Sort(names)
	met := make([]member, 0, len(names))
	for _, name := range names {
		m, known := sh.acquaintance(name)
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
	sh.mu.Lock()
	sh.met, sh.strange = met, false
	sh.mu.Unlock()
	sh.assign()
	return nil
}

func (sh *shift) acquaintance(name string) (member, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i, known := slices.BinarySearchFunc(sh.met, name, func(m member, name string) int { return strings.Compare(m.node, name) })
	if !known || sh.strange {
		return member{}, false
	}
	return sh.met[i], true
}

// estrange has every member's description read again.
func (sh *shift) estrange() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.strange = true
}

// watchChanges keeps up with what others change, until ctx ends.
func (sh *shift) watchChanges(ctx context.Context) {
	seen := int32(-1) // everything is looked at first: something may have been missed before
	sh.retrying(ctx, "changes cannot be seen", func() error {
		data, st, w, err := sh.session.WatchData(ctx, sh.changes())
		if errors.Is(err, framework.ErrNoNode) {
			return sh.createRecord(ctx, sh.session, sh.changes(), changes{})
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
			jobs, all := c.since(seen, st.Version)
			if err := sh.follow(ctx, jobs, all || seen < 0); err != nil {
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

// follow looks at the jobs that were changed, or at all of them.
func (sh *shift) follow(ctx context.Context, jobs []string, all bool) error {
	if all {
		jobs = sh.names()
		select {
		case sh.revised <- struct{}{}:
		default:
		}
	}
	for _, name := range jobs {
		sh.look(name, nil)
		if err := sh.recall(ctx, name); err != nil {
			return err
		}
	}
	return sh.dropRemoved(ctx, jobs, all)
}

// names are those of the jobs that this member has or that run here, sorted.
func (s *Scheduler) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.local))
}

// recall ends the runs of a job that go on here and are not to: the job was removed, or its next run is due
// in another member.
func (sh *shift) recall(ctx context.Context, name string) error {
	sh.Scheduler.mu.Lock()
	local, j := sh.local[name], sh.jobs[name]
	sh.Scheduler.mu.Unlock()
	if j != nil && !j.entered.Load() {
		j = nil // it is being registered, perhaps in the place of one that was removed
	}
	if local == nil || len(local.all()) == 0 {
		return nil
	}
	state, err := newBook(sh.node(name)).read(ctx, sh.session)
	switch {
	case errors.Is(err, ErrUnknownJob) && j != nil:
		sh.forgo(j)
		return nil
	case errors.Is(err, ErrUnknownJob):
		local.remove(math.MaxInt64 - 1)
		return nil
	case errors.Is(err, ErrBadState), errors.Is(err, ErrNewerState):
		return nil // who has the job tells of it; other jobs' changes are to be followed
	case err != nil:
		return err
	}
	if j != nil && j.removedBy(state) {
		sh.forgo(j)
	}
	for _, e := range local.all() {
		i := state.run(e.record.Number)
		switch {
		case !state.counts(e.record):
			e.stop(ErrRemoved)
		case i >= 0 && e.is(state.Running[i]) && state.Running[i].replace:
			e.stop(ErrReplaced)
		}
	}
	return nil
}

// watchRun has a job looked at once a run of another member has ended, or was lost.
func (sh *shift) watchRun(p *post, number int64, w *framework.Watch) {
	defer w.Stop()
	select {
	case <-w.C():
	case <-sh.ctx.Done():
		return
	}
	sh.mu.Lock()
	delete(p.watched, number)
	sh.mu.Unlock()
	sh.look(p.job.Name, nil)
}
