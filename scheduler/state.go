package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is what is stored of a job.
type State struct {
	// Spec and Zone are the job's schedule.
	Spec, Zone string
	// Revision is that of the release that the schedule is of.
	Revision int64
	// Registered is when the job was first registered, by the ensemble's clock: no tick before it is due.
	Registered time.Time
	// Since is when the schedule was changed, or the job resumed, by the ensemble's clock: no tick before it is due
	// either. It is never earlier than it was, also when that clock is set back.
	Since time.Time
	// Paused is when the job was paused, or zero.
	Paused time.Time
	// Last is the latest tick that was run or missed; zero before the first.
	Last time.Time
	// HoldUntil is until when the job's MinHold lets no run start, or zero.
	HoldUntil time.Time
	// Number is how many runs there were.
	Number int64
	// Running are the runs that go on, oldest first. Of a member that died, they stay until the next look.
	Running []RunRecord
	// Pending are the runs that wait, oldest first.
	Pending []Pending
	// LastRun is the latest run that has an outcome, or nil.
	LastRun *RunRecord
	// Fired counts the ticks that were run, those that run at present included. Manual runs are not counted.
	Fired int64
	// Failures counts the runs that have another outcome than success.
	Failures int64
	// Missed counts the ticks that were not run.
	Missed map[Reason]int64
	// Gaps are the latest 10 rows of missed ticks, oldest first.
	Gaps []Gap

	declaredSpec, declaredZone string             // the releases' schedule, where it was changed at run time; else ""
	replaced                   []replacedSchedule // oldest first; of those whose ticks lie ahead
	requests                   []string           // of the latest control operations, oldest first

	// removed is when the job was removed, or zero. The record of a removed job is its tombstone.
	removed time.Time
	// registered is Registered where the job was registered anew in the place of a tombstone, or zero.
	registered time.Time
	// generation counts those registrations. Run numbers go on from one to the next.
	generation int64

	rest fields

	passed []Gap // what was recorded as missed since it was read
}

// Due counts the ticks that were run or missed: all of those after Registered and not after Last.
func (s State) Due() int64 {
	n := s.Fired
	for _, m := range s.Missed {
		n += m
	}
	return n
}

// Next is the next tick after a time by the stored schedule; zero if the job is paused, or its schedule
// cannot be read.
func (s State) Next(after time.Time) time.Time {
	schedule, err := s.schedule()
	if err != nil || !s.Paused.IsZero() {
		return time.Time{}
	}
	if since := s.since(); since.After(after) {
		after = since
	}
	return schedule.Next(after)
}

const (
	stateVersion = 1
	maxGaps      = 10
	maxPending   = 10
	maxRequests  = 32
	maxPassed    = 100_000 // ticks that are looked at one by one
	maxReplaced  = 16
)

// schedule reads the stored schedule.
func (s State) schedule() (Schedule, error) {
	zone, err := readZone(s.Zone)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w %q: %w", ErrInvalidSpec, s.Spec, err)
	}
	return ParseSpec(s.Spec, zone)
}

// decodeState reads a stored state. Its error wraps ErrNewerState or ErrBadState.
func decodeState(data []byte) (State, error) {
	var s State
	f, err := openRecord(data, stateVersion)
	if err != nil {
		return State{}, err
	}
	s.rest = f
	if err := s.take(); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return s, nil
}

// openRecord reads a stored record's fields and checks its version.
func openRecord(data []byte, most int) (fields, error) {
	var f fields
	var version int
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	if err := f.take("v", &version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	if version > most {
		return nil, fmt.Errorf("%w: it has version %d, this release reads up to %d", ErrNewerState, version, most)
	}
	if version < 1 {
		return nil, fmt.Errorf("%w: it has no version", ErrBadState)
	}
	return f, nil
}

func (s *State) take() error {
	f := s.rest
	err := errors.Join(f.take("spec", &s.Spec), f.take("zone", &s.Zone), f.take("revision", &s.Revision),
		f.take("declaredSpec", &s.declaredSpec), f.take("declaredZone", &s.declaredZone),
		f.takeTime("removed", &s.removed), f.takeTime("registered", &s.registered), f.take("generation", &s.generation),
		f.takeTime("since", &s.Since), f.takeTime("paused", &s.Paused), f.takeTime("last", &s.Last), f.takeTime("holdUntil", &s.HoldUntil),
		f.take("number", &s.Number), f.take("running", &s.Running), f.take("pending", &s.Pending), f.take("lastRun", &s.LastRun), f.take("requests", &s.requests), f.take("replaced", &s.replaced),
		f.take("fired", &s.Fired), f.take("failures", &s.Failures), f.take("missed", &s.Missed), f.take("gaps", &s.Gaps))
	if err != nil {
		return err
	}
	if s.Paused.IsZero() {
		s.removed = time.Time{} // an earlier release, which takes a tombstone for a paused job, has resumed it
	}
	for name, n := range map[string]int64{"generation": s.generation, "fired": s.Fired, "failures": s.Failures, "number": s.Number} {
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", name, n)
		}
	}
	for reason, n := range s.Missed {
		if n < 0 {
			return fmt.Errorf("missed: %q: %d is negative", reason, n)
		}
	}
	return nil
}

func (s State) encode() ([]byte, error) {
	known := map[string]any{
		"v": stateVersion, "spec": s.Spec, "zone": s.Zone, "revision": given(s.Revision),
		"declaredSpec": given(s.declaredSpec), "declaredZone": given(s.declaredZone),
		"removed": s.removed, "registered": s.registered, "generation": given(s.generation),
		"since": s.Since, "paused": s.Paused, "last": s.Last, "holdUntil": s.HoldUntil,
		"number": s.Number, "fired": s.Fired, "failures": given(s.Failures),
	}
	if len(s.Missed) > 0 {
		known["missed"] = s.Missed
	}
	if len(s.Gaps) > 0 {
		known["gaps"] = s.Gaps
	}
	if len(s.Running) > 0 {
		known["running"] = s.Running
	}
	if len(s.Pending) > 0 {
		known["pending"] = s.Pending
	}
	if len(s.requests) > 0 {
		known["requests"] = s.requests
	}
	if len(s.replaced) > 0 {
		known["replaced"] = s.replaced
	}
	if s.LastRun != nil {
		known["lastRun"] = s.LastRun
	}
	return s.rest.with(known)
}

// clone copies what the functions that change a state change.
func (s State) clone() State {
	s.Missed = maps.Clone(s.Missed)
	if s.Missed == nil {
		s.Missed = map[Reason]int64{}
	}
	s.Gaps = slices.Clone(s.Gaps)
	s.Running = slices.Clone(s.Running)
	s.Pending = slices.Clone(s.Pending)
	s.requests = slices.Clone(s.requests)
	s.replaced = slices.Clone(s.replaced)
	s.passed = nil
	return s
}

// since is the time after which ticks are still to be looked at.
func (s State) since() time.Time {
	since := s.Registered
	for _, t := range []time.Time{s.Since, s.Last} {
		if t.After(since) {
			since = t
		}
	}
	return since
}

// run is the place of a run that goes on among Running, or -1.
func (s State) run(number int64) int {
	return slices.IndexFunc(s.Running, func(r RunRecord) bool { return r.Number == number })
}

// counts reports whether a run belongs to the present registration. A run of a job that was removed ends without
// an effect on what is counted, recorded and repeated.
func (s State) counts(r RunRecord) bool { return s.removed.IsZero() && r.generation == s.generation }

// drop takes a run out of those that go on.
func (s *State) drop(r RunRecord) {
	if i := s.run(r.Number); i >= 0 {
		s.Running = slices.Delete(s.Running, i, i+1)
	}
}

// ended takes a run out of those that go on, and makes it the latest that has ended.
func (s *State) ended(r RunRecord) {
	s.drop(r)
	if r.Outcome != Succeeded {
		s.Failures++
	}
	if s.LastRun == nil || s.LastRun.Number < r.Number {
		s.LastRun = &r
	}
}

// ask adds a run to those that wait. Repeated runs go before those that were asked for.
func (s *State) ask(p Pending) {
	at := len(s.Pending)
	if !p.Manual || p.Attempt > 1 {
		at = 0
		for at < len(s.Pending) && s.Pending[at].Attempt > 1 {
			at++
		}
	}
	s.Pending = slices.Insert(s.Pending, at, p)
}

// miss records a gap, in one row with the latest if it goes on.
func (s *State) miss(schedule Schedule, g Gap) {
	s.Missed[g.Reason] += g.Count
	if n := len(s.Gaps); n > 0 && s.Gaps[n-1].Reason == g.Reason && schedule.Next(s.Gaps[n-1].To).Equal(g.From) {
		s.Gaps[n-1].To = g.To
		s.Gaps[n-1].Count += g.Count
		return
	}
	s.Gaps = append(s.Gaps, g)
	if over := len(s.Gaps) - maxGaps; over > 0 {
		s.Gaps = s.Gaps[over:]
	}
}

// pass records every tick that is due and not seen to yet as missed.
func (s *State) pass(schedule Schedule, now time.Time, why Reason) {
	if d := schedule.dueTicks(s.since(), now); d.count > 0 {
		s.Last = d.latest
		s.passOne(schedule, d.gap(why))
	}
}

func (s *State) passOne(schedule Schedule, g Gap) {
	s.miss(schedule, g)
	s.passed = append(s.passed, g)
}

// replacedSchedule is a schedule that was replaced while its latest tick was still ahead of the ensemble's clock.
type replacedSchedule struct {
	Spec string    `json:"spec"`
	Zone string    `json:"zone"`
	Last time.Time `json:"last"` // its ticks up to there were run or missed
}

// passBehind records the ticks of the schedule as missed that lie after Since and before the latest tick, which was run
// ahead of its time by an earlier schedule. Ticks that the replaced schedules have run or missed are not counted again.
func (s *State) passBehind(schedule Schedule, why Reason) {
	var earlier []Schedule
	var last []time.Time
	for _, r := range s.replaced {
		if parsed, err := (State{Spec: r.Spec, Zone: r.Zone}).schedule(); err == nil { // the ticks of one that cannot be read are unknown
			earlier, last = append(earlier, parsed), append(last, r.Last)
		}
	}
	counted := func(tick time.Time) bool {
		for i, e := range earlier {
			if !tick.After(last[i]) && e.Next(tick.Add(-time.Second)).Equal(tick) {
				return true
			}
		}
		return false
	}
	missed := Gap{Reason: why}
	tick := schedule.Next(s.Since)
	for n := 0; n < maxPassed && !tick.IsZero() && tick.Before(s.Last); n++ {
		if !counted(tick) {
			if missed.Count++; missed.Count == 1 {
				missed.From = tick.UTC()
			}
			missed.To = tick.UTC()
		}
		tick = schedule.Next(tick)
	}
	if missed.Count > 0 {
		s.passOne(schedule, missed)
	}
	if d := schedule.dueTicks(tick.Add(-time.Second), s.Last.Add(-time.Second)); !tick.IsZero() && d.count > 0 {
		s.passOne(schedule, d.gap(why)) // the ensemble's clock was set back by far
	}
}
