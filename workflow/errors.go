package workflow

import (
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrEnded is returned when the executor's lease, term or delivery has ended. The error also
	// wraps the cause of that end. The step that was under way may have had its effect, and may
	// have a record. Stop, and let the next executor open the ledger.
	ErrEnded = errors.New("the executor has ended")
	// ErrRemoved is returned when the ledger was removed after it was opened. Open it again to
	// begin anew.
	ErrRemoved = errors.New("the ledger was removed")
	// ErrStepFailed is returned by a step that has failed permanently: its function has returned an
	// error of Permanent or WithPermanentErrors, or its attempts are used up and it has
	// WithRecordedFailure. The failure has a record. The step returns this error each time, also to
	// later executors, and is not run again. Compensate for earlier steps only after this error.
	ErrStepFailed = errors.New("the step has failed permanently")
	// ErrWaiting is returned by Sleep, Await and Child when the run has to wait. Return it from the
	// run's function, as it is or wrapped. The function is called again when the wait is over.
	ErrWaiting = errors.New("the run has to wait: return this error from its function")
	// ErrIDInUse is returned by Start and Child when a run with this id and another kind or parent
	// run exists; by Start also for another input; by Start with WithOps when any run with this id
	// exists; and by Handle.Wait when the run with this id has another kind.
	ErrIDInUse = errors.New("the id is in use")
	// ErrFinished is returned by Signal for a finished run, by Cancel for a run that is Done or
	// Failed, and by Retry for a run that is Done unless it names a step.
	ErrFinished = errors.New("the run has finished")
	// ErrNotFinished is returned by Retry for a run that is Active, or Waiting for anything but the
	// pause after a failed attempt: such a run needs no Retry. It is returned by Remove for a run
	// that has not finished, or whose parent exists.
	ErrNotFinished = errors.New("the run has not finished")
	// ErrSignalled is returned by Signal when the run already has this signal with other data, or
	// when its Await for the signal has timed out.
	ErrSignalled = errors.New("the run already has this signal, or its wait has timed out")
	// ErrFailed is returned by Handle.Wait and Child for a run that has failed.
	ErrFailed = errors.New("the run has failed")
	// ErrCancelled is returned by Handle.Wait and Child for a run that was cancelled. It is also
	// the cause with which the context of its function ends.
	ErrCancelled = errors.New("the run was cancelled")
)

// Permanent marks an error as one that a retry cannot fix. A step that returns it has failed
// permanently (ErrStepFailed). As the error of a run's function it ends the run without further
// attempts. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

type permanentError struct {
	err        error
	ofEncoding bool // of a result that cannot be recorded: another release may be able to
}

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// errRequeued is the cause with which the context of a run's function ends when Requeue has given
// the run another item. The run goes on with that item.
var errRequeued = errors.New("the run has another item in its queue")

// Kinds of errors of package framework, with texts of their own.
var (
	errResult       = failure.KindOf(failure.ErrBadValue, "the value does not fit its type")
	errUnknownKind  = failure.KindOf(failure.ErrNotFound, "no member knows the kind")
	errTimeout      = failure.KindOf(failure.ErrTimeout, "timed out")
	errGraphChanged = failure.KindOf(failure.ErrMismatch, "the run began with another graph")
	errConflict     = failure.KindOf(failure.ErrConflict,
		"another executor has recorded the step: give all executors of a ledger one lock, election or queue")
	errRepeated = failure.KindOf(failure.ErrInvalid, "the name was used before")
	errPanic    = failure.KindOf(failure.ErrPanic, "the function panicked")
	errNoRun    = failure.KindOf(failure.ErrNotFound, "there is no such run")
	errRefused  = failure.KindOf(failure.ErrRefused, "an operation of the caller was refused")
	errClosed   = failure.KindOf(framework.ErrClosed, "workflows closed")
	errForeign  = failure.KindOf(failure.ErrForeign, "path is used by something else")
	errOption   = failure.KindOf(failure.ErrInvalid, "invalid option")
)
