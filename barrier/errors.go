package barrier

import (
	"errors"
	"fmt"
)

var (
	// ErrForeign is returned when the node at the path does not belong to this kind of barrier, or
	// when an operator has deleted one of the nodes of a double barrier: the barrier cannot be used
	// until the others are deleted too.
	ErrForeign = errors.New("path is used by something else")
	// ErrSize is returned when a number of members or counts is less than 1 or too large.
	ErrSize = errors.New("impossible number")
	// ErrMismatch is returned when a double barrier has another number of members, or a latch
	// another number of counts, than was given; see MismatchError.
	ErrMismatch = errors.New("another number")
	// ErrTooMany is returned by Enter when a full round has taken place without the caller, and by
	// CountDown when more callers count than the latch has counts.
	ErrTooMany = errors.New("one too many")
	// ErrRaised is returned by Raise when a lease holds the gate up already, so that the gate would
	// fall with that lease; and by Hold when the gate is up.
	ErrRaised = errors.New("gate is raised already")
	// ErrLeft is the cause of the end of a round's context when the member has left.
	ErrLeft = errors.New("left the barrier")
	// ErrCounting is returned when Reset finds that the latch has not opened.
	ErrCounting = errors.New("latch has not opened")
	// ErrCaller is returned by CountDown when the id of a caller cannot be the name of a node, or
	// is too long.
	ErrCaller = errors.New("impossible caller id")
)

// MismatchError reports which numbers differ. It wraps ErrMismatch.
type MismatchError struct {
	// Path is the barrier's or latch's path.
	Path string
	// Stored is its number, Given the caller's.
	Stored, Given int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%v: %s has %d, %d was given", ErrMismatch, e.Path, e.Stored, e.Given)
}

// Unwrap returns ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }
