package workflow

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrEnded is returned when the executor's lease, term or delivery has ended. It comes with the cause of that end. The step that was under way may have had its
	// effect, and may have a record. Stop, and let the next executor open the ledger.
	ErrEnded = errors.New("the executor has ended")
	// ErrConflict is returned when a step was recorded by another executor while this one stood: they do not hold the same lock. Give all executors of a ledger
	// one lock, election or queue.
	ErrConflict = errors.New("another executor has recorded the step")
	// ErrRemoved is returned when the ledger was removed after it was opened. Open it again to begin anew.
	ErrRemoved = errors.New("the ledger was removed")
	// ErrRepeated is returned when a run uses the name of a step a second time. Give each step its own name, in a loop one with the number of the item.
	ErrRepeated = errors.New("the run has used the name of the step before")
	// ErrResult is returned when a step's result cannot be encoded as JSON, or its record cannot be decoded into the type that the program has now. Nothing is
	// written. Keep the type compatible, give the changed step another name, or delete its record with Forget.
	ErrResult = errors.New("the result does not fit")
	// ErrTimeout is returned when a step failed after the time of WithTimeout was over.
	ErrTimeout = errors.New("the step took too long")
	// ErrPanic is returned when a step panicked. The log has the stack.
	ErrPanic = errors.New("the step panicked")
	// ErrForeign is returned when the path holds something else. The node is left as it is.
	ErrForeign = errors.New("path is used by something else")
	// ErrBadRecord is returned when a record cannot be read.
	ErrBadRecord = recipe.ErrCorrupt
	// ErrNewerRecord is returned when a newer release has written a record that this one cannot read.
	ErrNewerRecord = recipe.ErrNewer
	// ErrOption is returned when an option's value or a step's name cannot be used. The step is not run.
	ErrOption = errors.New("invalid option")
)

// Permanent marks an error of a step as one that a retry cannot fix: WithRetry does not run the step again. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }
