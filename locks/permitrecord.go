package locks

import (
	"fmt"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// permitRecord is the number of permits that a semaphore's members agree on, stored as JSON.
type permitRecord struct {
	// Declared is the number that the members were made with, Permits the number since the last
	// Resize.
	Declared int `json:"declared"`
	Permits  int `json:"permits"`

	version int32          // of the node
	created int64          // the transaction that created the node: versions begin anew with each node
	unknown recipe.Unknown // fields of later releases
}

const permitRecordVersion = 1

func parsePermitRecord(data []byte) (p permitRecord, err error) {
	p.unknown, err = recipe.Decode(data, permitRecordVersion, &p)
	if err == nil && (p.Declared < 1 || p.Permits < 1) {
		err = fmt.Errorf("%w: its numbers must be more than 0: %q", recipe.ErrCorrupt, data)
	}
	if err != nil {
		return p, fmt.Errorf("the record of the permits: %w", err)
	}
	return p, nil
}

func (p permitRecord) encode() []byte {
	data, err := p.unknown.Encode(permitRecordVersion, p)
	if err != nil {
		panic("locks: permits cannot be encoded: " + err.Error()) // they are numbers and valid JSON
	}
	return data
}
