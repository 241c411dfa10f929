package election

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// storedTerm is a term's record as it was last seen.
type storedTerm struct {
	termRecord
	version int32
	known   bool // it was seen at all
	missing bool // there was none
}

// recordTerm makes the lease a term: it counts the term in the election's record, guarded by the
// winner's node. A winner whose node is gone, or was passed over by a transfer, finds out here: before
// this is done nobody is told that it leads.
func (t *Term) recordTerm(ctx context.Context) error {
	t.since = time.Now().UTC()
	err := t.updateRecord(ctx, func(old termRecord) termRecord {
		if old.Token == t.Token() { // written already, but the reply was lost
			return old
		}
		return t.describeInRecord(old.Number+1, t.election.metadata, old.rest)
	})
	t.number = t.record.Number
	return err
}

func (t *Term) describeInRecord(number int64, m Metadata, rest jsonRecord) termRecord {
	_, name := framework.Split(t.Node())
	return termRecord{Number: number, Token: t.Token(), Node: name, ID: t.ID(), Since: t.since, Metadata: m, rest: rest}
}

// Update replaces what the leader tells others of itself. It is written only while the term stands: the error
// is why it ended otherwise, or that of ctx, and then it may have been written nevertheless. The next
// term begins with what WithMetadata says.
func (t *Term) Update(ctx context.Context, m Metadata) error {
	err := m.check()
	if err == nil {
		m = m.clone()
		err = t.updateRecord(ctx, func(old termRecord) termRecord { return t.describeInRecord(t.number, m, old.rest) })
	}
	return framework.Wrap("update", t.election.path, err)
}

// updateRecord replaces the record by what change makes of it, in a transaction guarded by the term. Where a reply
// was lost, the record itself reports whether it was written.
func (t *Term) updateRecord(ctx context.Context, change func(termRecord) termRecord) error {
	select {
	case t.writing <- struct{}{}:
		defer func() { <-t.writing }()
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
	for {
		if err := t.readRecord(ctx); err != nil {
			return err
		}
		next := change(t.record.termRecord)
		if !t.record.missing && next.equals(t.record.termRecord) {
			return t.Err()
		}
		err := t.putRecord(ctx, next)
		if err == nil {
			return nil
		}
		t.record, t.doubtful = storedTerm{}, true // whatever the error is, it may have been written
		if !errors.Is(err, errRecordChanged) {
			return err
		}
	}
}

// errRecordChanged says that the record is another one than was read, or may be.
var errRecordChanged = errors.New("the record has changed")

// readRecord reads the record, unless it is known. Behind a sync, which is needed when a write may have been done, the
// server shows what was written before; else what it shows may be old, which the write will tell.
func (t *Term) readRecord(ctx context.Context) error {
	if t.record.known {
		return nil
	}
	s, err := t.session(ctx)
	if err == nil && t.doubtful {
		err = s.Sync(ctx, t.election.termPath())
	}
	if err != nil {
		return err
	}
	if t.record, err = readTerm(ctx, s, t.election.termPath()); err == nil {
		t.doubtful = false
	}
	return err
}

// session is the session that the term lives with.
func (t *Term) session(ctx context.Context) (*framework.Session, error) {
	s, err := t.election.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if s.ID() != t.Session() {
		return nil, fmt.Errorf("%w: another one has begun", framework.ErrSessionLost)
	}
	return s, nil
}

func (e *Election) termPath() string { return e.path + termSuffix }

// readTerm reads a term's record; a missing one has the number 0.
func readTerm(ctx context.Context, from getter, path string) (storedTerm, error) {
	data, st, err := from.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return storedTerm{known: true, missing: true}, nil
	}
	if err != nil {
		return storedTerm{}, err
	}
	r, err := decodeTerm(data)
	if err != nil {
		return storedTerm{}, fmt.Errorf("%s: %w", path, err)
	}
	return storedTerm{termRecord: r, version: st.Version, known: true}, nil
}

// putRecord writes the record if it is still the one that was read. Its error wraps errRecordChanged if it is not, or
// if nobody knows.
func (t *Term) putRecord(ctx context.Context, next termRecord) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	op := framework.SetOp(t.election.termPath(), data, t.record.version)
	if t.record.missing {
		op = framework.CreateOp(t.election.termPath(), data, framework.Persistent)
	}
	results, err := t.election.client.Multi(ctx, t.Guard(), op)
	var refused *framework.TxError
	switch {
	case err == nil:
		t.record = storedTerm{termRecord: next, version: results[1].Stat.Version, known: true}
		return nil
	case errors.Is(err, framework.ErrSuspended):
		return fmt.Errorf("%w: %w", errRecordChanged, err)
	case !errors.As(err, &refused):
		return err
	case refused.Index == 0:
		return t.guardRefusal(refused.Err)
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", errRecordChanged, err)
}

// guardRefusal tells why the term's guard has refused.
func (t *Term) guardRefusal(refused error) error {
	if errors.Is(refused, framework.ErrNoNode) {
		return fmt.Errorf("%w: %s", framework.ErrNodeGone, t.Node())
	}
	return refused
}

// recordVersion is what this release writes, and the highest that it reads.
const recordVersion = 1

// jsonRecord is a JSON object of which a release may know a part: what it does not know stays as it is.
type jsonRecord map[string]json.RawMessage

// readRecord reads an object with a version. Its error wraps ErrNewerRecord or ErrBadRecord.
func readRecord(data []byte) (jsonRecord, error) {
	var r jsonRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	var v int
	if err := r.takeField("v", &v); err != nil {
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

// takeField moves a field into a value; a missing one leaves it as it is.
func (r jsonRecord) takeField(name string, into any) error {
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

// withFields returns the object with these fields.
func (r jsonRecord) withFields(known map[string]any) ([]byte, error) {
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

	rest jsonRecord
}

func decodeTerm(data []byte) (t termRecord, err error) {
	if t.rest, err = readRecord(data); err != nil {
		return termRecord{}, err
	}
	r := t.rest
	err = errors.Join(r.takeField("number", &t.Number), r.takeField("token", &t.Token), r.takeField("node", &t.Node),
		r.takeField("id", &t.ID), r.takeField("since", &t.Since), r.takeField("metadata", &t.Metadata))
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
	return t.rest.withFields(known)
}

// equals reports whether two records say the same, unknown fields included.
func (t termRecord) equals(u termRecord) bool {
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
	err = errors.Join(r.takeField("id", &m.ID), r.takeField("metadata", &m.Metadata), r.takeField("stable_ms", &ms))
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
	return jsonRecord(nil).withFields(known)
}
