package scheduler

import (
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// duty is one look at a job that belongs to this member: it reads the state, decides, writes and starts.
// Whatever it writes is guarded by the state's version, and by the term or the member's node. Its calls
// last as long as the session: a transaction that was sent must be settled, even when the scheduler is
// being stopped.
type duty struct {
	*shift
	post     *post
	job      *job
	late     Reason
	stale    bool
	schedule Schedule

	due    time.Time // when to look next
	waits  bool      // for a slot
	booked bool      // it has a slot that no run has taken over
	synced bool      // what is read is no older than the look
}

// step is one state of a duty; it returns the next, or nil at the end.
type step func() (step, error)

// live looks at the job until there is nothing to do at present, and returns when there is. Errors are
// this job's alone.
func (d *duty) live() time.Time {
	if !d.keepRuns(d.job.local) {
		return time.Time{} // the job has left this member
	}
	defer d.releaseRuns(d.job.local)
	b := d.post.book
	defer b.take()()
	if d.stale {
		b.forget()
	}
	var err error
	for next := step(d.look); next != nil && err == nil; {
		next, err = next()
	}
	if d.booked {
		d.slots.give()
	}
	if err != nil && d.ctx.Err() == nil {
		return d.trouble(err)
	}
	return d.due
}

// trouble tells of an error and returns when to try again.
func (d *duty) trouble(err error) time.Time {
	d.post.book.forget()
	d.client.Logger().Warn("a job cannot be scheduled", "path", d.path, "job", d.job.Name, "error", err)
	d.tell(Event{Kind: EventFailed, Job: d.job.Name, Err: err})
	p := d.post
	if time.Since(p.failed) > settledAfter {
		p.pause = 0
	}
	cfg := d.client.Config()
	p.pause = min(max(2*p.pause, cfg.RetryBase), cfg.RetryMax)
	p.failed = time.Now()
	return d.clocks.now().Add(p.pause)
}

// sync makes sure that the next look shows what this session has written, and others before.
func (d *duty) sync() (step, error) {
	d.post.book.forget()
	d.synced = true
	if err := d.session.Sync(d.session.Context(), d.post.book.node); err != nil {
		return nil, err
	}
	return d.look, nil
}

// look reads the state and decides what to do.
func (d *duty) look() (step, error) {
	state, err := d.post.book.read(d.session.Context(), d.session)
	switch {
	case errors.Is(err, ErrUnknownJob) && !d.synced:
		return d.sync, nil
	case errors.Is(err, ErrUnknownJob):
		d.forgo(d.job)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if state.generation < d.job.generation.Load() && !d.synced {
		return d.sync, nil
	}
	if err := d.adopt(state); err != nil {
		return nil, err
	}
	switch {
	case d.ctx.Err() != nil, d.job.left.Load():
		return nil, nil
	case d.job.removedBy(state), state.generation < d.job.generation.Load(): // somebody has deleted the node
		d.forgo(d.job)
		return nil, nil
	}
	if d.schedule, err = d.job.scheduleOf(state); err != nil {
		return nil, err
	}
	lost, err := d.lost(state)
	if err != nil {
		return nil, err
	}
	p := d.job.plan(state, d.schedule, sight{now: d.clocks.now(), late: d.late, lost: lost})
	return d.act(p), nil
}

// act does what a plan says.
func (d *duty) act(p plan) step {
	marked := d.clear(&p)
	d.due = p.wake
	switch {
	case p.start != nil && !d.booked && !d.slots.take():
		d.waits, d.late, d.due = true, ReasonBusy, p.tickWake // when a slot is free, it is looked at again
		return nil
	case p.start != nil:
		d.booked = true
		return d.take(p)
	case p.idle() && !marked:
		d.late = ReasonLate
		return nil
	}
	return d.record(p, marked)
}

// clear ends the runs that are to make room for the next. Those of other members are marked, and these
// told of it.
func (d *duty) clear(p *plan) (marked bool) {
	for _, number := range p.yield {
		r := &p.state.Running[p.state.run(number)]
		if e := d.job.local.of(*r); e != nil {
			e.stop(ErrReplaced)
			continue
		}
		if !r.replace {
			r.replace, marked = true, true
		}
	}
	return marked
}

// adopt starts a run that this member has claimed without knowing, since the reply was lost. A definition adopts the runs
// of its own registration, also when the job was removed since: they are ended like others.
func (d *duty) adopt(state State) error {
	for _, r := range state.Running {
		if r.member != d.name || r.generation != d.job.generation.Load() || d.job.local.of(r) != nil {
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
			d.slots.force()
		}
		d.start(r, st.Czxid)
	}
	return nil
}

// lost are the runs whose claims are gone. The others that do not go on here are watched, so that their end is
// heard of.
func (d *duty) lost(state State) (lost []int64, err error) {
	for _, r := range state.Running {
		if d.job.local.of(r) != nil || d.watches(r.Number) {
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
		d.watch(r.Number, w)
	}
	return lost, nil
}

func (d *duty) watches(number int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.post.watched[number]
}

func (d *duty) watch(number int64, w *framework.Watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.post.watched == nil {
		d.post.watched = map[int64]bool{}
	}
	d.post.watched[number] = true
	d.work.Go(func() { d.watchRun(d.post, number, w) })
}

// guard lets a transaction happen only while the job belongs to this member: in its term, or as long as it
// is among the members. The state's version is what keeps ticks from running twice; this keeps a member
// that has not heard of its end from claiming at all.
func (d *duty) guard() (framework.Op, bool) {
	if d.job.Placement == Spread {
		node := framework.Join(d.members(), d.name)
		return framework.CheckOp(node, framework.AnyVersion).When(d.hold.Err), true
	}
	term := d.leadership(d.shift)
	if term == nil {
		return framework.Op{}, false
	}
	return term.Guard(), true
}

// take claims a run and starts it: the state moves on and the claim appears in one transaction, or
// nothing happens. If the reply is lost, the next look behind a sync tells.
func (d *duty) take(p plan) step {
	return func() (step, error) {
		if d.job.left.Load() {
			return nil, nil
		}
		r := p.start
		r.Runner, r.member, r.Started = d.client.Config().Identity, d.name, d.now().UTC().Truncate(time.Millisecond)
		p.state.Running[p.state.run(r.Number)] = *r
		claim := framework.CreateOp(d.claim(d.job.Name, r.Number), []byte(r.Runner), framework.Ephemeral)
		st, err := d.write(p, operation{op: claim})
		if err != nil {
			return d.refused(err)
		}
		d.start(*r, st.Mzxid)
		d.late = ReasonLate
		return nil, nil
	}
}

// record writes down what is not run.
func (d *duty) record(p plan, marked bool) step {
	return func() (step, error) {
		var more []operation
		if marked {
			tell, err := d.announce(d.session.Context(), d.session, d.job.Name)
			if err != nil {
				return nil, err
			}
			more = append(more, operation{op: tell})
		}
		if _, err := d.write(p, more...); err != nil {
			return d.refused(err)
		}
		d.late = ReasonLate
		return nil, nil
	}
}

// write writes a plan's state, with other operations.
func (d *duty) write(p plan, ops ...operation) (framework.Stat, error) {
	past, err := d.remember(d.job.Name, p.lost...)
	if err != nil {
		return framework.Stat{}, err
	}
	guard, mine := d.guard()
	if !mine {
		return framework.Stat{}, errNotOurs
	}
	st, err := d.post.book.write(d.session.Context(), d.session, p.state, []operation{{op: guard}}, append(ops, past...))
	if err != nil {
		return st, err
	}
	d.clocks.hear(st.Mtime)
	d.tellMissed(d.job.Name, p.missed)
	return st, nil
}

// errNotOurs says that the job belongs to this member no more.
var errNotOurs = errors.New("the job belongs to another member")

// refused decides how to go on when a transaction was refused, or its outcome is unknown: somebody else,
// or an earlier try, has changed the state. Without the guard, the duty is over.
func (d *duty) refused(err error) (step, error) {
	var tx *framework.TxError
	switch {
	case errors.Is(err, errNotOurs), errors.As(err, &tx) && tx.Index == 0:
		return nil, nil
	case again(err):
		return d.sync, nil
	}
	return nil, err
}

// start starts a claimed run, which takes over a slot, unless another look has started it: that of a post which
// the job has had here before or since.
func (d *duty) start(r RunRecord, token int64) {
	d.booked = false
	e := newExecution(d, r, token)
	fresh, begun := d.job.local.begin(e)
	if !begun {
		e.stop(nil)
		d.slots.give()
		return
	}
	d.keepRuns(d.job.local)
	d.tour.runs.Go(func() { e.live(fresh) })
}

// scheduleOf is the stored schedule, which is the job's own unless it was changed.
func (j *job) scheduleOf(state State) (Schedule, error) {
	if state.Spec == j.schedule.String() && state.Zone == j.schedule.Location().String() {
		return j.schedule, nil
	}
	return state.schedule()
}
