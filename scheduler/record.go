package scheduler

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

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

	rest fields
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
	rest       fields
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
	rest    fields
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
	f := fields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(f.takeTime("from", &g.From), f.takeTime("to", &g.To), f.take("count", &g.Count), f.take("reason", &g.Reason))
	g.rest = f
	return err
}

// MarshalJSON writes the gap as it is stored.
func (g Gap) MarshalJSON() ([]byte, error) {
	return g.rest.with(map[string]any{"from": g.From, "to": g.To, "count": g.Count, "reason": g.Reason})
}

// UnmarshalJSON reads a stored run and keeps the fields that it does not know.
func (r *RunRecord) UnmarshalJSON(data []byte) error {
	f := fields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(
		f.take("n", &r.Number), f.take("id", &r.ID), f.takeTime("tick", &r.Tick), f.take("manual", &r.Manual),
		f.take("attempt", &r.Attempt), f.take("token", &r.Token), f.take("runner", &r.Runner),
		f.takeTime("started", &r.Started), f.takeTime("ended", &r.Ended), f.take("outcome", &r.Outcome),
		f.take("error", &r.Error), f.take("stuck", &r.Stuck),
		f.take("member", &r.member), f.take("request", &r.request), f.take("replace", &r.replace),
		f.take("generation", &r.generation), f.take("reruns", &r.reruns))
	r.rest = f
	return err
}

// MarshalJSON writes the run as it is stored.
func (r RunRecord) MarshalJSON() ([]byte, error) {
	return r.rest.with(map[string]any{
		"n": r.Number, "id": r.ID, "tick": r.Tick, "manual": given(r.Manual), "attempt": r.Attempt, "token": given(r.Token),
		"runner": r.Runner, "started": r.Started, "ended": r.Ended, "outcome": given(r.Outcome), "error": given(r.Error),
		"stuck": given(r.Stuck), "member": given(r.member), "request": given(r.request), "replace": given(r.replace),
		"generation": given(r.generation), "reruns": given(r.reruns),
	})
}

// UnmarshalJSON reads a stored request for a run and keeps the fields that it does not know.
func (p *Pending) UnmarshalJSON(data []byte) error {
	f := fields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	err := errors.Join(f.takeTime("tick", &p.Tick), f.take("manual", &p.Manual), f.take("attempt", &p.Attempt), f.take("request", &p.request),
		f.take("reruns", &p.reruns))
	p.rest = f
	return err
}

// MarshalJSON writes the request as it is stored.
func (p Pending) MarshalJSON() ([]byte, error) {
	return p.rest.with(map[string]any{"tick": p.Tick, "manual": given(p.Manual), "attempt": p.Attempt, "request": given(p.request), "reruns": given(p.reruns)})
}
