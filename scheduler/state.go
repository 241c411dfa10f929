package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Reason is why ticks were missed.
type Reason string

// The reasons.
const (
	// ReasonOverlap: a run of the job went on.
	ReasonOverlap Reason = "overlap"
	// ReasonNoLeader: nobody led when they were due, and they were not the latest or older than the
	// job's deadline when somebody did.
	ReasonNoLeader Reason = "no leader"
	// ReasonLate: the leader was held up, by a suspended connection for example, and as before.
	ReasonLate Reason = "late"
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

// RunRecord is what is stored of a run.
type RunRecord struct {
	// ID, Tick and Token are those of the Run.
	ID    string
	Tick  time.Time
	Token int64
	// Runner is the id of the member that runs it.
	Runner string
	// Started and Ended are times of that member's clock. Ended is zero while it runs.
	Started, Ended time.Time
	// Error is what the job returned, or "".
	Error string

	rest fields
}

// State is what is stored of a job.
type State struct {
	// Spec and Zone are the job's schedule.
	Spec, Zone string
	// Registered is when the job was first run, by the ensemble's clock: no tick before it is due.
	Registered time.Time
	// Last is the latest tick that was run or missed; zero before the first.
	Last time.Time
	// Running is the present run, or nil. Of a member that died, it stays until the next leader's look.
	Running *RunRecord
	// LastRun is the latest run that has an outcome, or nil.
	LastRun *RunRecord
	// Held is a tick that waits for the ensemble's clock, or zero.
	Held time.Time
	// Fired counts the ticks that were run, the present run included.
	Fired int64
	// Missed counts those that were not.
	Missed map[Reason]int64
	// Gaps are the latest 100 rows of missed ticks, oldest first.
	Gaps []Gap

	rest fields
}

// Due counts the ticks that were run or missed: all of those after Registered and not after Last.
func (s State) Due() int64 {
	n := s.Fired
	for _, m := range s.Missed {
		n += m
	}
	return n
}

const (
	stateVersion = 1
	maxGaps      = 100
	maxErrorText = 1000
)

// decodeState reads a stored state. Its error wraps ErrNewerState or ErrBadState.
func decodeState(data []byte) (State, error) {
	var s State
	var version int
	if err := json.Unmarshal(data, &s.rest); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	if err := s.rest.take("v", &version); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	if version > stateVersion {
		return State{}, fmt.Errorf("%w: it has version %d, this release reads up to %d", ErrNewerState, version, stateVersion)
	}
	if version < 1 {
		return State{}, fmt.Errorf("%w: it has no version", ErrBadState)
	}
	if err := s.take(); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return s, nil
}

func (s *State) take() error {
	f := s.rest
	err := errors.Join(f.take("spec", &s.Spec), f.take("zone", &s.Zone),
		f.takeTime("last", &s.Last), f.takeTime("held", &s.Held),
		f.take("running", &s.Running), f.take("lastRun", &s.LastRun),
		f.take("fired", &s.Fired), f.take("missed", &s.Missed), f.take("gaps", &s.Gaps))
	if err != nil {
		return err
	}
	if s.Fired < 0 {
		return fmt.Errorf("fired: %d is negative", s.Fired)
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
		"v": stateVersion, "spec": s.Spec, "zone": s.Zone, "last": s.Last, "held": s.Held,
		"fired": s.Fired, "missed": s.Missed, "gaps": s.Gaps,
	}
	if s.Missed == nil {
		known["missed"] = map[Reason]int64{}
	}
	if s.Gaps == nil {
		known["gaps"] = []Gap{}
	}
	if s.Running != nil {
		known["running"] = s.Running
	}
	if s.LastRun != nil {
		known["lastRun"] = s.LastRun
	}
	return s.rest.with(known)
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
	err := errors.Join(f.take("id", &r.ID), f.takeTime("tick", &r.Tick), f.take("token", &r.Token), f.take("runner", &r.Runner),
		f.takeTime("started", &r.Started), f.takeTime("ended", &r.Ended), f.take("error", &r.Error))
	r.rest = f
	return err
}

// MarshalJSON writes the run as it is stored.
func (r RunRecord) MarshalJSON() ([]byte, error) {
	known := map[string]any{
		"id": r.ID, "tick": r.Tick, "token": r.Token, "runner": r.Runner, "started": r.Started, "ended": r.Ended,
	}
	if r.Error != "" {
		known["error"] = r.Error
	}
	return r.rest.with(known)
}

// clone copies what the functions that plan change.
func (s State) clone() State {
	s.Missed = maps.Clone(s.Missed)
	if s.Missed == nil {
		s.Missed = map[Reason]int64{}
	}
	s.Gaps = slices.Clone(s.Gaps)
	return s
}

// since is the time after which ticks are still to be looked at.
func (s State) since() time.Time {
	if s.Last.After(s.Registered) {
		return s.Last
	}
	return s.Registered
}
