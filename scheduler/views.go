package scheduler

import "time"

// State is what is known of a job in the whole cluster.
type State struct {
	// Name is the job's.
	Name string
	// Spec and Zone are the job's schedule.
	Spec, Zone string
	// Revision is that of the release that the schedule is of.
	Revision int64
	// Registered is when the job was first registered, by the ensemble's clock: no tick before it is due.
	Registered time.Time
	// Since is when the schedule was changed, or the job resumed, by the ensemble's clock: no tick before it is due
	// either. It does not go back when that clock is set back.
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
	// Pending are the runs that wait, oldest first. Their tokens and ids are not known yet.
	Pending []Run
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
}

// Due counts the ticks that were run or missed: all of those after Registered and not after Last.
func (s State) Due() int64 {
	n := s.Fired
	for _, m := range s.Missed {
		n += m
	}
	return n
}

// Next is the next tick after a time by the stored schedule, without its jitter; zero if the job is paused, or its schedule
// cannot be read.
func (s State) Next(after time.Time) time.Time {
	schedule, err := readSchedule(s.Spec, s.Zone)
	if err != nil || !s.Paused.IsZero() {
		return time.Time{}
	}
	return schedule.Next(latestOf(after, s.Registered, s.Since, s.Last))
}

// Reason is why ticks were missed.
type Reason string

// The reasons.
const (
	// ReasonOverlap: a run of the job went on.
	ReasonOverlap Reason = "overlap"
	// ReasonHeld: the run before had started less than the job's MinHold ago.
	ReasonHeld Reason = "minimum hold"
	// ReasonNoLeader: no member led when they were due, and by the job's policy the next leader did not run
	// them; of a job of Placement Spread, the job had no member.
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
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Count is how many they are.
	Count  int64  `json:"count"`
	Reason Reason `json:"reason"`
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

// Run is one run of a job.
type Run struct {
	// Job is the job's name.
	Job string
	// Tick is the scheduled time, in UTC: what identifies the run, whenever it is started. Of a run that
	// was asked for with Trigger, it is the time of that, in whole seconds.
	Tick time.Time
	// Manual tells a run that was asked for with Trigger.
	Manual bool
	// Attempt counts from 1. It rises with each retry, and when another member repeats the run of one that
	// died.
	Attempt int
	// Token is a fencing token: it rises with each run of the job, wherever it runs.
	Token int64
	// ID is unique among the job's runs: the tick and the run's number.
	ID string
}

// RunRecord is what is known of a run in the whole cluster.
type RunRecord struct {
	// Number counts the job's runs from 1.
	Number int64 `json:"n"`
	// ID, Tick, Manual and Attempt are those of the Run. Attempt is the latest that was recorded.
	ID      string    `json:"id"`
	Tick    time.Time `json:"tick,omitzero"`
	Manual  bool      `json:"manual,omitempty"`
	Attempt int       `json:"attempt"`
	// Token is that of the Run; 0 while it runs.
	Token int64 `json:"token,omitempty"`
	// Runner is the id of the member that runs it.
	Runner string `json:"runner"`
	// Started and Ended are times of that member's clock. Ended is zero while it runs, and if it was lost.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome,omitempty"`
	// Error is what the job returned, at most 300 bytes of it, or "".
	Error string `json:"error,omitempty"`
	// Stuck tells that the run has not returned in spite of its context's end.
	Stuck bool `json:"stuck,omitempty"`
}
