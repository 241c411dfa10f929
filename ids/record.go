package ids

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

const recordVersion = 1

// The kinds of records.
const (
	sequenceKind = "sequence"
	workersKind  = "workers"
	slotKind     = "slot"
	ownerKind    = "owner"
)

// sequenceRecord is the data of a sequence's node: JSON with the first number that no block contains.
type sequenceRecord struct {
	Kind string `json:"kind"`
	Next int64  `json:"next"`

	unknown recipe.Unknown
}

func parseSequence(path string, data []byte) (r sequenceRecord, err error) {
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if err := checkRecord(path, sequenceKind, r.Kind, err); err != nil {
		return sequenceRecord{}, err
	}
	if r.Next < 0 {
		return sequenceRecord{}, fmt.Errorf("%w: %s has the number %d, a sequence has none below 0", ErrForeign, path, r.Next)
	}
	return r, nil
}

func (r sequenceRecord) encode() []byte {
	r.Kind = sequenceKind
	return encodeRecord(r.unknown, r)
}

// workersRecord is the data of a worker's path.
type workersRecord struct {
	Kind  string `json:"kind"`
	Slots int    `json:"slots"`
	Epoch int64  `json:"epoch"` // in milliseconds of Unix time
}

func parseWorkers(path string, data []byte) (r workersRecord, err error) {
	_, err = recipe.Decode(data, recordVersion, &r)
	return r, checkRecord(path, workersKind, r.Kind, err)
}

func (r workersRecord) encode() []byte {
	r.Kind = workersKind
	return encodeRecord(nil, r)
}

// slotRecord is the data of a slot's node: the time, in milliseconds of Unix time, from which on no id was reserved.
type slotRecord struct {
	Kind  string `json:"kind"`
	Until int64  `json:"until"`

	unknown recipe.Unknown
}

func parseSlot(path string, data []byte) (r slotRecord, err error) {
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if err := checkRecord(path, slotKind, r.Kind, err); err != nil {
		return slotRecord{}, err
	}
	if r.Until < 0 {
		return slotRecord{}, fmt.Errorf("%w: %s has the time %d, a slot has none below 0", ErrForeign, path, r.Until)
	}
	return r, nil
}

func (r slotRecord) encode() []byte {
	r.Kind = slotKind
	return encodeRecord(r.unknown, r)
}

// ownerRecord is the data of an owner node. It is for people.
type ownerRecord struct {
	Kind string `json:"kind"`
	By   string `json:"by,omitempty"`
}

func (r ownerRecord) encode() []byte {
	r.Kind = ownerKind
	return encodeRecord(nil, r)
}

// checkRecord returns what is wrong with a record, by its kind and the error of its decoding.
func checkRecord(path, want, kind string, err error) error {
	switch {
	case errors.Is(err, recipe.ErrCorrupt):
		return fmt.Errorf("%w: %s holds no %s", ErrForeign, path, want)
	case kind != want:
		return fmt.Errorf("%w: %s holds a %.40q and no %s", ErrForeign, path, kind, want)
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
