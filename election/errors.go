package election

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
)

// ErrNoLeader is returned while no candidate leads.
var ErrNoLeader = errors.New("no leader")

// Why a term ended, beside the loss of its session, its node or its client, locks.ErrReleased
// (Resign) and locks.ErrMaxHold (WithMaxTerm).
var (
	// ErrTransferred is the cause of a term's end when it was handed to another candidate.
	ErrTransferred = errors.New("leadership was handed on")
	// ErrUnhealthy is the cause of a term's end when the check of WithHealth failed.
	ErrUnhealthy = errors.New("not healthy")
	// ErrDisconnected is the cause of a term's end when the connection was lost, with
	// WithStepDown(AtSuspended). It is no framework.ErrSuspended: that says of a write that its
	// outcome is unknown and that the next try waits for the connection, but the term's guard is
	// refused.
	ErrDisconnected = errors.New("the connection was lost")
)

// ErrStop is what the function given to Lead returns to end Lead without an error.
var ErrStop = errors.New("stop leading")

// Permanent marks an error of the function given to Lead as one that a retry cannot fix: Lead
// returns it and does not campaign again. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// errMaxTerm is the cause of the end of a term that has lasted as long as WithMaxTerm allows.
var errMaxTerm = failure.KindOf(locks.ErrMaxHold, "the term has lasted as long as it may")

// errNoCandidate is a framework.ErrNotFound with a text of its own.
var errNoCandidate = failure.KindOf(failure.ErrNotFound, "no such candidate")
