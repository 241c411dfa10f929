package election

import (
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"
)

// Metadata is what a candidate or a member tells others of itself, such as its address and its version. Keys are
// not empty, keys and values are UTF-8, and the whole is at most MaxMetadata as JSON.
type Metadata map[string]string

// MaxMetadata is how many bytes metadata may have, written as JSON.
const MaxMetadata = 64 << 10

func (m Metadata) check() error {
	for k, v := range m {
		switch {
		case k == "":
			return fmt.Errorf("metadata: the key of %q is empty", v)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return fmt.Errorf("metadata: %q: %q is not UTF-8", k, v)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if len(data) > MaxMetadata {
		return fmt.Errorf("metadata: %d bytes as JSON, at most %d are taken", len(data), MaxMetadata)
	}
	return nil
}

// clone keeps nil and empty apart from what the caller changes later.
func (m Metadata) clone() Metadata { return maps.Clone(m) }

// maxID bounds an id: whoever lists the candidates reads them all.
const maxID = 4 << 10

func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("the id is empty")
	case len(id) > maxID:
		return fmt.Errorf("the id has %d bytes, at most %d are taken", len(id), maxID)
	}
	return nil
}
