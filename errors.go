package lockstep

import (
	"github.com/lockstep-go/lockstep/internal/failure"
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

// Kinds of errors of package framework, with texts of their own.
var (
	errInvalid = failure.KindOf(failure.ErrInvalid, "invalid service")
	errPanic   = failure.KindOf(failure.ErrPanic, "the function panicked")
)
