package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

const (
	// registeredAtOnce is how many jobs are registered at the same time.
	registeredAtOnce = 32
	// replacedAtOnce is how many schedules are replaced in one transaction: states are small, and
	// each transaction makes every member check its jobs.
	replacedAtOnce = 64
)

// registrar stores the schedules of this member's jobs, where they are missing or replace others.
type registrar struct {
	store   *store
	report  *reporter
	jobs    *jobTable
	removed func(*job) // the job is gone
	// updates this member's description, which must name the job, and assigns the jobs
	publishAndAssign func(ctx context.Context) error
}

// outdatedSchedule is a stored schedule that a job's declaration replaces.
type outdatedSchedule struct {
	job     *job
	cache   *stateCache
	newGaps *[]Gap // what the latest transaction that was not refused has recorded as missed
}

// registerAll registers this member's jobs, and tells the others of what has changed. Its error is
// that of the first job that cannot be registered.
func (r *registrar) registerAll(ctx context.Context) error {
	err := r.store.onSession(ctx,
		func(session *framework.Session) error { return session.Sync(ctx, string(r.store.nodes)) })
	if err != nil {
		return err
	}
	created, old, err := r.enterAll(ctx)
	for some := range slices.Chunk(old, replacedAtOnce) {
		if err == nil {
			err = r.replaceSchedules(ctx, some)
		}
	}
	if err == nil && len(created) > 0 {
		err = r.store.announceChanges(ctx, created...)
	}
	if err != nil {
		return err
	}
	r.store.sweepTombstones(ctx)
	return nil
}

// enterAll enters this member's jobs. It returns the names of those that it created, and the
// schedules to replace.
func (r *registrar) enterAll(ctx context.Context) (created []string, old []outdatedSchedule, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan *job)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range registeredAtOnce {
		all.Go(func() {
			for j := range jobs {
				fresh, outdated, err := r.enterJob(ctx, j)
				if err != nil {
					cancel(err)
				}
				mu.Lock()
				if fresh {
					created = append(created, j.Name)
				}
				old = append(old, outdated...)
				mu.Unlock()
			}
		})
	}
	for _, j := range r.jobs.allJobs() {
		if ctx.Err() == nil {
			jobs <- j
		}
	}
	close(jobs)
	all.Wait()
	return created, old, context.Cause(ctx)
}

// enterJob stores a job's state if it is missing or a tombstone, and reports whether it did.
// Otherwise it returns the stored schedule, if that is to be replaced. A job that was stored before
// is not registered anew: it was removed.
func (r *registrar) enterJob(ctx context.Context, j *job) (created bool, old []outdatedSchedule, err error) {
	err = r.store.onSession(ctx, func(session *framework.Session) error {
		cache := newStateCache(r.store.nodes.Job(j.Name))
		entered := j.entered.Load()
		state, err := cache.readState(ctx, session)
		if !entered && j.entered.Load() { // by another call meanwhile, perhaps after this read
			entered = true
			if err = session.Sync(ctx, cache.node); err == nil {
				cache.invalidate()
				state, err = cache.readState(ctx, session)
			}
		}
		unknown := errors.Is(err, errUnknownJob) || err == nil && !state.Removed.IsZero()
		switch {
		case unknown && entered:
			r.removed(j)
			return nil
		case errors.Is(err, errUnknownJob):
			created = true
			return r.createState(ctx, session, j)
		case unknown:
			created = true
			return r.replaceTombstone(ctx, session, j, cache, state)
		case err != nil:
			return err
		}
		if !entered {
			j.generation.Store(state.Generation)
			j.local.allowRunsOf(state.Generation)
		}
		if differs := state.differenceFrom(j.declaration()); differs != "" {
			r.report.warn("a job is stored as another release or command has registered it", "job", j.Name, "error",
				errors.New(differs))
		}
		if !state.agreesWith(j.declaration()) {
			old = []outdatedSchedule{{j, cache, new([]Gap)}}
		}
		return nil
	})
	if err == nil {
		j.entered.Store(true)
	}
	return created, old, err
}

// enterFirst enters a job that this member has and has not entered yet.
func (r *registrar) enterFirst(ctx context.Context, name string) error {
	j := r.jobs.findJob(name)
	if j == nil || j.entered.Load() {
		return nil
	}
	_, _, err := r.enterLatest(ctx, j)
	return err
}

// enterLatest is enterJob behind a sync.
func (r *registrar) enterLatest(ctx context.Context, j *job) (created bool, old []outdatedSchedule, err error) {
	err = r.store.onSession(ctx,
		func(session *framework.Session) error { return session.Sync(ctx, r.store.nodes.Job(j.Name)) })
	if err != nil {
		return false, nil, err
	}
	return r.enterJob(ctx, j)
}

// createState registers a job that has no node. Its generation is 0, also if an operator has
// deleted a node with a higher one.
func (r *registrar) createState(ctx context.Context, session *framework.Session, j *job) error {
	j.generation.Store(0)
	j.local.allowRunsOf(0)
	return r.store.createState(ctx, session, j.Name, j.declaration())
}

// replaceTombstone registers a job in the place of a tombstone.
func (r *registrar) replaceTombstone(ctx context.Context, session *framework.Session, j *job, cache *stateCache,
	tombstone jobState) error {
	now, err := r.store.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	state := tombstone.renewedState(j.declaration(), now)
	j.generation.Store(state.Generation)
	_, err = cache.writeState(ctx, session, state, nil, nil)
	return err
}

// registerInBackground registers a job that is added, or that takes the place of another
// definition, while the scheduler runs. It comes after the jobs that were there first, and after
// the definition before.
func (r *registrar) registerInBackground(a *activation, j, before *job) {
	registered := make(chan struct{})
	started := a.goRegister(func() {
		defer close(registered)
		earlier := []<-chan struct{}{a.registered}
		if before != nil && before.registered != nil {
			earlier = append(earlier, before.registered)
		}
		for _, done := range earlier {
			select {
			case <-done:
			case <-a.registering.Done():
				return
			}
		}
		r.registerUntilDone(a.registering, j)
	})
	if started {
		j.registered = registered
	}
}

// registerUntilDone registers a job until that has succeeded, the job has left, or ctx ends.
func (r *registrar) registerUntilDone(ctx context.Context, j *job) {
	back := recipe.NewBackoff(r.store.client)
	for ctx.Err() == nil && !j.dropped.Load() {
		err := r.registerOne(ctx, j)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			r.report.reportFailure("a job cannot be registered yet", j.Name, err)
		}
		_ = back.Pause(ctx) // the loop ends with ctx
	}
}

func (r *registrar) registerOne(ctx context.Context, j *job) error {
	created, old, err := r.enterLatest(ctx, j)
	if err == nil && len(old) > 0 {
		err = r.replaceSchedules(ctx, old)
	}
	if err == nil && created {
		err = r.store.announceChanges(ctx, j.Name)
	}
	if err != nil {
		return err
	}
	return r.publishAndAssign(ctx)
}

// errSplitTransaction says that transactions of fewer schedules may be accepted.
var errSplitTransaction = errors.New("a transaction of many schedules was refused")

// replaceSchedules stores schedules in the place of others, in a transaction that announces the
// change: the owner of a job uses the old schedule until it reads the announcement. If the
// transaction is refused, it tries each half of the schedules on its own. So a job whose state
// changes all the time, or a request that is too large, keeps no other schedule from being
// replaced.
func (r *registrar) replaceSchedules(ctx context.Context, old []outdatedSchedule) error {
	err := r.store.onSession(ctx, func(session *framework.Session) error {
		err := r.replaceSchedulesOnce(ctx, session, old)
		for _, o := range old {
			o.cache.invalidate()
		}
		if len(old) > 1 && (errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrTooLarge)) {
			return errSplitTransaction
		}
		return err
	})
	if err == nil {
		for _, o := range old {
			r.report.reportMissed(o.job.Name, *o.newGaps)
		}
	}
	if !errors.Is(err, errSplitTransaction) {
		return err
	}
	half := len(old) / 2
	if err := r.replaceSchedules(ctx, old[:half]); err != nil {
		return err
	}
	return r.replaceSchedules(ctx, old[half:])
}

// replaceSchedulesOnce replaces the schedules that are still to be replaced. It does not register a
// job that was removed since enterJob: this member may have run it by the stored schedule
// meanwhile.
func (r *registrar) replaceSchedulesOnce(ctx context.Context, session *framework.Session,
	old []outdatedSchedule) error {
	now, err := r.store.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	var names []string
	var ops []framework.Op
	var replaced []outdatedSchedule // by ops, each with the gaps below
	var gaps [][]Gap
	for _, o := range old {
		declared := o.job.declaration()
		state, err := o.cache.readState(ctx, session)
		switch {
		case o.job.dropped.Load():
			continue
		case errors.Is(err, errUnknownJob) || err == nil && !state.Removed.IsZero():
			r.removed(o.job)
			continue
		case err != nil:
			return err
		case state.agreesWith(declared):
			continue
		}
		next := state.withDeclared(declared, now)
		data, err := next.encode()
		if err != nil {
			return err
		}
		replaced, gaps = append(replaced, o), append(gaps, next.newGaps)
		ops = append(ops, framework.SetOp(o.cache.node, data, o.cache.version))
		names = append(names, o.job.Name)
	}
	if len(names) == 0 {
		return nil
	}
	announce, err := r.store.announceOp(ctx, session, names...)
	if err != nil {
		return err
	}
	for i, o := range replaced {
		*o.newGaps = gaps[i]
	}
	_, err = session.Multi(ctx, append(ops, announce)...)
	var refused *framework.TxError
	if errors.As(err, &refused) {
		for _, o := range replaced {
			*o.newGaps = nil // if another member has replaced the schedule, that member reports them
		}
	}
	return err
}
