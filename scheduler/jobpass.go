package scheduler

import (
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// jobPass is one look at a job that belongs to this member: it reads the state, decides, writes and starts.
// Whatever it writes is guarded by the state's version, and by the term or the member's node. Its calls
// last as long as the session: a transaction that was sent must be settled, even when the scheduler is
// being stopped.
type jobPass struct {
	*memberSession
	post     *ownedJob
	job      *job
	late     Reason
	stale    bool
	schedule Schedule

	due    time.Time // when to look next
	waits  bool      // for a slot
	booked bool      // it has a slot that no run has taken over
	synced bool      // what is read is no older than the look
}

// passStep is one state of a pass; it returns the next, or nil at the end.
type passStep func() (passStep, error)

// runPass looks at the job until there is nothing to do at present, and returns when there is. Errors are
// this job's alone.
func (d *jobPass) runPass() time.Time {
	if !d.keepRuns(d.job.local) {
		return time.Time{} // the job has left this member
	}
	defer d.releaseRuns(d.job.local)
	b := d.post.book
	defer b.lock()()
	if d.stale {
		b.invalidate()
	}
	var err error
	for next := passStep(d.loadAndPlan); next != nil && err == nil; {
		next, err = next()
	}
	if d.booked {
		d.slots.giveBack()
	}
	if err != nil && d.ctx.Err() == nil {
		return d.reportError(err)
	}
	return d.due
}

// reportError tells of an error and returns when to try again.
func (d *jobPass) reportError(err error) time.Time {
	d.post.book.invalidate()
	d.client.Logger().Warn("a job cannot be scheduled", "path", d.path, "job", d.job.Name, "error", err)
	d.sendEvent(Event{Kind: EventFailed, Job: d.job.Name, Err: err})
	p := d.post
	if time.Since(p.failed) > settledAfter {
		p.pause = 0
	}
	cfg := d.client.Config()
	p.pause = min(max(2*p.pause, cfg.RetryBase), cfg.RetryMax)
	p.failed = time.Now()
	return d.clocks.now().Add(p.pause)
}

// syncSession makes sure that the next look shows what this session has written, and others before.
func (d *jobPass) syncSession() (passStep, error) {
	d.post.book.invalidate()
	d.synced = true
	if err := d.session.Sync(d.session.Context(), d.post.book.node); err != nil {
		return nil, err
	}
	return d.loadAndPlan, nil
}

// loadAndPlan reads the state and decides what to do.
func (d *jobPass) loadAndPlan() (passStep, error) {
	state, err := d.post.book.readState(d.session.Context(), d.session)
	switch {
	case errors.Is(err, ErrUnknownJob) && !d.synced:
		return d.syncSession, nil
	case errors.Is(err, ErrUnknownJob):
		d.dropRemovedJob(d.job)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if state.generation < d.job.generation.Load() && !d.synced {
		return d.syncSession, nil
	}
	if err := d.adoptRun(state); err != nil {
		return nil, err
	}
	switch {
	case d.ctx.Err() != nil, d.job.left.Load():
		return nil, nil
	case d.job.removedBy(state), state.generation < d.job.generation.Load(): // somebody has deleted the node
		d.dropRemovedJob(d.job)
		return nil, nil
	}
	if d.schedule, err = d.job.scheduleOf(state); err != nil {
		return nil, err
	}
	lost, err := d.lostRuns(state)
	if err != nil {
		return nil, err
	}
	p := d.job.plan(state, d.schedule, planInput{now: d.clocks.now(), late: d.late, lost: lost})
	return d.execute(p), nil
}

// execute does what a plan says.
func (d *jobPass) execute(p plan) passStep {
	marked := d.endReplacedRuns(&p)
	d.due = p.wake
	switch {
	case p.start != nil && !d.booked && !d.slots.tryTake():
		d.waits, d.late, d.due = true, ReasonBusy, p.tickWake // when a slot is free, it is looked at again
		return nil
	case p.start != nil:
		d.booked = true
		return d.claimRun(p)
	case p.isEmpty() && !marked:
		d.late = ReasonLate
		return nil
	}
	return d.saveMissed(p, marked)
}

// endReplacedRuns ends the runs that are to make room for the next. Those of other members are marked, and these
// told of it.
func (d *jobPass) endReplacedRuns(p *plan) (marked bool) {
	for _, number := range p.yield {
		r := &p.state.Running[p.state.indexOfRun(number)]
		if e := d.job.local.findRun(*r); e != nil {
			e.stop(ErrReplaced)
			continue
		}
		if !r.replace {
			r.replace, marked = true, true
		}
	}
	return marked
}

// adoptRun starts a run that this member has claimed without knowing, since the reply was lost. A definition adopts the runs
// of its own registration, also when the job was removed since: they are ended like others.
func (d *jobPass) adoptRun(state State) error {
	for _, r := range state.Running {
		if r.member != d.name || r.generation != d.job.generation.Load() || d.job.local.findRun(r) != nil {
			continue
		}
		st, err := d.session.Exists(d.session.Context(), d.claim(d.job.Name, r.Number))
		if errors.Is(err, framework.ErrNoNode) {
			continue // somebody has deleted it: the run counts as lost
		}
		if err != nil {
			return err
		}
		if !d.booked {
			d.slots.takeAnyway()
		}
		d.startRun(r, st.Czxid)
	}
	return nil
}

// lostRuns are the runs whose claims are gone. The others that do not go on here are watched, so that their end is
// heard of.
func (d *jobPass) lostRuns(state State) (lost []int64, err error) {
	for _, r := range state.Running {
		if d.job.local.findRun(r) != nil || d.watchRuns(r.Number) {
			continue
		}
		_, w, err := d.session.WatchExists(d.session.Context(), d.claim(d.job.Name, r.Number))
		if errors.Is(err, framework.ErrNoNode) {
			w.Stop()
			lost = append(lost, r.Number)
			continue
		}
		if err != nil {
			return nil, err
		}
		d.watchRunNode(r.Number, w)
	}
	return lost, nil
}

func (d *jobPass) watchRuns(number int64) bool {
	d.jobsMu.Lock()
	defer d.jobsMu.Unlock()
	return d.post.watched[number]
}

func (d *jobPass) watchRunNode(number int64, w *framework.Watch) {
	d.jobsMu.Lock()
	defer d.jobsMu.Unlock()
	if d.post.watched == nil {
		d.post.watched = map[int64]bool{}
	}
	d.post.watched[number] = true
	d.toLookAt.Go(func() { d.watchRun(d.post, number, w) })
}

// ownershipGuard lets a transaction happen only while the job belongs to this member: in its term, or as long as it
// is among the members. The state's version is what keeps ticks from running twice; this keeps a member
// that has not heard of its end from claiming at all.
func (d *jobPass) ownershipGuard() (framework.Op, bool) {
	if d.job.Placement == Spread {
		node := framework.Join(d.members(), d.name)
		return framework.CheckOp(node, framework.AnyVersion).When(d.hold.Err), true
	}
	term := d.currentTerm(d.memberSession)
	if term == nil {
		return framework.Op{}, false
	}
	return term.Guard(), true
}

// claimRun claims a run and starts it: the state moves on and the claim appears in one transaction, or
// nothing happens. If the reply is lost, the next look behind a sync tells.
func (d *jobPass) claimRun(p plan) passStep {
	return func() (passStep, error) {
		if d.job.left.Load() {
			return nil, nil
		}
		r := p.start
		r.Runner, r.member, r.Started = d.client.Config().Identity, d.name, d.now().UTC().Truncate(time.Millisecond)
		p.state.Running[p.state.indexOfRun(r.Number)] = *r
		claim := framework.CreateOp(d.claim(d.job.Name, r.Number), []byte(r.Runner), framework.Ephemeral)
		st, err := d.writePlan(p, tolerantOp{op: claim})
		if err != nil {
			return d.afterRefusal(err)
		}
		d.startRun(*r, st.Mzxid)
		d.late = ReasonLate
		return nil, nil
	}
}

// saveMissed writes down what is not run.
func (d *jobPass) saveMissed(p plan, marked bool) passStep {
	return func() (passStep, error) {
		var more []tolerantOp
		if marked {
			tell, err := d.announceOp(d.session.Context(), d.session, d.job.Name)
			if err != nil {
				return nil, err
			}
			more = append(more, tolerantOp{op: tell})
		}
		if _, err := d.writePlan(p, more...); err != nil {
			return d.afterRefusal(err)
		}
		d.late = ReasonLate
		return nil, nil
	}
}

// writePlan writes a plan's state, with other operations.
func (d *jobPass) writePlan(p plan, ops ...tolerantOp) (framework.Stat, error) {
	past, err := d.historyOps(d.job.Name, p.lost...)
	if err != nil {
		return framework.Stat{}, err
	}
	guard, mine := d.ownershipGuard()
	if !mine {
		return framework.Stat{}, errNotOwner
	}
	st, err := d.post.book.writeState(d.session.Context(), d.session, p.state, []tolerantOp{{op: guard}}, append(ops, past...))
	if err != nil {
		return st, err
	}
	d.clocks.noteAnswer(st.Mtime)
	d.reportMissed(d.job.Name, p.missed)
	return st, nil
}

// errNotOwner says that the job belongs to this member no more.
var errNotOwner = errors.New("the job belongs to another member")

// afterRefusal decides how to go on when a transaction was refused, or its outcome is unknown: somebody else,
// or an earlier try, has changed the state. Without the guard, the pass is over.
func (d *jobPass) afterRefusal(err error) (passStep, error) {
	var tx *framework.TxError
	switch {
	case errors.Is(err, errNotOwner), errors.As(err, &tx) && tx.Index == 0:
		return nil, nil
	case shouldRetry(err):
		return d.syncSession, nil
	}
	return nil, err
}

// startRun starts a claimed run, which takes over a slot, unless another look has started it: that of a owned job which
// the job has had here before or since.
func (d *jobPass) startRun(r RunRecord, token int64) {
	d.booked = false
	e := newExecution(d, r, token)
	fresh, begun := d.job.local.beginRun(e)
	if !begun {
		e.stop(nil)
		d.slots.giveBack()
		return
	}
	d.keepRuns(d.job.local)
	d.activation.runs.Go(func() { e.runAndRecord(fresh) })
}

// scheduleOf is the stored schedule, which is the job's own unless it was changed.
func (j *job) scheduleOf(state State) (Schedule, error) {
	if state.Spec == j.schedule.String() && state.Zone == j.schedule.Location().String() {
		return j.schedule, nil
	}
	return state.schedule()
}
