package lockstep

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/drain"
)

var (
	// ErrInvalid is returned by Run, before it connects, when a part or an option cannot be used.
	ErrInvalid = errors.New("invalid service")
	// ErrPanic is returned when the function of a part has panicked or ended its goroutine
	// (runtime.Goexit).
	ErrPanic = errors.New("the function panicked")
	// ErrUnfinished is returned when a part has not ended within its share of the grace.
	ErrUnfinished = drain.ErrUnfinished
)

// PartError is returned when a part has ended with an error.
type PartError struct {
	// Part is the part's name, such as "election /billing".
	Part string
	// Err is its error.
	Err error
}

func (e *PartError) Error() string { return e.Part + ": " + e.Err.Error() }

// Unwrap returns the part's error.
func (e *PartError) Unwrap() error { return e.Err }
