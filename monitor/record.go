package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

const (
	recordVersion = 1
	mostOpen      = 500     // findings in the record
	mostBytes     = 600_000 // of the findings in the record
)

// openFinding is a finding that has begun, until its end is told.
type openFinding struct {
	Finding
	ID    string    `json:"id"`
	Began time.Time `json:"began"`
	Told  bool      `json:"told,omitempty"` // its begin
	Ended time.Time `json:"ended,omitzero"` // its end is to be told
}

// findingsRecord is the data of the record.
type findingsRecord struct {
	Root     string        `json:"root"`
	Findings []openFinding `json:"findings"`
}

// storedRecord is the record as it was last read or written.
type storedRecord struct {
	findingsRecord
	unknown recipe.Unknown
	version int32 // of the node, -1 if there is none
}

// decodeRecord reads a record's data. Two findings of one problem at one path cannot be.
func decodeRecord(data []byte) (r findingsRecord, unknown recipe.Unknown, err error) {
	if unknown, err = recipe.Decode(data, recordVersion, &r); err != nil {
		return findingsRecord{}, nil, err
	}
	seen := map[key]bool{}
	for _, f := range r.Findings {
		if f.Problem == "" || f.Path == "" || f.ID == "" || seen[f.key()] {
			return findingsRecord{}, nil, fmt.Errorf("%w: a finding without its problem, path or id, or one twice", ErrBadRecord)
		}
		seen[f.key()] = true
	}
	return r, unknown, nil
}

func (r storedRecord) encode() ([]byte, error) {
	return r.unknown.Encode(recordVersion, r.findingsRecord)
}

// readRecord reads the record at path behind a sync.
func readRecord(ctx context.Context, client *framework.Client, path, root string) (r storedRecord, err error) {
	err = recipe.OnSession(ctx, client, func(s *framework.Session) error {
		if err := s.Sync(ctx, path); err != nil {
			return err
		}
		data, st, err := s.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			r = storedRecord{findingsRecord: findingsRecord{Root: root}, version: -1}
			return nil
		}
		if err != nil {
			return err
		}
		r.version = st.Version
		r.findingsRecord, r.unknown, err = decodeRecord(data)
		return err
	})
	if err == nil && r.Root != root {
		err = fmt.Errorf("%w: %s", ErrForeign, r.Root)
	}
	if err != nil {
		return storedRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// write replaces the record at path, if it is still the one that was read and guard lets it. After an error the record must be read again: it may have been written.
func (r *storedRecord) write(ctx context.Context, client *framework.Client, path string, guard framework.Op) error {
	data, err := r.encode()
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

// size is about how many bytes a finding takes in the record.
func (f openFinding) size() int {
	data, err := json.Marshal(f)
	if err != nil {
		return mostBytes // it has only texts and times, of which some years cannot be written
	}
	return len(data)
}
