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
	// ErrTimeout is returned when a step failed after the time of WithTimeout was over, and when a signal has not come in the time of an Await.
	ErrTimeout = errors.New("it took too long")
	// ErrPanic is returned when a step, or a run's function, panicked. The log has the stack.
	ErrPanic = errors.New("the function panicked")
	// ErrWaiting is returned by Sleep, Await and Child when the run has to wait. Return it from the run's function, wrapped or not. The function is called again when
	// the wait is over.
	ErrWaiting = errors.New("the run has to wait: return this error from its function")
	// ErrNoRun is returned when there is no run of this id: it was not started, or was removed after its retention time.
	ErrNoRun = errors.New("there is no such run")
	// ErrIDInUse is returned by Start when a run of this id was started with another kind or input.
	ErrIDInUse = errors.New("the id is in use")
	// ErrUnknownKind is returned by Start when neither this process has registered the kind nor any other has worked on it.
	ErrUnknownKind = errors.New("no member knows the kind")
	// ErrFinished is returned for a run that has ended, where that is too late.
	ErrFinished = errors.New("the run has finished")
	// ErrUnfinished is returned by Retry for a run that goes on by itself.
	ErrUnfinished = errors.New("the run has not finished")
	// ErrSignalled is returned by Signal when the run has had the signal before, with other data, or its wait for it has timed out.
	ErrSignalled = errors.New("the signal is settled")
	// ErrFailed is returned by Result and Child for a run that has failed.
	ErrFailed = errors.New("the run has failed")
	// ErrCancelled is returned by Result and Child for a run that was cancelled. It is also the cause with which the context of its function ends.
	ErrCancelled = errors.New("the run was cancelled")
	// ErrClosed is returned after Workflows was closed.
	ErrClosed = errors.New("workflows closed")
	// ErrForeign is returned when the path holds something else. The node is left as it is.
	ErrForeign = errors.New("path is used by something else")
	// ErrBadRecord is returned when a record cannot be read.
	ErrBadRecord = recipe.ErrCorrupt
	// ErrNewerRecord is returned when a newer release has written a record that this one cannot read.
	ErrNewerRecord = recipe.ErrNewer
	// ErrOption is returned when an argument, an option's value or a name cannot be used. Nothing is run or written.
	ErrOption = errors.New("invalid option")
)

// Permanent marks an error of a step as one that a retry cannot fix: WithRetry does not run the step again. As the error of a run's function it ends the run without further
// attempts. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }
