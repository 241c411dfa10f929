package election

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/stored"
)

// Metadata describes a candidate to others, such as its address and its version. Keys are not
// empty, keys and values are UTF-8, and the whole is at most MaxMetadata as JSON.
type Metadata map[string]string

// MaxMetadata is how many bytes metadata may have, encoded as JSON.
const MaxMetadata = 64 << 10

func (m Metadata) check() error {
	if err := stored.CheckMetadata(m); err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if len(data) > MaxMetadata {
		return fmt.Errorf("metadata: %d bytes as JSON, at most %d are allowed", len(data), MaxMetadata)
	}
	return nil
}

// clone returns a copy that later changes of the caller do not reach.
func (m Metadata) clone() Metadata { return maps.Clone(m) }

// maxID bounds an id: a list of the candidates reads all ids.
const maxID = 4 << 10

func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("the id is empty")
	case len(id) > maxID:
		return fmt.Errorf("the id has %d bytes, at most %d are allowed", len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("the id %q is not UTF-8", id)
	}
	return nil
}
