package election

import (
	"errors"
	"fmt"
)

// Option changes how an election works. Its error is returned by every call.
type Option func(*Election) error

// WithID names this candidate to others. Default: the client's Identity. It need not be unique.
func WithID(id string) Option {
	return func(e *Election) error {
		switch {
		case id == "":
			return errors.New("WithID: the id is empty")
		case len(id) > maxID:
			return fmt.Errorf("WithID: the id has %d bytes, at most %d are taken", len(id), maxID)
		}
		e.id = id
		return nil
	}
}

// maxID bounds an id: whoever lists the candidates reads them all.
const maxID = 4 << 10
