package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

	rest jsonFields

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
	if since := s.ticksSeenUntil(); since.After(after) {
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
	if err := s.decodeFields(); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return s, nil
}

// openRecord reads a stored record's fields and checks its version.
func openRecord(data []byte, most int) (jsonFields, error) {
	var f jsonFields
	var version int
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	if err := f.takeField("v", &version); err != nil {
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

func (s *State) decodeFields() error {
	f := s.rest
	err := errors.Join(f.takeField("spec", &s.Spec), f.takeField("zone", &s.Zone), f.takeField("revision", &s.Revision),
		f.takeField("declaredSpec", &s.declaredSpec), f.takeField("declaredZone", &s.declaredZone),
		f.takeTime("removed", &s.removed), f.takeTime("registered", &s.registered), f.takeField("generation", &s.generation),
		f.takeTime("since", &s.Since), f.takeTime("paused", &s.Paused), f.takeTime("last", &s.Last), f.takeTime("holdUntil", &s.HoldUntil),
		f.takeField("number", &s.Number), f.takeField("running", &s.Running), f.takeField("pending", &s.Pending), f.takeField("lastRun", &s.LastRun), f.takeField("requests", &s.requests), f.takeField("replaced", &s.replaced),
		f.takeField("fired", &s.Fired), f.takeField("failures", &s.Failures), f.takeField("missed", &s.Missed), f.takeField("gaps", &s.Gaps))
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
		"v": stateVersion, "spec": s.Spec, "zone": s.Zone, "revision": nilIfZero(s.Revision),
		"declaredSpec": nilIfZero(s.declaredSpec), "declaredZone": nilIfZero(s.declaredZone),
		"removed": s.removed, "registered": s.registered, "generation": nilIfZero(s.generation),
		"since": s.Since, "paused": s.Paused, "last": s.Last, "holdUntil": s.HoldUntil,
		"number": s.Number, "fired": s.Fired, "failures": nilIfZero(s.Failures),
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
	return s.rest.withFields(known)
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

// ticksSeenUntil is the time after which ticks are still to be looked at.
func (s State) ticksSeenUntil() time.Time {
	since := s.Registered
	for _, t := range []time.Time{s.Since, s.Last} {
		if t.After(since) {
			since = t
		}
	}
	return since
}

// indexOfRun is the place of a run that goes on among Running, or -1.
func (s State) indexOfRun(number int64) int {
	return slices.IndexFunc(s.Running, func(r RunRecord) bool { return r.Number == number })
}

// belongsToRegistration reports whether a run belongs to the present registration. A run of a job that was removed ends without
// an effect on what is counted, recorded and repeated.
func (s State) belongsToRegistration(r RunRecord) bool {
	return s.removed.IsZero() && r.generation == s.generation
}

// removeRun takes a run out of those that go on.
func (s *State) removeRun(r RunRecord) {
	if i := s.indexOfRun(r.Number); i >= 0 {
		s.Running = slices.Delete(s.Running, i, i+1)
	}
}

// recordEnd takes a run out of those that go on, and makes it the latest that has ended.
func (s *State) recordEnd(r RunRecord) {
	s.removeRun(r)
	if r.Outcome != Succeeded {
		s.Failures++
	}
	if s.LastRun == nil || s.LastRun.Number < r.Number {
		s.LastRun = &r
	}
}

// addRequested adds a run to those that wait. Repeated runs go before those that were asked for.
func (s *State) addRequested(p Pending) {
	at := len(s.Pending)
	if !p.Manual || p.Attempt > 1 {
		at = 0
		for at < len(s.Pending) && s.Pending[at].Attempt > 1 {
			at++
		}
	}
	s.Pending = slices.Insert(s.Pending, at, p)
}

// addGap records a gap, in one row with the latest if it goes on.
func (s *State) addGap(schedule Schedule, g Gap) {
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

// missDueTicks records every tick that is due and not seen to yet as missed.
func (s *State) missDueTicks(schedule Schedule, now time.Time, why Reason) {
	if d := schedule.findDueTicks(s.ticksSeenUntil(), now); d.count > 0 {
		s.Last = d.latest
		s.missOneTick(schedule, d.asGap(why))
	}
}

func (s *State) missOneTick(schedule Schedule, g Gap) {
	s.addGap(schedule, g)
	s.passed = append(s.passed, g)
}

// replacedSchedule is a schedule that was replaced while its latest tick was still ahead of the ensemble's clock.
type replacedSchedule struct {
	Spec string    `json:"spec"`
	Zone string    `json:"zone"`
	Last time.Time `json:"last"` // its ticks up to there were run or missed
}

// missTicksOfOldSchedule records the ticks of the schedule as missed that lie after Since and before the latest tick, which was run
// ahead of its time by an earlier schedule. Ticks that the replaced schedules have run or missed are not counted again.
func (s *State) missTicksOfOldSchedule(schedule Schedule, why Reason) {
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
		s.missOneTick(schedule, missed)
	}
	if d := schedule.findDueTicks(tick.Add(-time.Second), s.Last.Add(-time.Second)); !tick.IsZero() && d.count > 0 {
		s.missOneTick(schedule, d.asGap(why)) // the ensemble's clock was set back by far
	}
}

// Reason is why ticks were missed.
type Reason string

// The reasons.
const (
	// ReasonOverlap: a run of the job went on.
	ReasonOverlap Reason = "overlap"
	// ReasonHeld: the run before had started less than the job's MinHold ago.
	ReasonHeld Reason = "minimum hold"
	// ReasonNoLeader: nobody led when they were due, and the job's policy did not have them run when somebody
	// did; of a job of Placement Spread, the job had no member.
	ReasonNoLeader Reason = "no leader"
	// ReasonLate: the member was held up, by a suspended connection for example, and as before.
	ReasonLate Reason = "late"
	// ReasonBusy: the member was running as many jobs as WithMaxConcurrent allows, and as before.
	ReasonBusy Reason = "busy"
	// ReasonPaused: the job was paused.
	ReasonPaused Reason = "paused"
	// ReasonChanged: they were due by a schedule that was replaced before they were seen to.
	ReasonChanged Reason = "schedule changed"
	// ReasonRunnerLost: the tick was claimed, but the session of the member that was to run it was lost before
	// it could record an outcome. It may have run.
	ReasonRunnerLost Reason = "runner lost"
)

// Gap is a row of ticks that were missed for one reason.
type Gap struct {
	// From and To are the first and the last of them.
	From, To time.Time
	// Count is how many they are.
	Count  int64
	Reason Reason

	rest jsonFields
}

// Outcome is how a run has ended.
type Outcome string

// The outcomes.
const (
	// Running: it has not ended.
	Running Outcome = ""
	// Succeeded: the function returned nil.
	Succeeded Outcome = "succeeded"
	// Failed: it returned an error, after all retries.
	Failed Outcome = "failed"
	// Panicked: it panicked, or ended its goroutine.
	Panicked Outcome = "panicked"
	// TimedOut: it returned an error after its Timeout.
	TimedOut Outcome = "timed out"
	// Stopped: its scheduler was stopped before it could finish. It returned an error after its context had ended for
	// that reason, or it had failed and its next retry was not due yet.
	Stopped Outcome = "stopped"
	// Replaced: it returned an error after its context ended since the next tick was due, or its job removed.
	Replaced Outcome = "replaced"
	// Lost: the session of its member was lost before an outcome was recorded. It may have run.
	Lost Outcome = "lost"
)

// RunRecord is what is stored of a run.
type RunRecord struct {
	// Number counts the job's runs from 1.
	Number int64
	// ID, Tick, Manual and Attempt are those of the Run. Attempt is the latest that was recorded.
	ID      string
	Tick    time.Time
	Manual  bool
	Attempt int
	// Token is that of the Run; 0 while it runs.
	Token int64
	// Runner is the id of the member that runs it.
	Runner string
	// Started and Ended are times of that member's clock. Ended is zero while it runs, and if it was lost.
	Started, Ended time.Time
	// Outcome is how it ended.
	Outcome Outcome
	// Error is what the job returned, at most 300 bytes of it, or "".
	Error string
	// Stuck tells that the run has not returned in spite of its context's end.
	Stuck bool

	member     string // the runner's member node
	generation int64  // of the registration that the run belongs to
	reruns     int    // how many members have died that ran it before
	request    string // of a manual run
	replace    bool   // it is to end
	rest       jsonFields
}

// Duration is how long the run took, 0 while it is not known.
func (r RunRecord) Duration() time.Duration {
	if r.Ended.IsZero() {
		return 0
	}
	return max(0, r.Ended.Sub(r.Started))
}

// Pending is a run that waits to be started, beside the schedule.
type Pending struct {
	// Tick, Manual and Attempt are those of the Run that it will be.
	Tick    time.Time
	Manual  bool
	Attempt int

	reruns  int    // how many members have died that ran it
	request string // what it was asked for by, one of the state's requests
	rest    jsonFields
}

const maxErrorText = 300

// errorText is what is stored of an error: valid, and not too long.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if text == "" {
		text = "error without text"
	}
	if len(text) > maxErrorText {
		text = text[:maxErrorText-3] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// UnmarshalJSON reads a stored gap and keeps the fields that it does not know.
func (g *Gap) UnmarshalJSON(data []byte) error {
	f := jsonFields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(f.takeTime("from", &g.From), f.takeTime("to", &g.To), f.takeField("count", &g.Count), f.takeField("reason", &g.Reason))
	g.rest = f
	return err
}

// MarshalJSON writes the gap as it is stored.
func (g Gap) MarshalJSON() ([]byte, error) {
	return g.rest.withFields(map[string]any{"from": g.From, "to": g.To, "count": g.Count, "reason": g.Reason})
}

// UnmarshalJSON reads a stored run and keeps the fields that it does not know.
func (r *RunRecord) UnmarshalJSON(data []byte) error {
	f := jsonFields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(
		f.takeField("n", &r.Number), f.takeField("id", &r.ID), f.takeTime("tick", &r.Tick), f.takeField("manual", &r.Manual),
		f.takeField("attempt", &r.Attempt), f.takeField("token", &r.Token), f.takeField("runner", &r.Runner),
		f.takeTime("started", &r.Started), f.takeTime("ended", &r.Ended), f.takeField("outcome", &r.Outcome),
		f.takeField("error", &r.Error), f.takeField("stuck", &r.Stuck),
		f.takeField("member", &r.member), f.takeField("request", &r.request), f.takeField("replace", &r.replace),
		f.takeField("generation", &r.generation), f.takeField("reruns", &r.reruns))
	r.rest = f
	return err
}

// MarshalJSON writes the run as it is stored.
func (r RunRecord) MarshalJSON() ([]byte, error) {
	return r.rest.withFields(map[string]any{
		"n": r.Number, "id": r.ID, "tick": r.Tick, "manual": nilIfZero(r.Manual), "attempt": r.Attempt, "token": nilIfZero(r.Token),
		"runner": r.Runner, "started": r.Started, "ended": r.Ended, "outcome": nilIfZero(r.Outcome), "error": nilIfZero(r.Error),
		"stuck": nilIfZero(r.Stuck), "member": nilIfZero(r.member), "request": nilIfZero(r.request), "replace": nilIfZero(r.replace),
		"generation": nilIfZero(r.generation), "reruns": nilIfZero(r.reruns),
	})
}

// UnmarshalJSON reads a stored request for a run and keeps the fields that it does not know.
func (p *Pending) UnmarshalJSON(data []byte) error {
	f := jsonFields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(f.takeTime("tick", &p.Tick), f.takeField("manual", &p.Manual), f.takeField("attempt", &p.Attempt), f.takeField("request", &p.request),
		f.takeField("reruns", &p.reruns))
	p.rest = f
	return err
}

// MarshalJSON writes the request as it is stored.
func (p Pending) MarshalJSON() ([]byte, error) {
	return p.rest.withFields(map[string]any{"tick": p.Tick, "manual": nilIfZero(p.Manual), "attempt": p.Attempt, "request": nilIfZero(p.request), "reruns": nilIfZero(p.reruns)})
}

// jsonFields are those of a stored JSON object. What this release knows is taken out; the rest is kept, and
// written back with the object.
type jsonFields map[string]json.RawMessage

// takeField moves a field into a value, if it is there.
func (f jsonFields) takeField(name string, into any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	delete(f, name)
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// takeTime moves a time, which must be one that can be written again.
func (f jsonFields) takeTime(name string, into *time.Time) error {
	if err := f.takeField(name, into); err != nil {
		return err
	}
	*into = into.UTC()
	if y := into.Year(); !into.IsZero() && (y < 1970 || y > 9999) {
		return fmt.Errorf("%s: the year %d is not between 1970 and 9999", name, y)
	}
	return nil
}

// withFields returns the kept fields and these; zero times and nil values are left out.
func (f jsonFields) withFields(known map[string]any) ([]byte, error) {
	all := make(map[string]any, len(f)+len(known))
	for name, raw := range f {
		all[name] = raw
	}
	for name, v := range known {
		if t, ok := v.(time.Time); v == nil || ok && t.IsZero() {
			continue
		}
		all[name] = v
	}
	return json.Marshal(all)
}

// nilIfZero is a value, or nil if it is the zero value.
func nilIfZero[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
