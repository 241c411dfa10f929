package barrier

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
)

var (
	// ErrTooMany is returned by Enter when a full round has taken place without the caller, and by
	// CountDown when more callers count than the latch has counts.
	ErrTooMany = errors.New("one too many")
	// ErrRaised is returned by Raise when a lease holds the gate up already, so that the gate would
	// fall with that lease; and by Hold when the gate is up.
	ErrRaised = errors.New("gate is raised already")
	// ErrCounting is returned when Reset finds that the latch has not opened.
	ErrCounting = errors.New("latch has not opened")
)

// MismatchError reports which numbers differ. It wraps framework.ErrMismatch.
type MismatchError struct {
	// Path is the barrier's or latch's path.
	Path string
	// Stored is its number, Given the caller's.
	Stored, Given int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%v: %s has %d, %d was given", errMismatch, e.Path, e.Stored, e.Given)
}

// Unwrap returns framework.ErrMismatch.
func (e *MismatchError) Unwrap() error { return errMismatch }

// errLeft is the cause of a round's end by Leave.
var errLeft = failure.KindOf(locks.ErrReleased, "left the barrier")

// Kinds of errors of package framework, with texts of their own.
var (
	errForeign  = failure.KindOf(failure.ErrForeign, "path is used by something else")
	errSize     = failure.KindOf(failure.ErrInvalid, "impossible number")
	errMismatch = failure.KindOf(failure.ErrMismatch, "another number")
	errCaller   = failure.KindOf(failure.ErrInvalid, "impossible caller id")
)
