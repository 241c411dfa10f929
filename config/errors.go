package config

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/lastgood"
)

var (
	// ErrConflict is returned when the value has another version than WithExpectedVersion asks for;
	// see ConflictError.
	ErrConflict = errors.New("the value was changed")
	// ErrNoValue is returned when the node is missing and there is no default, and by Rollback for
	// a version that is not in the history.
	ErrNoValue = errors.New("no value")
	// ErrRefused is returned for a value that cannot be encoded or decoded, or that WithValidate
	// refuses.
	ErrRefused = errors.New("value refused")
	// ErrBadFile is returned for a file of WithFile that is damaged, half written, or of another
	// path.
	ErrBadFile = lastgood.ErrBadFile
)

// ConflictError reports the value's version. It wraps ErrConflict.
type ConflictError struct {
	// Path is the value's path.
	Path string
	// Version is the value's present version, 0 if there is no node. Wanted is the version that
	// WithExpectedVersion asks for.
	Version, Wanted int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s has version %d and not %d; read it again", ErrConflict, e.Path, e.Version, e.Wanted)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
