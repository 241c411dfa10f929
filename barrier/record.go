package barrier

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// The kinds of records.
const (
	gateKind   = "gate"
	doubleKind = "double barrier"
	roundKind  = "round"
	latchKind  = "latch"
)

const recordVersion = 1

// record is what the nodes of this package hold, as JSON. Each kind has some of the fields.
type record struct {
	Version int    `json:"v"`
	Kind    string `json:"kind"`

	// Size is the number of a double barrier's members or a latch's counts.
	Size int `json:"size,omitempty"`

	// Phase is the version of the double barrier's node at which the round began, Numbers are those of its
	// members, and all numbers below Base belong to this round, to former ones or to the dead. Origin is the
	// phase from which numbers are counted.
	Phase   int32   `json:"phase,omitempty"`
	Base    int32   `json:"base,omitempty"`
	Origin  int32   `json:"origin,omitempty"`
	Numbers []int32 `json:"numbers,omitempty"`

	// ID tells a member's node from all others. Who has made a gate or a member is written for people.
	ID    string     `json:"id,omitempty"`
	Owner string     `json:"owner,omitempty"`
	Host  string     `json:"host,omitempty"`
	PID   int        `json:"pid,omitempty"`
	Since *time.Time `json:"since,omitempty"`
}

// parseRecord reads a node's record, which must be of a kind.
func parseRecord(path, kind string, data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil || r.Version < 1 {
		return record{}, fmt.Errorf("%w: %s holds no %s", ErrForeign, path, kind)
	}
	switch {
	case r.Kind != kind:
		return record{}, fmt.Errorf("%w: %s holds a %q and no %s", ErrForeign, path, r.Kind, kind)
	case r.Version > recordVersion:
		return record{}, fmt.Errorf("%w: the record of %s has version %d, this release knows %d", ErrNewer, path, r.Version, recordVersion)
	}
	return r, nil
}

// parseSizedRecord reads the record of a double barrier or a latch.
func parseSizedRecord(path, kind string, data []byte, most int) (record, error) {
	r, err := parseRecord(path, kind, data)
	if err == nil && checkSize(r.Size, most) != nil {
		err = fmt.Errorf("%w: %s has a number of %d", ErrForeign, path, r.Size)
	}
	return r, err
}

// encode writes a record.
func (r record) encode() []byte {
	r.Version = recordVersion
	data, err := json.Marshal(r)
	if err != nil {
		panic("barrier: a record cannot be written: " + err.Error()) // it has only strings, numbers and times
	}
	return data
}

// withSize changes the number in a record, and keeps fields of later releases.
func withSize(data []byte, n int) []byte {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(data, &fields) != nil { // it was read before
		return record{Kind: doubleKind, Size: n}.encode()
	}
	fields["size"] = fmt.Append(nil, n)
	resized, err := json.Marshal(fields)
	if err != nil {
		panic("barrier: a record cannot be written: " + err.Error()) // it is valid JSON already
	}
	return resized
}

// ownedRecord is a record that says who has written it.
func ownedRecord(client *framework.Client, kind string) record {
	host, _ := os.Hostname() // an unknown host is shown as such
	now := time.Now().UTC()
	return record{Kind: kind, Owner: client.Config().Identity, Host: host, PID: os.Getpid(), Since: &now}
}
