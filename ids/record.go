package ids

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// recordVersion is the version of the records that this release writes.
const recordVersion = 1

// The kinds of records.
const (
	sequenceKind = "sequence"
	workersKind  = "workers"
	slotKind     = "slot"
	ownerKind    = "owner"
)

// sequenceRecord is the data of a sequence's node: JSON with the first number that no block
// contains.
type sequenceRecord struct {
	Kind string `json:"kind"`
	Next int64  `json:"next"`

	unknown recipe.Unknown
}

// parseSequence decodes the data of a sequence's node. The error wraps framework.ErrForeign or
// framework.ErrNewer.
func parseSequence(path string, data []byte) (r sequenceRecord, err error) {
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if err := checkRecord(path, sequenceKind, r.Kind, err); err != nil {
		return sequenceRecord{}, err
	}
	if r.Next < 0 {
		return sequenceRecord{},
			fmt.Errorf("%w: %s has the number %d, which a sequence cannot have", errForeign, path, r.Next)
	}
	return r, nil
}

func (r sequenceRecord) encode() []byte {
	r.Kind = sequenceKind
	return encodeRecord(r.unknown, r)
}

// workersRecord is the data of the node at the path of workers.
type workersRecord struct {
	Kind  string `json:"kind"`
	Slots int    `json:"slots"`
	Epoch int64  `json:"epoch"` // in milliseconds of Unix time
}

// parseWorkers decodes the data of the node at the path of workers. The error wraps
// framework.ErrForeign or framework.ErrNewer.
func parseWorkers(path string, data []byte) (r workersRecord, err error) {
	_, err = recipe.Decode(data, recordVersion, &r)
	return r, checkRecord(path, workersKind, r.Kind, err)
}

func (r workersRecord) encode() []byte {
	r.Kind = workersKind
	return encodeRecord(nil, r)
}

// slotRecord is the data of a slot's node: the time, in milliseconds of Unix time, from which on no
// id was reserved.
type slotRecord struct {
	Kind  string `json:"kind"`
	Until int64  `json:"until"`

	unknown recipe.Unknown
}

// parseSlot decodes the data of a slot's node. The error wraps framework.ErrForeign or
// framework.ErrNewer.
func parseSlot(path string, data []byte) (r slotRecord, err error) {
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if err := checkRecord(path, slotKind, r.Kind, err); err != nil {
		return slotRecord{}, err
	}
	if r.Until < 0 {
		return slotRecord{}, fmt.Errorf("%w: %s has the time %d, which a slot cannot have", errForeign, path, r.Until)
	}
	return r, nil
}

func (r slotRecord) encode() []byte {
	r.Kind = slotKind
	return encodeRecord(r.unknown, r)
}

// ownerRecord is the data of an owner node, for people to read.
type ownerRecord struct {
	Kind string `json:"kind"`
	By   string `json:"by,omitempty"` // the Identity of the worker's client
}

func (r ownerRecord) encode() []byte {
	r.Kind = ownerKind
	return encodeRecord(nil, r)
}

// checkRecord returns framework.ErrForeign if the record could not be decoded with err, or has
// another kind than want, and else err.
func checkRecord(path, want, kind string, err error) error {
	switch {
	case errors.Is(err, framework.ErrBadRecord):
		return fmt.Errorf("%w: %s does not hold a record of kind %q", errForeign, path, want)
	case kind != want:
		return fmt.Errorf("%w: %s holds a record of kind %.40q, not %q", errForeign, path, kind, want)
	case err != nil:
		return fmt.Errorf("the record of %s: %w", path, err)
	}
	return nil
}

func encodeRecord(unknown recipe.Unknown, r any) []byte {
	data, err := unknown.Encode(recordVersion, r)
	if err != nil {
		panic("ids: a record cannot be written: " + err.Error()) // it has only strings and numbers
	}
	return data
}
