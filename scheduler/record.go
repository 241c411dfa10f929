package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	stateVersion  = 1
	recordVersion = 1
	maxGaps       = 10
	maxPending    = 10
	maxRequests   = 32
	maxPassed     = 100_000 // ticks that are looked at one by one
	maxReplaced   = 16
)

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

func encodeRun(r RunRecord) ([]byte, error) {
	f := jsonFields{}
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return nil, err
	}
	return f.withFields(map[string]any{"v": recordVersion})
}

// decodeRun reads a recorded run. Its error wraps ErrNewerState or ErrBadState.
func decodeRun(data []byte) (RunRecord, error) {
	var r RunRecord
	if _, err := openRecord(data, recordVersion); err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	delete(r.rest, "v")
	return r, nil
}
