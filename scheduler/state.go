package scheduler

import (
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

// schedule reads the stored schedule.
func (s State) schedule() (Schedule, error) {
	zone, err := readZone(s.Zone)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w %q: %w", ErrInvalidSpec, s.Spec, err)
	}
	return ParseSpec(s.Spec, zone)
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

// asGap is these ticks, missed.
func (d dueTicks) asGap(why Reason) Gap {
	return Gap{From: d.first, To: d.latest, Count: d.count, Reason: why}
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
