package workflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// The limits of a ledger.
const (
	// MaxSteps is how many steps may have records.
	MaxSteps = 1000
	// MaxResult is how many bytes a result may have as JSON.
	MaxResult = 64 << 10
	// MaxResults is how many bytes all results together may have as JSON.
	MaxResults = 256 << 10
	// MaxName is how many bytes the name of a step, a sleep, a signal or a kind may have, and the
	// id of a run. The name of a graph may have 6 less.
	MaxName = 128
)

const (
	recordVersion = 1
	// failureVersion is the version of the record of a step that has failed permanently. Releases
	// that know results only refuse it.
	failureVersion = 2
	ledgerKind     = "ledger"
	stepPrefix     = "step-"
)

// ledgerRecord is the data of a ledger's node.
type ledgerRecord struct {
	Kind string `json:"kind"`
	UUID string `json:"id"`
}

// parseLedger reads the data of the node at path.
func parseLedger(path string, data []byte) (r ledgerRecord, err error) {
	if _, err = recipe.Decode(data, recordVersion, &r); err != nil {
		return ledgerRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	if r.Kind != ledgerKind || r.UUID == "" {
		return ledgerRecord{}, fmt.Errorf("%w: %s is no ledger", errForeign, path)
	}
	return r, nil
}

// stepRecord is the data of a step's node.
type stepRecord struct {
	Result   json.RawMessage `json:"result,omitempty"`  // or
	Failure  *stepFailure    `json:"failure,omitempty"` // why the step has failed permanently
	Token    int64           `json:"token"`
	Attempts int             `json:"attempts"`
	Millis   int64           `json:"ms"` // how long the last attempt took
	// the opened ledger, or the call of a run's function, that has recorded the step
	By string `json:"by"`
	runClaim
}

// stepFailure is the error of a step that has failed permanently.
type stepFailure struct {
	Text string   `json:"error"`
	Is   []string `json:"is,omitempty"` // the texts of the errors of WithPermanentErrors that it wraps
}

// runClaim is the claim of a run with which a step was recorded: the number of the run's item, and
// how often that had been claimed. It is empty in a ledger.
type runClaim struct {
	ItemNumber int64 `json:"turn,omitempty"`
	Claim      int   `json:"claim,omitempty"`
}

// parseStep reads the data of the node at path.
func parseStep(path string, data []byte) (r stepRecord, err error) {
	if _, err = recipe.Decode(data, failureVersion, &r); err != nil {
		return stepRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	if (len(r.Result) == 0) == (r.Failure == nil) {
		return stepRecord{}, fmt.Errorf("%w: %s must have a result or a failure", framework.ErrBadRecord, path)
	}
	return r, nil
}

func (r stepRecord) encode() ([]byte, error) {
	version := recordVersion
	if r.Failure != nil {
		version = failureVersion
	}
	return recipe.Unknown(nil).Encode(version, r)
}

// encodeRecord returns the data of a record that is written once, so that it has no unknown fields
// to keep.
func encodeRecord(known any) ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, known) }

// StepRecord describes a step that has a record: it has finished, or failed permanently.
type StepRecord struct {
	// Name is the step's name.
	Name string `json:"name"`
	// Result is what the step returned, as JSON. It is nil if the step has failed.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the error with which the step has failed permanently, or "".
	Error string `json:"error,omitempty"`
	// Token is the fencing token of the executor that recorded the step.
	Token int64 `json:"token"`
	// Attempts is how often that executor ran the step. Took is how long the last attempt took, to
	// the millisecond.
	Attempts int           `json:"attempts"`
	Took     time.Duration `json:"-"`
	// Recorded is the time of the record, by the clock of the ensemble's leader.
	Recorded time.Time `json:"recorded"`
}

// MarshalJSON adds "took", in seconds, and "result_base64" for a result that is not UTF-8.
func (r StepRecord) MarshalJSON() ([]byte, error) {
	type fields StepRecord
	r.Recorded = reportjson.Time(r.Recorded)
	return json.Marshal(struct {
		fields
		Took         float64 `json:"took"`
		ResultBase64 []byte  `json:"result_base64,omitempty"`
	}{fields(r), r.Took.Seconds(), reportjson.ExactBytes(string(r.Result))})
}

// describe returns the description of the step with a name.
func (r stepRecord) describe(name string, recordedAt time.Time) StepRecord {
	d := StepRecord{Name: name, Result: r.Result, Token: r.Token, Attempts: r.Attempts,
		Took: time.Duration(r.Millis) * time.Millisecond, Recorded: recordedAt}
	if r.Failure != nil {
		d.Error = r.Failure.Text
	}
	return d
}

// checkName returns framework.ErrInvalid for a name that a step, a sleep, a signal, a kind or a run
// cannot have.
func checkName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("%w: the name %.*q has %d bytes, it must have 1 to %d", errOption, MaxName, name,
			len(name), MaxName)
	}
	if name == "." || name == ".." { // a node cannot have it
		return fmt.Errorf("%w: the name %q", errOption, name)
	}
	if !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: the name %q contains a slash or a character that cannot be printed", errOption, name)
	}
	if err := framework.ValidatePath("/" + stepPrefix + name); err != nil {
		return fmt.Errorf("%w: the name %q: %w", errOption, name, err)
	}
	return nil
}

// shortenDifference returns the parts of two texts where they differ first, quoted and of at most
// 100 bytes.
func shortenDifference(a, b []byte) (string, string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	const before = 40 // bytes that are shown before the difference
	if same <= before {
		return shortenResult(a), shortenResult(b)
	}
	return "…" + shortenResult(a[same-before:]), "…" + shortenResult(b[same-before:])
}

// shortenResult returns the first 100 bytes of a result, quoted.
func shortenResult(data []byte) string {
	if len(data) > 100 {
		return fmt.Sprintf("%q…", data[:100])
	}
	return fmt.Sprintf("%q", data)
}
