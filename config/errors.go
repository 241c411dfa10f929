package config

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// ErrNoValue is returned when the node is missing and there is no default, and by Rollback for a
// version that is not in the history.
var ErrNoValue = errors.New("no value")

// Kinds of errors of package framework, with texts of their own.
var (
	errConflict = failure.KindOf(failure.ErrConflict, "the value was changed")
	errRefused  = failure.KindOf(failure.ErrBadValue, "value refused")
)

// ConflictError reports the value's version. It wraps framework.ErrConflict.
type ConflictError struct {
	// Path is the value's path.
	Path string
	// Version is the value's present version, 0 if there is no node. Wanted is the version that
	// WithExpectedVersion asks for.
	Version, Wanted int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s has version %d and not %d; read it again", errConflict, e.Path, e.Version, e.Wanted)
}

// Unwrap returns framework.ErrConflict.
func (e *ConflictError) Unwrap() error { return errConflict }
