package election

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/stored"
)

// MaxMetadata is how many bytes metadata may have, encoded as JSON.
const MaxMetadata = 64 << 10

func checkMetadata(m map[string]string) error {
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
