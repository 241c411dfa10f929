package election

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// recordVersion is the version of the records that this release writes.
const recordVersion = 1

// termRecord is what a leader stores of its term at <path>~term.
type termRecord struct {
	Number   int64             `json:"number"` // counts the election's terms from 1
	Token    int64             `json:"token"`  // of the term
	Node     string            `json:"node"`   // the name of the leader's node
	ID       string            `json:"id"`     // of the leader
	Since    time.Time         `json:"since"`  // when the term began, by the leader's clock
	Metadata map[string]string `json:"metadata,omitempty"`
	// Trace is the trace context of the campaign that won, in the form of the leader's propagators.
	Trace map[string]string `json:"trace,omitempty"`

	unknown recipe.Unknown // fields of later releases
}

// decodeTerm reads a term's record. Its error wraps framework.ErrBadRecord or framework.ErrNewer.
func decodeTerm(data []byte) (t termRecord, err error) {
	unknown, err := recipe.Decode(data, recordVersion, &t)
	switch {
	case err != nil:
		return termRecord{}, err
	case t.Number < 1, t.Number == math.MaxInt64: // there is no next number
		return termRecord{}, fmt.Errorf("%w: the term's number is %d", framework.ErrBadRecord, t.Number)
	}
	t.unknown, t.Since = unknown, stored.Time(t.Since).UTC()
	return t, nil
}

func (t termRecord) encode() ([]byte, error) { return t.unknown.Encode(recordVersion, t) }

// saysSame reports whether two records say the same, unknown fields included.
func (t termRecord) saysSame(u termRecord) bool {
	a, errA := t.encode()
	b, errB := u.encode()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// waitingRecord is what a waiting candidate, or a request for a transfer, stores in its node.
type waitingRecord struct {
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	StableMS int64             `json:"stable_ms,omitempty"` // of a preferred candidate, see WithPriority
}

// decodeWaiting reads a waiting candidate's record. It reports false for data that is no record:
// another program has written it. Its error wraps framework.ErrBadRecord or framework.ErrNewer.
func decodeWaiting(data []byte) (m waitingRecord, ours bool, err error) {
	if _, err := recipe.Decode(data, recordVersion, &struct{}{}); err != nil && !errors.Is(err, framework.ErrNewer) {
		return waitingRecord{}, false, nil
	}
	if _, err = recipe.Decode(data, recordVersion, &m); err != nil {
		return waitingRecord{}, false, err
	}
	m.StableMS = min(max(m.StableMS, 0), maxStable.Milliseconds())
	return m, true, nil
}

func (m waitingRecord) encode() ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, m) }

// stableTime is how long a preferred candidate must have waited.
func (m waitingRecord) stableTime() time.Duration {
	return time.Duration(m.StableMS) * time.Millisecond
}
