package election

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// recordVersion is what this release writes, and the highest that it reads.
const recordVersion = 1

// record is a JSON object of which a release may know a part: what it does not know stays as it is.
type record map[string]json.RawMessage

// readRecord reads an object with a version. Its error wraps ErrNewerRecord or ErrBadRecord.
func readRecord(data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	var v int
	if err := r.take("v", &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	switch {
	case v < 1:
		return nil, fmt.Errorf("%w: it has no version", ErrBadRecord)
	case v > recordVersion:
		return nil, fmt.Errorf("%w: it has version %d, this one reads up to %d", ErrNewerRecord, v, recordVersion)
	}
	return r, nil
}

// take moves a field into a value; a missing one leaves it as it is.
func (r record) take(name string, into any) error {
	raw, ok := r[name]
	if !ok {
		return nil
	}
	delete(r, name)
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// with returns the object with these fields.
func (r record) with(known map[string]any) ([]byte, error) {
	all := map[string]any{"v": recordVersion}
	for name, raw := range r {
		all[name] = raw
	}
	for name, value := range known {
		all[name] = value
	}
	return json.Marshal(all)
}

// termRecord is what a winner stores of its term at <path>~term.
type termRecord struct {
	Number   int64     // counts the election's terms from 1
	Token    int64     // the term's
	Node     string    // the name of the winner's node
	ID       string    // what it is called
	Since    time.Time // when the term began, by the winner's clock
	Metadata Metadata

	rest record
}

func decodeTerm(data []byte) (t termRecord, err error) {
	if t.rest, err = readRecord(data); err != nil {
		return termRecord{}, err
	}
	r := t.rest
	err = errors.Join(r.take("number", &t.Number), r.take("token", &t.Token), r.take("node", &t.Node),
		r.take("id", &t.ID), r.take("since", &t.Since), r.take("metadata", &t.Metadata))
	switch {
	case err != nil:
		return termRecord{}, fmt.Errorf("%w: %w", ErrBadRecord, err)
	case t.Number < 1, t.Number == math.MaxInt64: // the next could not be counted
		return termRecord{}, fmt.Errorf("%w: the term's number is %d", ErrBadRecord, t.Number)
	case t.Since.UTC().Year() < 0 || t.Since.UTC().Year() > 9999: // could not be written again
		return termRecord{}, fmt.Errorf("%w: the term's time is %v", ErrBadRecord, t.Since)
	}
	t.Since = t.Since.UTC()
	return t, nil
}

func (t termRecord) encode() ([]byte, error) {
	known := map[string]any{"number": t.Number, "token": t.Token, "node": t.Node, "id": t.ID, "since": t.Since}
	if len(t.Metadata) > 0 {
		known["metadata"] = t.Metadata
	}
	return t.rest.with(known)
}

// same tells whether two records say the same, unknown fields included.
func (t termRecord) same(u termRecord) bool {
	a, errA := t.encode()
	b, errB := u.encode()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// memberRecord is what a member stores in its node.
type memberRecord struct {
	ID       string
	Metadata Metadata
	Stable   time.Duration // of a preferred candidate: how long it must have been there
}

// decodeMember reads a member's node. Data that is no record is somebody else's, which ours is false for.
func decodeMember(data []byte) (m memberRecord, ours bool, err error) {
	r, err := readRecord(data)
	if errors.Is(err, ErrBadRecord) {
		return memberRecord{}, false, nil
	}
	if err != nil {
		return memberRecord{}, false, err
	}
	var ms int64
	err = errors.Join(r.take("id", &m.ID), r.take("metadata", &m.Metadata), r.take("stable_ms", &ms))
	if err != nil {
		return memberRecord{}, false, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	m.Stable = time.Duration(min(max(ms, 0), int64(maxStable/time.Millisecond))) * time.Millisecond
	return m, true, nil
}

func (m memberRecord) encode() ([]byte, error) {
	known := map[string]any{"id": m.ID}
	if len(m.Metadata) > 0 {
		known["metadata"] = m.Metadata
	}
	if m.Stable > 0 {
		known["stable_ms"] = m.Stable.Milliseconds()
	}
	return record(nil).with(known)
}
