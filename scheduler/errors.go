package scheduler

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// ErrTooManyPending is returned when a job is triggered while 10 of its runs wait already.
var ErrTooManyPending = errors.New("too many runs wait")

// Causes of the end of a run's context, beside the loss of its claim (framework.ErrSessionLost,
// framework.ErrNodeGone), the job's Timeout (framework.ErrTimeout) and the end of the scheduler's
// grace (framework.ErrDraining). A function that learns of that end in another way may return an
// error that wraps framework.ErrDraining: then the run is recorded as Stopped, not as Failed.
var (
	// ErrReplaced is the cause when the next tick is due and the job's policy is OverlapReplace.
	ErrReplaced = errors.New("run replaced by the next")
	// ErrRemoved is the cause when the job was removed: no further run follows.
	ErrRemoved = errors.New("job removed")
)

// Permanent marks an error of a job as one that a retry cannot fix: the run is not tried again, and
// its outcome is Failed, also if its scheduler was stopped meanwhile. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

func isPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

// Kinds of errors of package framework, with texts of their own.
var (
	errNoJobs        = failure.KindOf(failure.ErrInvalid, "no jobs: add one, or give WithWaitForJobs")
	errRunning       = failure.KindOf(failure.ErrInvalid, "scheduler is running")
	errTimeout       = failure.KindOf(failure.ErrTimeout, "run timed out")
	errDrained       = failure.KindOf(failure.ErrDraining, "scheduler stopped")
	errInvalidSpec   = failure.KindOf(failure.ErrInvalid, "invalid schedule")
	errInvalidJob    = failure.KindOf(failure.ErrInvalid, "invalid job")
	errInvalidOption = failure.KindOf(failure.ErrInvalid, "invalid option")
	errDuplicateJob  = failure.KindOf(failure.ErrInvalid, "duplicate job")
	errUnknownJob    = failure.KindOf(failure.ErrNotFound, "unknown job")
	errStuck         = failure.KindOf(failure.ErrUnfinished, "run does not return")
	errPanic         = failure.KindOf(failure.ErrPanic, "job panicked")
)
