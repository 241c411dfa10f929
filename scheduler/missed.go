package scheduler

import (
	"encoding/json"
	"time"

	"github.com/lockstep-go/lockstep/internal/stored"
)

// Reason says why ticks were missed.
type Reason string

// The reasons.
const (
	// ReasonOverlap: a run of the job went on.
	ReasonOverlap Reason = "overlap"
	// ReasonMinHold: the run before had started less than the job's MinHold ago.
	ReasonMinHold Reason = "minimum hold"
	// ReasonNoLeader: no member led when they were due, and by the job's policy the next leader did
	// not run them; of a job of Placement Spread, the job had no member.
	ReasonNoLeader Reason = "no leader"
	// ReasonLate: the member was late, for example because of a suspended connection, and by the
	// job's policy did not run them any more.
	ReasonLate Reason = "late"
	// ReasonBusy: the member was running as many jobs as WithMaxConcurrent allows, and by the job's
	// policy did not run them later.
	ReasonBusy Reason = "busy"
	// ReasonPaused: the job was paused.
	ReasonPaused Reason = "paused"
	// ReasonChanged: they were due by a schedule that was replaced before they were run.
	ReasonChanged Reason = "schedule changed"
	// ReasonRunnerLost: the tick was claimed, but the session of the member that was to run it was
	// lost before it could record an outcome. It may have run.
	ReasonRunnerLost Reason = "runner lost"
)

// reasonTexts are the reasons as they are stored.
var reasonTexts = stored.Texts[Reason]{
	ReasonOverlap: "overlap", ReasonMinHold: "minimum hold", ReasonNoLeader: "no leader", ReasonLate: "late",
	ReasonBusy: "busy", ReasonPaused: "paused", ReasonChanged: "schedule changed", ReasonRunnerLost: "runner lost",
}

// Gap is a row of ticks that were missed for one reason.
type Gap struct {
	// From and To are the first and the last of them.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Count is the number of ticks.
	Count  int64  `json:"count"`
	Reason Reason `json:"reason"`
}

// missedCounts are the numbers of ticks that were not run, by reason.
type missedCounts map[Reason]int64

// MarshalJSON writes the counts as they are stored.
func (c missedCounts) MarshalJSON() ([]byte, error) {
	byText := make(map[string]int64, len(c))
	for reason, n := range c {
		byText[reasonTexts.TextOf(reason)] = n
	}
	return json.Marshal(byText)
}

// UnmarshalJSON reads stored counts.
func (c *missedCounts) UnmarshalJSON(data []byte) error {
	var byText map[string]int64
	if err := json.Unmarshal(data, &byText); err != nil {
		return err
	}
	*c = make(missedCounts, len(byText))
	for text, n := range byText {
		(*c)[reasonTexts.ValueOf(text)] = n
	}
	return nil
}
