package scheduler

import (
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// State is the state of a job in the whole cluster.
type State struct {
	// Name is the job's.
	Name string `json:"name"`
	// Spec and Zone are the job's schedule.
	Spec string `json:"spec"`
	Zone string `json:"zone"`
	// Revision is that of the release whose schedule is stored.
	Revision int64 `json:"revision"`
	// Description and Jitter are those of the same release. Members may have others.
	Description string        `json:"description,omitempty"`
	Jitter      time.Duration `json:"-"`
	// Registered is when the job was first registered, by the ensemble's clock: no tick before it
	// is due.
	Registered time.Time `json:"registered,omitzero"`
	// Since is when the schedule was last changed, or the job last resumed, by the ensemble's
	// clock: earlier ticks are not due either. It does not go back when that clock is set back.
	Since time.Time `json:"since,omitzero"`
	// Paused is when the job was paused, or zero.
	Paused time.Time `json:"paused,omitzero"`
	// Last is the latest tick that was run or missed; zero before the first.
	Last time.Time `json:"last,omitzero"`
	// HoldUntil is the time until which the job's MinHold delays the next run, or zero.
	HoldUntil time.Time `json:"hold_until,omitzero"`
	// Number counts the runs so far.
	Number int64 `json:"number"`
	// Running are the runs that go on, oldest first. The runs of a member that died stay until the
	// owner's next check.
	Running []RunRecord `json:"running,omitempty"`
	// Pending are the runs that wait, oldest first. Their tokens and ids are not known yet.
	Pending []Run `json:"pending_runs,omitempty"`
	// LastRun is the latest run that has an outcome, or nil.
	LastRun *RunRecord `json:"last_run,omitempty"`
	// Fired counts the ticks that were run, those that run at present included. Manual runs are not
	// counted.
	Fired int64 `json:"fired"`
	// Triggered counts the runs that were asked for by Trigger and have begun.
	Triggered int64 `json:"triggered"`
	// Failures counts the runs that failed, panicked, timed out or were lost; not those that were
	// stopped or replaced.
	Failures int64 `json:"failures"`
	// Missed counts the ticks that were not run, by reason.
	Missed map[Reason]int64 `json:"missed,omitempty"`
	// Gaps are the latest 10 gaps, oldest first.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Due counts the ticks that were run or missed: all of those after Registered and not after Last.
func (s State) Due() int64 {
	n := s.Fired
	for _, m := range s.Missed {
		n += m
	}
	return n
}

// Schedule reads the stored schedule. Its error wraps framework.ErrInvalid if this machine cannot
// read it, for example because its time zone database lacks the zone.
func (s State) Schedule() (Schedule, error) { return readSchedule(s.Spec, s.Zone) }

// Next is the next tick after a time by the stored schedule, without its jitter; zero if the job is
// paused, or its schedule cannot be read.
func (s State) Next(after time.Time) time.Time {
	schedule, err := readSchedule(s.Spec, s.Zone)
	if err != nil || !s.Paused.IsZero() {
		return time.Time{}
	}
	return schedule.Next(latestOf(after, s.Registered, s.Since, s.Last))
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
	// Stopped: its scheduler was stopped before it could finish. It returned an error after its
	// context had ended for that reason, or it had failed and its next retry was not due yet.
	Stopped Outcome = "stopped"
	// Replaced: it returned an error after its context had ended because the next tick was due or
	// the job was removed.
	Replaced Outcome = "replaced"
	// Lost: the session of its member was lost before an outcome was recorded. It may have run.
	Lost Outcome = "lost"
)

// IsFailure reports whether the run went wrong: it did not succeed, and no one ended it on purpose.
func (o Outcome) IsFailure() bool {
	return o == Failed || o == Panicked || o == TimedOut || o == Lost
}

// runningText is the text of Running, for encoders.
const runningText = "running"

// MarshalText returns the outcome, or "running".
func (o Outcome) MarshalText() ([]byte, error) {
	if o == Running {
		return []byte(runningText), nil
	}
	return []byte(o), nil
}

// UnmarshalText reads the text of MarshalText.
func (o *Outcome) UnmarshalText(text []byte) error {
	*o = Outcome(text)
	if *o == runningText {
		*o = Running
	}
	return nil
}

// Run is one run of a job.
type Run struct {
	// Job is the job's name.
	Job string `json:"job"`
	// Tick is the scheduled time, in UTC. It identifies the run, even if the run starts later. For
	// a run that was asked for with Trigger, it is the time of the call, in whole seconds.
	Tick time.Time `json:"tick"`
	// Manual says that the run was asked for with Trigger.
	Manual bool `json:"manual"`
	// Attempt counts from 1. It rises with each attempt of Job.Attempts, and when a member repeats
	// the run of one that died or was stopped.
	Attempt int `json:"attempt"`
	// Token is a fencing token: it rises with each run of the job, wherever it runs.
	Token int64 `json:"token,omitempty"`
	// ID is unique among the job's runs: the tick and the run's number.
	ID string `json:"id,omitempty"`
}

// RunRecord is the record of a run in the whole cluster.
type RunRecord struct {
	// Number counts the job's runs from 1.
	Number int64 `json:"number"`
	// ID, Tick, Manual and Attempt are those of the Run. While it runs, and if it was lost, Attempt
	// is that of its start.
	ID      string    `json:"id"`
	Tick    time.Time `json:"tick"`
	Manual  bool      `json:"manual"`
	Attempt int       `json:"attempt"`
	// Token is that of the Run; 0 while it runs, and if it was lost.
	Token int64 `json:"token,omitempty"`
	// Runner is the id of the member that runs it.
	Runner string `json:"runner"`
	// Started and Ended are times of that member's clock. Ended is zero while it runs, and if it
	// was lost.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Error is what the job returned, at most 300 bytes of it, or "".
	Error string `json:"error,omitempty"`
	// Stuck says that the run has not returned although its context has ended.
	Stuck bool `json:"stuck,omitempty"`
}

// Member is one scheduler that takes part.
type Member struct {
	// ID is its client's identity.
	ID string
	// Session is the number of its session.
	Session framework.SessionID
	// Labels are those of WithLabels.
	Labels map[string]string
	// Since is when it joined, by the ensemble's clock.
	Since time.Time
	// Leads says that it is the leader.
	Leads bool
}
