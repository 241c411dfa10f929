package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// jobState is the record of a job. Applications see it as a State, which documents the fields that
// have no comment here. The record of a removed job is its tombstone.
type jobState struct {
	Spec         string `json:"spec"`
	Zone         string `json:"zone"`
	Revision     int64  `json:"revision,omitempty"`
	DeclaredSpec string `json:"declaredSpec,omitempty"` // the releases' schedule, where it was changed at run time
	DeclaredZone string `json:"declaredZone,omitempty"`
	Description  string `json:"description,omitempty"`
	JitterMS     int64  `json:"jitter_ms,omitempty"` // of the declaration; for reports only

	Registered   time.Time `json:"-"`                   // by the node's creation, or as below
	Reregistered time.Time `json:"registered,omitzero"` // when the job was registered in the place of a tombstone
	// counts those registrations; run numbers go on from one to the next
	Generation int64     `json:"generation,omitempty"`
	Removed    time.Time `json:"removed,omitzero"` // when the job was removed
	Since      time.Time `json:"since,omitzero"`
	Paused     time.Time `json:"paused,omitzero"`
	Last       time.Time `json:"last,omitzero"`
	HoldUntil  time.Time `json:"holdUntil,omitzero"`

	Number   int64              `json:"number"`
	Running  []storedRun        `json:"running,omitempty"`
	Pending  []pendingRun       `json:"pending,omitempty"`
	LastRun  *storedRun         `json:"lastRun,omitempty"`
	Requests []string           `json:"requests,omitempty"` // of the latest control operations, oldest first
	Replaced []replacedSchedule `json:"replaced,omitempty"` // oldest first; those whose ticks lie ahead

	Fired     int64        `json:"fired"`
	Triggered int64        `json:"triggered,omitempty"`
	Failures  int64        `json:"failures,omitempty"`
	Missed    missedCounts `json:"missed,omitempty"`
	Gaps      []storedGap  `json:"gaps,omitempty"`

	unknown recipe.Unknown
	newGaps []Gap // recorded since the state was read
}

// replacedSchedule is a schedule that was replaced while its latest tick was still ahead of the
// ensemble's clock.
type replacedSchedule struct {
	Spec string    `json:"spec"`
	Zone string    `json:"zone"`
	Last time.Time `json:"last"` // its ticks up to there were run or missed
}

const (
	stateVersion     = 1
	maxGaps          = 10
	maxPending       = 10
	maxRequests      = 32
	maxTicksOneByOne = 100_000 // ticks that are compared one by one with those of replaced schedules
	maxReplaced      = 16
)

// decodeState reads a stored state. Its error wraps framework.ErrNewer or framework.ErrBadRecord.
func decodeState(data []byte) (s jobState, err error) {
	if s.unknown, err = recipe.Decode(data, stateVersion, &s); err != nil {
		return jobState{}, err
	}
	if err := s.validate(); err != nil {
		return jobState{}, fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
	}
	if s.Paused.IsZero() {
		s.Removed = time.Time{} // an earlier release, which takes a tombstone for a paused job, has resumed it
	}
	return s, nil
}

// validate refuses values that no release stores.
func (s *jobState) validate() error {
	for name, n := range map[string]int64{"generation": s.Generation, "jitter_ms": s.JitterMS, "fired": s.Fired,
		"triggered": s.Triggered, "failures": s.Failures, "number": s.Number} {
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", name, n)
		}
	}
	for reason, n := range s.Missed {
		if n < 0 {
			return fmt.Errorf("missed: %q: %d is negative", reason, n)
		}
	}
	for i := range s.Replaced {
		if err := checkTimes(&s.Replaced[i].Last); err != nil {
			return err
		}
	}
	return checkTimes(&s.Reregistered, &s.Removed, &s.Since, &s.Paused, &s.Last, &s.HoldUntil)
}

func (s jobState) encode() ([]byte, error) { return s.unknown.Encode(stateVersion, s) }

// schedule reads the stored schedule.
func (s *jobState) schedule() (Schedule, error) { return readSchedule(s.Spec, s.Zone) }

// ticksSeenUntil is the time up to which all ticks were run or missed, or do not count.
func (s *jobState) ticksSeenUntil() time.Time { return latestOf(s.Registered, s.Since, s.Last) }

// indexOfRun is the index of a run among Running, or -1.
func (s *jobState) indexOfRun(number int64) int {
	return slices.IndexFunc(s.Running, func(r storedRun) bool { return r.Number == number })
}

// runsAreMany reports whether so many runs go on that the state should not name another.
func (s *jobState) runsAreMany() bool {
	const fields = 200 // bytes of a run beside its texts
	size := 0
	for _, r := range s.Running {
		size += fields + len(r.ID) + len(r.Runner) + len(r.Member) + len(r.Request)
	}
	return len(s.Running) >= MaxOverlapping || size >= maxOverlappingBytes
}

// belongsToRegistration reports whether a run belongs to the present registration. A run of a
// removed registration ends without being counted, recorded or repeated.
func (s *jobState) belongsToRegistration(r storedRun) bool {
	return s.Removed.IsZero() && r.Generation == s.Generation
}

// clone returns a copy with its own slices and maps, without newGaps.
func (s jobState) clone() jobState {
	s.Missed = maps.Clone(s.Missed)
	if s.Missed == nil {
		s.Missed = missedCounts{}
	}
	s.Gaps = slices.Clone(s.Gaps)
	s.Running = slices.Clone(s.Running)
	s.Pending = slices.Clone(s.Pending)
	s.Requests = slices.Clone(s.Requests)
	s.Replaced = slices.Clone(s.Replaced)
	s.newGaps = nil
	return s
}

// publicState is the state as applications see it.
func (s *jobState) publicState(name string) State {
	v := State{
		Name: name, Spec: s.Spec, Zone: s.Zone, Revision: s.Revision, Description: s.Description,
		Jitter: time.Duration(s.JitterMS) * time.Millisecond, Registered: s.Registered, Since: s.Since,
		Paused: s.Paused, Last: s.Last,
		HoldUntil: s.HoldUntil, Number: s.Number, Fired: s.Fired, Triggered: s.Triggered, Failures: s.Failures,
		Missed: s.Missed,
	}
	for _, r := range s.Running {
		v.Running = append(v.Running, r.RunRecord)
	}
	for _, p := range s.Pending {
		v.Pending = append(v.Pending, Run{Job: name, Tick: p.Tick, Manual: p.Manual, Attempt: p.Attempt})
	}
	if s.LastRun != nil {
		v.LastRun = &s.LastRun.RunRecord
	}
	for _, g := range s.Gaps {
		v.Gaps = append(v.Gaps, g.Gap)
	}
	return v
}
