package scheduler

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// sight is what a plan is made from beside the stored state.
type sight struct {
	now  time.Time
	late Reason  // why ticks were not run when they were due
	lost []int64 // the runs whose runner is gone
}

// plan is what is to be done about a job: a state to write, and perhaps a run to start. It is made of
// nothing but the state and the time, so that any member would make the same.
type plan struct {
	job      *job
	schedule Schedule
	at       sight

	state    State
	start    *RunRecord  // the run to be claimed; it is among state.Running
	lost     []RunRecord // runs that get an outcome since their runner is gone
	dropped  bool        // runs of a former registration have ended
	missed   []Gap
	yield    []int64   // runs that are to end, so that the next can start
	wake     time.Time // when there is something to do next; zero: not by time alone
	tickWake time.Time // when the next tick is due that is not yet; zero: none
}

// plan decides what to do.
func (j *job) plan(st State, schedule Schedule, at sight) plan {
	p := plan{job: j, schedule: schedule, at: at, state: st.clone()}
	for _, number := range at.lost {
		p.markLost(number)
	}
	p.repeat()
	if p.start == nil && p.overdue() {
		p.serve()
	}
	if p.start == nil && p.state.Paused.IsZero() {
		p.tick()
	}
	if p.start == nil {
		p.serve()
	}
	p.wake, p.tickWake = p.next()
	return p
}

// idle tells that there is nothing to write.
func (p *plan) idle() bool {
	return p.start == nil && len(p.missed) == 0 && len(p.lost) == 0 && !p.dropped
}

// markLost gives a run whose runner is gone its outcome. Its tick is missed, or run again.
func (p *plan) markLost(number int64) {
	i := p.state.run(number)
	if i < 0 {
		return
	}
	r := p.state.Running[i]
	if !p.state.counts(r) {
		p.state.drop(r)
		p.dropped = true
		return
	}
	r.Outcome = Lost
	p.lost = append(p.lost, r)
	p.state.ended(r)
	switch {
	case p.job.Guarantee == AtLeastOnce && r.reruns < MaxReruns:
		p.state.ask(Pending{Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt + 1, reruns: r.reruns + 1, request: r.request})
	case !r.Manual:
		p.state.Fired--
		p.miss(Gap{From: r.Tick, To: r.Tick, Count: 1, Reason: ReasonRunnerLost})
	}
}

// room tells whether a run may start now.
func (p *plan) room() bool { return !p.occupied() && !p.held() }

// occupied tells whether runs that go on keep others from starting.
func (p *plan) occupied() bool {
	return p.job.Overlap != OverlapAllow && len(p.state.Running) > 0
}

// held tells whether the run before has started too short a time ago.
func (p *plan) held() bool { return p.at.now.Before(p.state.HoldUntil) }

// repeat starts a run that is to be repeated, before anything else. It is no new run, so that MinHold does not
// delay it.
func (p *plan) repeat() {
	if i := p.repeated(); i >= 0 && !p.occupied() {
		p.begin(p.state.Pending[i])
		p.state.Pending = slices.Delete(p.state.Pending, i, i+1)
	}
}

// repeated is the place of the first run among Pending that is to be repeated, or -1. A pause keeps back those of ticks; one that
// was asked for with Trigger goes on, since Trigger runs a paused job on purpose.
func (p *plan) repeated() int {
	return slices.IndexFunc(p.state.Pending, func(w Pending) bool { return w.Attempt > 1 && (w.Manual || p.state.Paused.IsZero()) })
}

// serve starts the first run that was asked for.
func (p *plan) serve() {
	if i := p.asked(); i >= 0 && p.room() {
		p.begin(p.state.Pending[i])
		p.state.Pending = slices.Delete(p.state.Pending, i, i+1)
	}
}

// asked is the place of the first run among Pending that was asked for, or -1.
func (p *plan) asked() int {
	return slices.IndexFunc(p.state.Pending, func(w Pending) bool { return w.Attempt == 1 })
}

// overdue reports whether a tick has come since the first run was asked for that waits. That run goes before the next
// tick: otherwise a job that is busy from tick to tick would never run it.
func (p *plan) overdue() bool {
	i := p.asked()
	return i >= 0 && p.state.Pending[i].Tick.Before(p.state.Last)
}

// tick sees to the ticks that are due.
func (p *plan) tick() {
	d := p.due()
	switch {
	case d.count == 0:
	case p.room():
		p.fire(d)
	case p.job.Misfire == MisfireAll && (p.held() || p.job.Overlap == OverlapForbid):
		p.expire(d, p.obstacle())
	case p.job.Overlap == OverlapReplace && !p.held():
		p.replace(d)
	default:
		p.settle(d.gap(p.obstacle()))
	}
}

// obstacle is why no run may start.
func (p *plan) obstacle() Reason {
	if p.occupied() {
		return ReasonOverlap
	}
	return ReasonHeld
}

// due are the ticks that are due and not seen to yet. The latest may still be delayed by its jitter; the
// others cannot, since no delay goes beyond the next tick.
func (p *plan) due() due {
	since := p.state.since()
	d := p.schedule.dueTicks(since, p.at.now)
	if d.count > 0 && p.starts(d.latest).After(p.at.now) {
		d = p.schedule.dueTicks(since, d.latest.Add(-time.Second))
	}
	return d
}

// fire runs one tick, and records those that the policy leaves out.
func (p *plan) fire(d due) {
	if p.job.Misfire == MisfireAll {
		if d = p.expire(d, p.at.late); d.count > 0 {
			p.run(d.first)
		}
		return
	}
	if p.tooLate(d.latest) {
		p.settle(d.gap(p.at.late))
		return
	}
	p.before(d.latest, d, p.at.late)
	p.run(d.latest)
}

// replace makes room for the latest tick, and leaves it due until there is.
func (p *plan) replace(d due) {
	if p.tooLate(d.latest) {
		p.settle(d.gap(ReasonOverlap))
		return
	}
	p.before(d.latest, d, ReasonOverlap)
	for _, r := range p.state.Running {
		if !r.Manual || p.starts(d.latest).After(r.Started) {
			p.yield = append(p.yield, r.Number)
		}
	}
}

// tooLate tells whether a tick is later than the policy allows.
func (p *plan) tooLate(tick time.Time) bool {
	limit := p.deadline(tick)
	if p.job.Misfire == MisfireSkip {
		limit = min(limit, OnTime)
	}
	return p.at.now.Sub(p.starts(tick)) > limit
}

// deadline is how late a tick may be started.
func (p *plan) deadline(tick time.Time) time.Duration {
	if p.job.Deadline > 0 {
		return p.job.Deadline
	}
	next := p.schedule.Next(tick)
	if next.IsZero() {
		return MaxDefaultDeadline
	}
	return min(max(next.Sub(tick), OnTime), MaxDefaultDeadline)
}

// expire records the ticks that are beyond the deadline and returns the others.
func (p *plan) expire(d due, why Reason) due {
	limit := p.job.Deadline
	if limit == 0 {
		limit = OnTime
	}
	old := p.schedule.dueTicks(p.state.since(), p.at.now.Add(-limit-p.job.Jitter-time.Nanosecond))
	if p.job.Deadline == 0 && old.count > 0 && !p.tooLate(old.latest) { // of ticks that are older than OnTime, only the latest may be young enough
		old = p.schedule.dueTicks(p.state.since(), old.latest.Add(-time.Second))
	}
	if old.count == 0 {
		return d
	}
	p.settle(old.gap(why))
	return p.due()
}

// before records the due ticks before one of them.
func (p *plan) before(tick time.Time, d due, why Reason) {
	if d.count < 2 {
		return
	}
	p.settle(p.schedule.dueTicks(p.state.since(), tick.Add(-time.Second)).gap(why))
}

// settle records ticks as missed, and moves on.
func (p *plan) settle(g Gap) {
	p.miss(g)
	p.state.Last = g.To
}

func (p *plan) miss(g Gap) {
	p.missed = append(p.missed, g)
	p.state.miss(p.schedule, g)
}

// run begins the run of a tick.
func (p *plan) run(tick time.Time) {
	p.state.Last = tick
	p.state.Fired++
	p.begin(Pending{Tick: tick, Attempt: 1})
}

// begin adds a run to those that go on.
func (p *plan) begin(of Pending) {
	p.state.Number++
	number := p.state.Number
	p.start = &RunRecord{
		Number: number, ID: of.Tick.UTC().Format("20060102T150405Z") + "-" + strconv.FormatInt(number, 10),
		Tick: of.Tick.UTC(), Manual: of.Manual, Attempt: of.Attempt, reruns: of.reruns, request: of.request,
		generation: p.state.generation,
	}
	p.state.Running = append(p.state.Running, *p.start)
	if p.job.MinHold > 0 && of.Attempt == 1 {
		p.state.HoldUntil = p.at.now.Add(p.job.MinHold).UTC().Truncate(time.Millisecond)
	}
}

// starts is when a tick is to be started: it, and its jitter.
func (p *plan) starts(tick time.Time) time.Time {
	return tick.Add(p.job.delay(p.schedule, tick))
}

// delay is a tick's jitter, in whole milliseconds: the same in all members, and not beyond the next tick.
func (j *job) delay(schedule Schedule, tick time.Time) time.Duration {
	most := j.Jitter
	if most < time.Millisecond {
		return 0
	}
	if next := schedule.Next(tick); !next.IsZero() {
		most = min(most, next.Sub(tick)) // a second or more
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(j.Name))
	_, _ = h.Write(strconv.AppendInt([]byte{0}, tick.Unix(), 10))
	return time.Duration(mix(h.Sum64())%uint64(most/time.Millisecond)) * time.Millisecond
}

// next is when to look again, if nothing else happens: there is more to start, the next tick, or the end
// of the hold for what waits. It also returns the next tick by itself.
func (p *plan) next() (wake, tickWake time.Time) {
	late := false // a tick is due, and waits until it can be run
	if p.state.Paused.IsZero() {
		tick := p.schedule.Next(p.state.since())
		if !tick.IsZero() && !p.starts(tick).After(p.at.now) {
			late = p.job.Misfire == MisfireAll
			tick = p.schedule.Next(p.at.now)
		}
		if !tick.IsZero() {
			tickWake = p.starts(tick)
		}
	}
	wake = tickWake
	if p.occupied() {
		return wake, tickWake
	}
	if late || p.asked() >= 0 {
		wake = sooner(wake, later(p.at.now, p.state.HoldUntil))
	}
	if p.repeated() >= 0 {
		wake = sooner(wake, p.at.now)
	}
	return wake, tickWake
}

// sooner is the earlier of two times, the first of which may be none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
