package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// The types of this file that begin with wire are what is stored. They and the stored texts stay as
// they are when the types and texts that applications see change.

const (
	recordVersion = 1 // of a run in the history
	maxErrorText  = 300
)

var outcomeTexts = stored.Texts[Outcome]{
	Running: "", Succeeded: "succeeded", Failed: "failed", Panicked: "panicked", TimedOut: "timed out",
	Stopped: "stopped", Replaced: "replaced", Lost: "lost",
}

// storedRun is a run that goes on, or the record of one that has ended.
type storedRun struct {
	RunRecord
	Member     string // the runner's node among the members, while it runs
	Generation int64  // of the registration that the run belongs to
	Reruns     int    // how many members have died that ran it before
	Request    string // of a manual run
	Replace    bool   // it must end

	unknown recipe.Unknown
}

// wireRun is a storedRun as it is stored.
type wireRun struct {
	Number     int64     `json:"n"`
	ID         string    `json:"id"`
	Tick       time.Time `json:"tick,omitzero"`
	Manual     bool      `json:"manual,omitempty"`
	Attempt    int       `json:"attempt"`
	Token      int64     `json:"token,omitempty"`
	Runner     string    `json:"runner"`
	Started    time.Time `json:"started,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
	Outcome    string    `json:"outcome,omitempty"`
	Error      string    `json:"error,omitempty"`
	Stuck      bool      `json:"stuck,omitempty"`
	Member     string    `json:"member,omitempty"`
	Generation int64     `json:"generation,omitempty"`
	Reruns     int       `json:"reruns,omitempty"`
	Request    string    `json:"request,omitempty"`
	Replace    bool      `json:"replace,omitempty"`
}

// wire is the run as it is stored.
func (r storedRun) wire() wireRun {
	return wireRun{r.Number, r.ID, r.Tick, r.Manual, r.Attempt, r.Token, r.Runner, r.Started, r.Ended,
		outcomeTexts.TextOf(r.Outcome), r.Error, r.Stuck, r.Member, r.Generation, r.Reruns, r.Request, r.Replace}
}

// storedRun is the run that is stored.
func (w wireRun) storedRun(unknown recipe.Unknown) storedRun {
	return storedRun{RunRecord{w.Number, w.ID, w.Tick, w.Manual, w.Attempt, w.Token, w.Runner, w.Started, w.Ended,
		outcomeTexts.ValueOf(w.Outcome), w.Error, w.Stuck}, w.Member, w.Generation, w.Reruns, w.Request, w.Replace,
		unknown}
}

// UnmarshalJSON reads a stored run and keeps the fields that it does not know.
func (r *storedRun) UnmarshalJSON(data []byte) error {
	var w wireRun
	unknown, err := recipe.DecodeFields(data, &w)
	err = errors.Join(err, checkTimes(&w.Tick, &w.Started, &w.Ended))
	*r = w.storedRun(unknown)
	return err
}

// MarshalJSON writes the run as it is stored.
func (r storedRun) MarshalJSON() ([]byte, error) { return r.unknown.EncodeFields(r.wire()) }

// encodeRun writes a run as it is stored in the history.
func encodeRun(r storedRun) ([]byte, error) { return r.unknown.Encode(recordVersion, r.wire()) }

// decodeRun reads a recorded run. Its error wraps framework.ErrNewer or framework.ErrBadRecord.
func decodeRun(data []byte) (storedRun, error) {
	var w wireRun
	unknown, err := recipe.Decode(data, recordVersion, &w)
	if err == nil {
		if err = checkTimes(&w.Tick, &w.Started, &w.Ended); err != nil {
			err = fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
		}
	}
	return w.storedRun(unknown), err
}

// pendingRun is a run that waits to be started, beside the schedule.
type pendingRun struct {
	Tick    time.Time `json:"tick,omitzero"`
	Manual  bool      `json:"manual,omitempty"`
	Attempt int       `json:"attempt"`
	Reruns  int       `json:"reruns,omitempty"`
	Request string    `json:"request,omitempty"` // one of the state's requests

	unknown recipe.Unknown
}

// UnmarshalJSON reads a stored request for a run and keeps the fields that it does not know.
func (p *pendingRun) UnmarshalJSON(data []byte) (err error) {
	type fields pendingRun
	p.unknown, err = recipe.DecodeFields(data, (*fields)(p))
	return errors.Join(err, checkTimes(&p.Tick))
}

// MarshalJSON writes the request as it is stored.
func (p pendingRun) MarshalJSON() ([]byte, error) {
	type fields pendingRun
	return p.unknown.EncodeFields(fields(p))
}

// storedGap is a gap among the latest ones of a state.
type storedGap struct {
	Gap
	unknown recipe.Unknown
}

// wireGap is a storedGap as it is stored.
type wireGap struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Count  int64     `json:"count"`
	Reason string    `json:"reason"`
}

// UnmarshalJSON reads a stored gap and keeps the fields that it does not know.
func (g *storedGap) UnmarshalJSON(data []byte) error {
	var w wireGap
	unknown, err := recipe.DecodeFields(data, &w)
	err = errors.Join(err, checkTimes(&w.From, &w.To))
	*g = storedGap{Gap{w.From, w.To, w.Count, reasonTexts.ValueOf(w.Reason)}, unknown}
	return err
}

// MarshalJSON writes the gap as it is stored.
func (g storedGap) MarshalJSON() ([]byte, error) {
	return g.unknown.EncodeFields(wireGap{g.From, g.To, g.Count, reasonTexts.TextOf(g.Reason)})
}

// checkTimes brings stored times to UTC, and refuses those that cannot be stored again.
func checkTimes(times ...*time.Time) error {
	for _, t := range times {
		*t = t.UTC()
		if y := t.Year(); !t.IsZero() && (y < 1970 || y > 9999) {
			return fmt.Errorf("the year %d is not between 1970 and 9999", y)
		}
	}
	return nil
}

// errorText is the stored form of an error: valid UTF-8 of at most maxErrorText bytes.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := stored.Text(err.Error())
	if text == "" {
		text = "error without text"
	}
	return stored.Shorten(text, maxErrorText)
}
