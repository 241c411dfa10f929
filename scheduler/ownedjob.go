package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// ownedJob is a job that belongs to this member at present. A check of it reads the state, plans,
// and does what the plan says: it claims a run and starts it, or records what is missed. Every
// write is guarded by the state's version, and by the term or the member's node. One goroutine at a
// time checks it.
type ownedJob struct {
	*ownership
	job        *job
	cache      *stateCache
	lateReason Reason // why ticks were not run before the next check

	// Of the present check.
	next         time.Time       // when to check again
	mayTakeSlot  bool            // if false, a free slot is kept for other jobs
	waitsForSlot bool            // for a slot
	hasSlot      bool            // it has a slot that no run has taken over
	children     map[string]bool // of the job's node, if they were listed

	lastFailure time.Time     // when a check failed last
	retryPause  time.Duration // after that failure

	watchMu sync.Mutex
	watched map[int64]bool // runs of other members, by their watched claims
}

// ownership is what the owned jobs of one member session share.
type ownership struct {
	store   *store
	report  *reporter
	jobs    *jobTable
	runner  *runner
	clock   *tickClock
	session *framework.Session
	member  string // this member's node
	// done when no check may start a run or a write any more; requests use the session's context,
	// so that the outcome of a transaction becomes known
	ctx     context.Context
	watches *background.Tasks // the goroutines of watchClaim

	// refuses a transaction unless the job belongs to this member; false if it does not
	guard   func(*job) (framework.Op, bool)
	recheck func(job string) // another member has changed the state
	removed func(*job)       // the job is gone
}

func newOwnedJob(o *ownership, j *job) *ownedJob {
	return &ownedJob{ownership: o, job: j, cache: newStateCache(o.store.nodes.Job(j.Name)), lateReason: ReasonNoLeader}
}

// checkJob checks the job: it claims a due run and starts it, or records missed ticks and lost
// runs. It returns when to check again, or the zero time if only a change of the state leads to the
// next check, and whether the job waits for a slot. stale says that another member may have changed
// the state. mayTakeSlot says that a run may take a free slot. An error is reported and leads to
// another check; it does not affect other jobs.
func (o *ownedJob) checkJob(stale, mayTakeSlot bool) (next time.Time, waits bool) {
	if !o.jobs.keepRuns(o.job.local) {
		return time.Time{}, false // this member has dropped the job
	}
	defer o.jobs.releaseRuns(o.job.local)
	defer o.cache.lock()()
	if stale {
		o.cache.invalidate()
	}
	o.next, o.mayTakeSlot, o.waitsForSlot, o.hasSlot, o.children = time.Time{}, mayTakeSlot, false, false, nil
	planAgain, err := o.planAndAct(false)
	for planAgain && err == nil {
		o.cache.invalidate()
		if err = o.session.Sync(o.session.Context(), o.cache.node); err == nil {
			planAgain, err = o.planAndAct(true)
		}
	}
	if o.hasSlot {
		o.runner.slots.giveBack()
	}
	if err != nil && o.ctx.Err() == nil {
		return o.retryTime(err), false
	}
	return o.next, o.waitsForSlot
}

// retryTime reports an error and returns when to try again.
func (o *ownedJob) retryTime(err error) time.Time {
	o.cache.invalidate()
	o.report.reportFailure("a job cannot be scheduled", o.job.Name, err)
	if time.Since(o.lastFailure) > recoveredAfter {
		o.retryPause = 0
	}
	cfg := o.store.client.Config()
	o.retryPause = min(max(2*o.retryPause, cfg.RetryBase), cfg.RetryMax)
	o.lastFailure = time.Now()
	return o.clock.now().Add(o.retryPause)
}

// planAndAct reads the state, makes a plan and executes it. planAgain asks for another try behind a
// sync, since the server may lag behind or the outcome of a transaction is unknown. synced says
// that this try is behind a sync.
func (o *ownedJob) planAndAct(synced bool) (planAgain bool, err error) {
	state, err := o.cache.readState(o.session.Context(), o.session)
	switch {
	case errors.Is(err, errUnknownJob) && !synced:
		return true, nil
	case errors.Is(err, errUnknownJob):
		o.removed(o.job)
		return false, nil
	case err != nil:
		return false, err
	case state.Generation < o.job.generation.Load() && !synced:
		return true, nil
	}
	if err := o.adoptRuns(state); err != nil {
		return false, err
	}
	switch {
	case o.ctx.Err() != nil:
		return false, nil
	case o.job.removedBy(state), state.Generation < o.job.generation.Load():
		// in the latter case an operator has deleted the node
		o.removed(o.job)
		return false, nil
	}
	schedule, err := o.job.scheduleOf(state)
	if err != nil {
		return false, err
	}
	lost, err := o.lostRuns(state)
	if err != nil {
		return false, err
	}
	if o.job.dropped.Load() { // it may have been dropped during the reads above
		return false, nil
	}
	p := o.job.plan(state, schedule, planInput{now: o.clock.now(), lateReason: o.lateReason, lost: lost})
	marked := o.endReplacedRuns(&p)
	o.next = p.wakeAt
	switch {
	case p.start != nil && !o.hasSlot && !(o.mayTakeSlot && o.runner.slots.tryTake()):
		o.waitsForSlot, o.lateReason, o.next = true, ReasonBusy, p.nextTickAt // a free slot leads to another check
		return false, nil
	case p.start != nil:
		o.hasSlot = true
		return o.claimRun(p)
	case p.isEmpty() && !marked:
		o.lateReason = ReasonLate
		return false, nil
	}
	return o.saveMissed(p, marked)
}

// adoptRuns starts runs that this member has claimed by a transaction with a lost reply. A
// definition adopts the runs of its own registration, also if the job was removed since; such runs
// then end like others.
func (o *ownedJob) adoptRuns(state jobState) error {
	for _, r := range state.Running {
		if r.Member != o.member || r.Generation != o.job.generation.Load() || o.job.local.findRun(r) != nil {
			continue
		}
		stat, err := o.session.Exists(o.session.Context(), o.store.nodes.Claim(o.job.Name, r.Number))
		if errors.Is(err, framework.ErrNoNode) {
			continue // the claim was deleted: the run counts as lost
		}
		if err != nil {
			return err
		}
		if !o.hasSlot {
			o.runner.slots.takeAnyway()
		}
		o.startRun(r, stat.Czxid)
	}
	return nil
}

// startRun starts a claimed run, which takes over a slot.
func (o *ownedJob) startRun(r storedRun, token int64) {
	o.hasSlot = false
	o.runner.startUnlessRunning(o.session, o.job, o.cache, r, token)
}

// fewRuns are as many claims as are looked up one by one.
const fewRuns = 5

// lostRuns returns the runs without a claim. It watches the claims of other members' runs, so that
// their end leads to a check.
func (o *ownedJob) lostRuns(state jobState) (lost []int64, err error) {
	others := slices.DeleteFunc(slices.Clone(state.Running),
		func(r storedRun) bool { return o.job.local.findRun(r) != nil || o.isWatched(r.Number) })
	if o.children = nil; len(others) > fewRuns { // a member may have died with thousands
		names, _, err := o.session.Children(o.session.Context(), o.cache.node)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return nil, err
		}
		o.children = map[string]bool{}
		for _, name := range names {
			o.children[name] = true
		}
	}
	for _, r := range others {
		claim := o.store.nodes.Claim(o.job.Name, r.Number)
		if _, name := znode.Split(claim); o.children != nil && !o.children[name] {
			lost = append(lost, r.Number)
			continue
		}
		_, w, err := o.session.WatchExists(o.session.Context(), claim)
		if errors.Is(err, framework.ErrNoNode) {
			w.Stop()
			lost = append(lost, r.Number)
			continue
		}
		if err != nil {
			return nil, err
		}
		o.setWatched(r.Number, true)
		o.watches.Start(func() { o.watchClaim(r.Number, w) })
	}
	return lost, nil
}

// watchClaim leads to a check once a run of another member has ended, or was lost.
func (o *ownedJob) watchClaim(number int64, w *framework.Watch) {
	defer w.Stop()
	select {
	case <-w.C():
		o.setWatched(number, false)
		o.recheck(o.job.Name)
	case <-o.ctx.Done():
	}
}

func (o *ownedJob) isWatched(number int64) bool {
	o.watchMu.Lock()
	defer o.watchMu.Unlock()
	return o.watched[number]
}

func (o *ownedJob) setWatched(number int64, watched bool) {
	o.watchMu.Lock()
	defer o.watchMu.Unlock()
	if o.watched == nil {
		o.watched = map[int64]bool{}
	}
	if o.watched[number] = watched; !watched {
		delete(o.watched, number)
	}
}

// endReplacedRuns ends the runs that are to make room for the next. It marks those of other members
// in the plan's state, and reports whether there are any.
func (o *ownedJob) endReplacedRuns(p *plan) (marked bool) {
	for _, number := range p.toReplace {
		r := &p.state.Running[p.state.indexOfRun(number)]
		if local := o.job.local.findRun(*r); local != nil {
			local.stop(ErrReplaced)
			continue
		}
		if !r.Replace {
			r.Replace, marked = true, true
		}
	}
	return marked
}

// claimRun claims the planned run and starts it: one transaction moves the state on and creates the
// claim. If the reply is lost, the next try behind a sync adopts the run.
func (o *ownedJob) claimRun(p plan) (planAgain bool, err error) {
	r := p.start
	r.Runner, r.Member, r.Started = o.store.client.Config().Identity, o.member,
		o.report.now().UTC().Truncate(time.Millisecond)
	p.state.Running[p.state.indexOfRun(r.Number)] = *r
	claim := framework.CreateOp(o.store.nodes.Claim(o.job.Name, r.Number), []byte(r.Runner), framework.Ephemeral)
	stat, err := o.writePlan(p, tolerantOp{op: claim})
	if err != nil {
		return retryAfterRefusal(err)
	}
	o.startRun(*r, stat.Mzxid)
	o.lateReason = ReasonLate
	return false, nil
}

// saveMissed records missed ticks and lost runs, and announces to other members that their marked
// runs must end.
func (o *ownedJob) saveMissed(p plan, marked bool) (planAgain bool, err error) {
	var more []tolerantOp
	if marked {
		announce, err := o.store.announceOp(o.session.Context(), o.session, o.job.Name)
		if err != nil {
			return false, err
		}
		more = append(more, tolerantOp{op: announce})
	}
	if _, err := o.writePlan(p, more...); err != nil {
		return retryAfterRefusal(err)
	}
	o.lateReason = ReasonLate
	return false, nil
}

// writePlan writes a plan's state, with the guard, the records of lost runs, and other operations.
func (o *ownedJob) writePlan(p plan, ops ...tolerantOp) (framework.Stat, error) {
	past, err := o.store.historyOps(o.job.Name, o.children, p.lost...)
	if err != nil {
		return framework.Stat{}, err
	}
	guard, mine := o.guard(o.job)
	if !mine {
		return framework.Stat{}, errNotOwner
	}
	requested := time.Now()
	stat, err := o.cache.writeState(o.session.Context(), o.session, p.state, []tolerantOp{{op: guard}},
		append(ops, past...))
	if err != nil {
		return stat, err
	}
	o.clock.recordAnswer(stat.Mtime, requested)
	o.report.reportMissed(o.job.Name, p.missed)
	return stat, nil
}

// errNotOwner says that the job does not belong to this member any more.
var errNotOwner = errors.New("the job belongs to another member")

// retryAfterRefusal decides whether to plan again after a transaction that was refused or has an
// unknown outcome. If the guard was refused, the check ends. If another write has changed the
// state, the check goes on with the stored state.
func retryAfterRefusal(err error) (planAgain bool, _ error) {
	var tx *framework.TxError
	switch {
	case errors.Is(err, errNotOwner), errors.As(err, &tx) && tx.Index == 0:
		return false, nil
	case shouldRetry(err):
		return true, nil
	}
	return false, err
}
