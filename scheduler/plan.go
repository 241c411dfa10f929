package scheduler

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// planInput is what a plan is made from beside the stored state.
type planInput struct {
	now        time.Time
	lateReason Reason  // why ticks were not run when they were due
	lost       []int64 // the runs of members that are gone
}

// plan is what a check of a job has to do: a state to write, and perhaps a run to start. It depends
// on the definition, the state and the input alone, so that members with the same definition make
// the same plan.
type plan struct {
	job      *job
	schedule Schedule
	input    planInput

	state         jobState
	start         *storedRun  // the run to be claimed; it is among state.Running
	lost          []storedRun // runs that get an outcome since their runner is gone
	droppedRuns   bool        // runs of a former registration have ended
	holdShortened bool        // the hold was shortened
	missed        []Gap
	toReplace     []int64   // runs that must end, so that the next one can start
	wakeAt        time.Time // when to check the job next; zero: only a change of the state leads to the next check
	nextTickAt    time.Time // when the next tick that is not due yet should start; zero: there is none
}

// plan decides what to do.
func (j *job) plan(state jobState, schedule Schedule, at planInput) plan {
	p := plan{job: j, schedule: schedule, input: at, state: state.clone()}
	for _, number := range at.lost {
		p.markLost(number)
	}
	p.boundHold()
	p.startRepeat()
	if p.start == nil && p.requestGoesFirst() {
		p.startRequested()
	}
	if p.start == nil && p.state.Paused.IsZero() {
		p.planTicks()
	}
	if p.start == nil {
		p.startRequested()
	}
	p.wakeAt, p.nextTickAt = p.nextWake()
	return p
}

// isEmpty reports whether the plan changes neither the state nor the runs.
func (p *plan) isEmpty() bool {
	return p.start == nil && len(p.missed) == 0 && len(p.lost) == 0 && !p.droppedRuns && !p.holdShortened
}

// markLost gives a run its outcome after its member is gone. Its tick is missed, or run again.
func (p *plan) markLost(number int64) {
	i := p.state.indexOfRun(number)
	if i < 0 {
		return
	}
	r := p.state.Running[i]
	if !p.state.belongsToRegistration(r) {
		p.state.removeRun(r)
		p.droppedRuns = true
		return
	}
	r.Outcome = Lost
	p.lost = append(p.lost, r)
	p.state.recordEnd(r)
	switch {
	case p.job.Guarantee == AtLeastOnce && r.Reruns < MaxReruns:
		p.state.addRequested(pendingRun{Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt + 1, Reruns: r.Reruns + 1,
			Request: r.Request})
	case !r.Manual:
		p.state.Fired--
		p.recordMiss(Gap{From: r.Tick, To: r.Tick, Count: 1, Reason: ReasonRunnerLost})
	}
}

// hasRoom reports whether a run may start now.
func (p *plan) hasRoom() bool { return !p.isOccupied() && !p.isHeldBack() }

// isOccupied reports whether runs that go on keep others from starting.
func (p *plan) isOccupied() bool {
	return len(p.state.Running) > 0 && (p.job.Overlap != OverlapAllow || p.state.runsAreMany())
}

// isHeldBack reports whether the job's MinHold keeps the next run from starting yet.
func (p *plan) isHeldBack() bool { return p.input.now.Before(p.state.HoldUntil) }

// boundHold shortens a hold that ends too late, since the ensemble's clock was set back or MinHold
// was lowered.
func (p *plan) boundHold() {
	if latest := p.input.now.Add(p.job.MinHold); p.state.HoldUntil.After(latest.Add(MaxAhead)) {
		p.state.HoldUntil, p.holdShortened = latest.UTC().Truncate(time.Millisecond), true
	}
}

// startRepeat starts a run that must be repeated, before all others. It is not a new run, so
// MinHold does not delay it.
func (p *plan) startRepeat() {
	if i := p.firstRepeat(); i >= 0 && !p.isOccupied() {
		p.addRun(p.state.Pending[i])
		p.state.Pending = slices.Delete(p.state.Pending, i, i+1)
	}
}

// firstRepeat is the index of the first run among Pending that must be repeated, or -1. A pause
// keeps back the runs of ticks, but not runs that were asked for with Trigger, since Trigger runs a
// paused job on purpose.
func (p *plan) firstRepeat() int {
	return slices.IndexFunc(p.state.Pending,
		func(w pendingRun) bool { return w.Attempt > 1 && (w.Manual || p.state.Paused.IsZero()) })
}

// startRequested starts the first run that was asked for with Trigger.
func (p *plan) startRequested() {
	if i := p.firstRequested(); i >= 0 && p.hasRoom() {
		p.addRun(p.state.Pending[i])
		p.state.Pending = slices.Delete(p.state.Pending, i, i+1)
	}
}

// firstRequested is the index of the first run among Pending that was asked for with Trigger, or
// -1.
func (p *plan) firstRequested() int {
	return slices.IndexFunc(p.state.Pending, func(w pendingRun) bool { return w.Attempt == 1 })
}

// requestGoesFirst reports whether the first requested run goes before the next tick. It does if a
// tick has come since the request: otherwise a job that is busy from tick to tick would keep it
// waiting. It also does if the request lies in the future, since the ensemble's clock was set back:
// otherwise it would keep all later requests waiting.
func (p *plan) requestGoesFirst() bool {
	i := p.firstRequested()
	if i < 0 {
		return false
	}
	asked := p.state.Pending[i].Tick
	return asked.Before(p.state.Last) || asked.After(p.input.now)
}

// planTicks runs a due tick, or records due ticks as missed.
func (p *plan) planTicks() {
	d := p.findDue()
	switch {
	case d.count == 0:
	case p.hasRoom():
		p.fireTick(d)
	case p.job.Misfire == MisfireAll && (p.isHeldBack() || p.job.Overlap != OverlapReplace):
		p.dropExpired(d, p.blockingReason())
	case p.job.Overlap == OverlapReplace && !p.isHeldBack():
		p.replaceRunning(d)
	default:
		p.missAll(d.asGap(p.blockingReason()))
	}
}

// blockingReason is the reason for which ticks are missed while no run may start.
func (p *plan) blockingReason() Reason {
	if p.isOccupied() {
		return ReasonOverlap
	}
	return ReasonMinHold
}

// findDue finds the ticks that are due and neither run nor missed yet. Only the latest may still be
// delayed by its jitter, since no delay goes beyond the next tick.
func (p *plan) findDue() dueTicks {
	since := p.state.ticksSeenUntil()
	d := p.schedule.findDueTicks(since, p.input.now)
	if d.count > 0 && p.startTime(d.latest).After(p.input.now) {
		d = p.schedule.findDueTicks(since, d.latest.Add(-time.Second))
	}
	return d
}

// fireTick runs one tick, and records the ticks that the misfire policy leaves out as missed.
func (p *plan) fireTick(d dueTicks) {
	if p.job.Misfire == MisfireAll {
		if d = p.dropExpired(d, p.input.lateReason); d.count > 0 {
			p.beginTickRun(d.first)
		}
		return
	}
	if p.isTooLate(d.latest) {
		p.missAll(d.asGap(p.input.lateReason))
		return
	}
	p.missBefore(d.latest, d, p.input.lateReason)
	p.beginTickRun(d.latest)
}

// replaceRunning ends runs to make room for the latest tick. The tick stays due until they have
// ended.
func (p *plan) replaceRunning(d dueTicks) {
	if p.isTooLate(d.latest) {
		p.missAll(d.asGap(ReasonOverlap))
		return
	}
	p.missBefore(d.latest, d, ReasonOverlap)
	for _, r := range p.state.Running {
		if !r.Manual || p.startTime(d.latest).After(r.Started) {
			p.toReplace = append(p.toReplace, r.Number)
		}
	}
}

// isTooLate reports whether a tick is later than the policy allows.
func (p *plan) isTooLate(tick time.Time) bool {
	limit := p.maxLateness(tick)
	if p.job.Misfire == MisfireSkip {
		limit = min(limit, OnTime)
	}
	return p.input.now.Sub(p.startTime(tick)) > limit
}

// maxLateness is how late a tick may start.
func (p *plan) maxLateness(tick time.Time) time.Duration {
	if p.job.Deadline > 0 {
		return p.job.Deadline
	}
	next := p.schedule.Next(tick)
	if next.IsZero() {
		return maxDefaultDeadline
	}
	return min(max(next.Sub(tick), OnTime), maxDefaultDeadline)
}

// dropExpired records the ticks that are later than the Deadline allows as missed, and returns the
// others.
func (p *plan) dropExpired(d dueTicks, why Reason) dueTicks {
	limit := p.job.Deadline
	if limit == 0 {
		limit = OnTime
	}
	// not in one sum, which may overflow
	old := p.schedule.findDueTicks(p.state.ticksSeenUntil(), p.input.now.Add(-limit).Add(-p.job.Jitter-time.Nanosecond))
	if p.job.Deadline == 0 && old.count > 0 && !p.isTooLate(old.latest) {
		// of ticks that are older than OnTime, only the latest may be young enough
		old = p.schedule.findDueTicks(p.state.ticksSeenUntil(), old.latest.Add(-time.Second))
	}
	if old.count == 0 {
		return d
	}
	p.missAll(old.asGap(why))
	return p.findDue()
}

// missBefore records the due ticks before one of them as missed.
func (p *plan) missBefore(tick time.Time, d dueTicks, why Reason) {
	if d.count < 2 {
		return
	}
	p.missAll(p.schedule.findDueTicks(p.state.ticksSeenUntil(), tick.Add(-time.Second)).asGap(why))
}

// missAll records ticks as missed. They are not due any more.
func (p *plan) missAll(g Gap) {
	p.recordMiss(g)
	p.state.Last = g.To
}

func (p *plan) recordMiss(g Gap) {
	p.missed = append(p.missed, g)
	p.state.addGap(p.schedule, g)
}

// beginTickRun begins the run of a tick.
func (p *plan) beginTickRun(tick time.Time) {
	p.state.Last = tick
	p.state.Fired++
	p.addRun(pendingRun{Tick: tick, Attempt: 1})
}

// addRun adds a run to those that go on.
func (p *plan) addRun(of pendingRun) {
	p.state.Number++
	if of.Manual && of.Attempt == 1 {
		p.state.Triggered++
	}
	number := p.state.Number
	p.start = &storedRun{
		RunRecord: RunRecord{
			Number: number, ID: of.Tick.UTC().Format("20060102T150405Z") + "-" + strconv.FormatInt(number, 10),
			Tick: of.Tick.UTC(), Manual: of.Manual, Attempt: of.Attempt,
		},
		Reruns: of.Reruns, Request: of.Request, Generation: p.state.Generation,
	}
	p.state.Running = append(p.state.Running, *p.start)
	if p.job.MinHold > 0 && of.Attempt == 1 {
		p.state.HoldUntil = p.input.now.Add(p.job.MinHold).UTC().Truncate(time.Millisecond)
	}
}

// startTime is when a tick should start: its time plus its jitter.
func (p *plan) startTime(tick time.Time) time.Time {
	return tick.Add(p.job.jitterOf(p.schedule, tick))
}

// jitterOf is a tick's jitter, in whole milliseconds: the same in all members, and not beyond the
// next tick.
func (j *job) jitterOf(schedule Schedule, tick time.Time) time.Duration {
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
	return time.Duration(mixBits(h.Sum64())%uint64(most/time.Millisecond)) * time.Millisecond
}

// nextWake returns when the job should be checked again if nothing changes before: at the next
// tick, or for waiting runs at once or at the end of the hold. tickAt is the start of the next tick
// alone.
func (p *plan) nextWake() (wakeAt, tickAt time.Time) {
	late := false // a tick is due, and waits until it can be run
	if p.state.Paused.IsZero() {
		tick := p.schedule.Next(p.state.ticksSeenUntil())
		if !tick.IsZero() && !p.startTime(tick).After(p.input.now) {
			late = p.job.Misfire == MisfireAll
			tick = p.schedule.Next(p.input.now)
		}
		if !tick.IsZero() {
			tickAt = p.startTime(tick)
		}
	}
	wakeAt = tickAt
	if p.isOccupied() {
		return wakeAt, tickAt
	}
	if late || p.firstRequested() >= 0 {
		wakeAt = earlierOf(wakeAt, latestOf(p.input.now, p.state.HoldUntil))
	}
	if p.firstRepeat() >= 0 {
		wakeAt = earlierOf(wakeAt, p.input.now)
	}
	return wakeAt, tickAt
}

// mixBits spreads a hash over all bits, since FNV's highest bits hardly depend on the last bytes.
// It is the finalizer of MurmurHash3.
func mixBits(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
