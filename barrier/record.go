package barrier

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// The kinds of records.
const (
	gateKind   = "gate"
	doubleKind = "double barrier"
	roundKind  = "round"
	latchKind  = "latch"
)

const recordVersion = 1

// nodeRecord is the JSON data of this package's nodes. Each kind uses some of the fields.
type nodeRecord struct {
	Kind string `json:"kind"`

	// Size is the number of a double barrier's members or a latch's counts.
	Size int `json:"size,omitempty"`

	// In is the name of the directory of a double barrier's members.
	In string `json:"in,omitempty"`

	// Phase is the version of the double barrier's node at which the round began, Numbers are those
	// of its members, and all numbers below Base belong to this round, to former ones or to the
	// dead.
	Phase   int32   `json:"phase,omitempty"`
	Base    int32   `json:"base,omitempty"`
	Numbers []int32 `json:"numbers,omitempty"`

	// ID identifies a member's node. Owner and Since describe the creator of a gate; of that of a
	// member, only the identity is stored.
	ID string `json:"id,omitempty"`
	recipe.Owner
	Since *time.Time `json:"since,omitempty"`

	unknown recipe.Unknown
}

// parseRecord reads a node's record of one kind.
func parseRecord(path, kind string, data []byte) (nodeRecord, error) {
	var r nodeRecord
	unknown, err := recipe.Decode(data, recordVersion, &r)
	switch {
	case errors.Is(err, framework.ErrBadRecord):
		return nodeRecord{}, fmt.Errorf("%w: %s holds no %s", errForeign, path, kind)
	case r.Kind != kind:
		return nodeRecord{}, fmt.Errorf("%w: %s holds a %q and no %s", errForeign, path, r.Kind, kind)
	case err != nil:
		return nodeRecord{}, fmt.Errorf("the record of %s: %w", path, err)
	}
	r.unknown = unknown
	return r, nil
}

// parseSizedRecord reads the record of a double barrier or a latch.
func parseSizedRecord(path, kind string, data []byte, most int) (nodeRecord, error) {
	r, err := parseRecord(path, kind, data)
	if err == nil && checkSize(r.Size, most) != nil {
		err = fmt.Errorf("%w: %s has a number of %d", errForeign, path, r.Size)
	}
	return r, err
}

// parseBarrierRecord reads the record of a double barrier.
func parseBarrierRecord(path string, data []byte) (nodeRecord, error) {
	r, err := parseSizedRecord(path, doubleKind, data, maxMembers)
	if err == nil && !isDirectoryName(r.In) {
		err = fmt.Errorf("%w: %s names %.50q as the directory of its members", errForeign, path, r.In)
	}
	return r, err
}

// encode returns the record's bytes, with the fields of later releases.
func (r nodeRecord) encode() []byte {
	data, err := r.unknown.Encode(recordVersion, r)
	if err != nil {
		panic("barrier: a record cannot be written: " + err.Error()) // it has only strings, numbers and times
	}
	return data
}

// ownedRecord is a record that names its writer.
func ownedRecord(client *framework.Client, kind string) nodeRecord {
	now := time.Now().UTC()
	return nodeRecord{Kind: kind, Owner: recipe.OwnerOf(client), Since: &now}
}
