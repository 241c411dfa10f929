package scheduler

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrNoJobs is returned when a scheduler without jobs is run, unless WithWaitForJobs is given.
	ErrNoJobs = errors.New("no jobs")
	// ErrRunning is returned by Run while another call of Run goes on.
	ErrRunning = errors.New("scheduler is running")
	// ErrTooManyPending is returned when a job is triggered while 10 of its runs wait already.
	ErrTooManyPending = errors.New("too many runs wait")
)

// Causes of the end of a run's context, beside the loss of its claim (framework.ErrSessionLost,
// framework.ErrNodeGone), and outcomes.
var (
	// ErrTimeout is the cause when an attempt took longer than the job's Timeout.
	ErrTimeout = errors.New("run timed out")
	// ErrReplaced is the cause when the next tick is due and the job's policy is OverlapReplace.
	ErrReplaced = errors.New("run replaced by the next")
	// ErrRemoved is the cause when the job was removed.
	ErrRemoved = errors.New("job removed")
	// ErrDrained is the cause when the scheduler was stopped and the run had not finished within
	// the grace. A function that learns of the stop in another way may return an error that
	// wraps ErrDrained: then the run is recorded as Stopped, not as Failed.
	ErrDrained = errors.New("scheduler stopped")
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
	errInvalidSpec   = failure.KindOf(failure.ErrInvalid, "invalid schedule")
	errInvalidJob    = failure.KindOf(failure.ErrInvalid, "invalid job")
	errInvalidOption = failure.KindOf(failure.ErrInvalid, "invalid option")
	errDuplicateJob  = failure.KindOf(failure.ErrInvalid, "duplicate job")
	errUnknownJob    = failure.KindOf(failure.ErrNotFound, "unknown job")
	errStuck         = failure.KindOf(failure.ErrUnfinished, "run does not return")
	errPanic         = failure.KindOf(failure.ErrPanic, "job panicked")
)
