package election

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
)

// ErrNoLeader is returned while no candidate leads.
var ErrNoLeader = errors.New("no leader")

// Why a term ended, beside the loss of its session, its node or its client, locks.ErrReleased
// (Resign), locks.ErrMaxHold (WithMaxTerm) and framework.ErrSuspended (WithStepDown).
var (
	// ErrTransferred is the cause of a term's end when it was handed to another candidate.
	ErrTransferred = errors.New("leadership was handed on")
	// ErrUnhealthy is the cause of a term's end when the check of WithHealth failed.
	ErrUnhealthy = errors.New("not healthy")
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

// Kinds of errors of package framework, with texts of their own.
var (
	errDisconnected = failure.KindOf(failure.ErrSuspended, "the connection was lost")
	errNoCandidate  = failure.KindOf(failure.ErrNotFound, "no such candidate")
)
