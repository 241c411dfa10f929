package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	recordVersion = 1
	maxOpen       = 500     // findings in the record
	maxOpenBytes  = 600_000 // of the findings in the record
)

// openFinding is a finding that has begun and whose end was not reported yet.
type openFinding struct {
	Finding
	ID            string
	Began         time.Time
	BeginReported bool
	Ended         time.Time // zero while the finding persists; else its end has to be reported
}

// storedFinding is an openFinding as it is stored. It and problemTexts stay as they are when the
// types and texts that applications see change.
type storedFinding struct {
	Problem       string    `json:"problem"`
	Path          string    `json:"path"`
	Node          string    `json:"node,omitempty"`
	Since         time.Time `json:"since,omitzero"`
	Text          string    `json:"text"`
	ID            string    `json:"id"`
	Began         time.Time `json:"began"`
	BeginReported bool      `json:"told,omitempty"`
	Ended         time.Time `json:"ended,omitzero"`
}

var problemTexts = stored.Texts[Problem]{
	ProblemWaiters: "many waiters", ProblemHold: "long hold", ProblemSilent: "silent holder",
	ProblemOrphan: "orphan", ProblemMixed: "mixed kinds", ProblemDeadlock: "deadlock",
	ProblemSession: "large session",

	Problem(scheduler.ProblemNoMember): "no member runs it", Problem(scheduler.ProblemOverdue): "overdue",
	Problem(scheduler.ProblemStuck): "stuck", Problem(scheduler.ProblemFailed): "failed",
	Problem(scheduler.ProblemMissed): "missed", Problem(scheduler.ProblemSchedule): "unreadable schedule",

	ProblemGrowing: "growing queue", ProblemOldItem: "old item", ProblemFailingItem: "failing item",
	ProblemHeldItem: "held item", ProblemDeadLetters: "dead letters",
	ProblemFailedRuns: "failed runs", ProblemUntakenRun: "untaken run",
	ProblemUnread: "unread", ProblemLeftOut: "left out",
}

// MarshalJSON writes the finding as it is stored.
func (f openFinding) MarshalJSON() ([]byte, error) {
	return recipe.Unknown(nil).EncodeFields(storedFinding{problemTexts.TextOf(f.Problem), f.Path, f.Node, f.Since,
		f.Text, f.ID, f.Began, f.BeginReported, f.Ended})
}

// UnmarshalJSON reads a stored finding.
func (f *openFinding) UnmarshalJSON(data []byte) error {
	var s storedFinding
	err := json.Unmarshal(data, &s)
	*f = openFinding{Finding{problemTexts.ValueOf(s.Problem), s.Path, s.Node, s.Since, s.Text}, s.ID, s.Began,
		s.BeginReported, s.Ended}
	return err
}

// findingsRecord is the data of <path>/findings.
type findingsRecord struct {
	Root     string        `json:"root"`
	Findings []openFinding `json:"findings"`
}

// recordAtVersion is the record as this process has last read or written it.
type recordAtVersion struct {
	findingsRecord
	unknown recipe.Unknown
	version int32 // of the node, -1 if the node is missing
}

// decodeRecord decodes a record's data. It refuses two findings of one problem at one path.
func decodeRecord(data []byte) (r findingsRecord, unknown recipe.Unknown, err error) {
	if unknown, err = recipe.Decode(data, recordVersion, &r); err != nil {
		return findingsRecord{}, nil, err
	}
	seen := map[findingKey]bool{}
	for _, f := range r.Findings {
		if f.Problem == "" || f.Path == "" || f.ID == "" || seen[f.key()] {
			return findingsRecord{}, nil,
				fmt.Errorf("%w: a finding lacks its problem, path or id, or is there twice", framework.ErrBadRecord)
		}
		seen[f.key()] = true
	}
	return r, unknown, nil
}

func (r recordAtVersion) encodeRecord() ([]byte, error) {
	return r.unknown.Encode(recordVersion, r.findingsRecord)
}

// readRecord reads the record at path after a sync. A missing node is a record without findings.
// The error wraps framework.ErrForeign, framework.ErrBadRecord or framework.ErrNewer, or is a
// transient one.
func readRecord(ctx context.Context, client *framework.Client, path, root string) (r recordAtVersion, err error) {
	err = recipe.OnSession(ctx, client, func(s *framework.Session) error {
		if err := s.Sync(ctx, path); err != nil {
			return err
		}
		data, stat, err := s.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			r = recordAtVersion{findingsRecord: findingsRecord{Root: root}, version: -1}
			return nil
		}
		if err != nil {
			return err
		}
		r.version = stat.Version
		r.findingsRecord, r.unknown, err = decodeRecord(data)
		return err
	})
	if err == nil && r.Root != root {
		err = fmt.Errorf("%w: %s", errForeign, r.Root)
	}
	if err != nil {
		return recordAtVersion{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// writeGuarded replaces the record at path, unless another client has changed it or guard refuses
// the transaction. After an error read the record again: the write may have taken effect.
func (r *recordAtVersion) writeGuarded(ctx context.Context, client *framework.Client, path string,
	guard framework.Op) error {
	data, err := r.encodeRecord()
	if err != nil {
		return err
	}
	op := framework.SetOp(path, data, r.version)
	if r.version < 0 {
		op = framework.CreateOp(path, data, framework.Persistent)
	}
	results, err := client.Multi(ctx, guard, op)
	if err != nil {
		return err
	}
	r.version = results[1].Stat.Version
	return nil
}

// encodedSize is about how many bytes a finding takes in the record.
func (f openFinding) encodedSize() int {
	data, err := json.Marshal(f)
	if err != nil {
		return maxOpenBytes // a time with a year that JSON cannot hold
	}
	return len(data)
}
