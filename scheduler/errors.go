package scheduler

import (
	"errors"
)

var (
	// ErrInvalidSpec is returned when a cron expression cannot be read, has no tick, or means
	// something else than it seems to.
	ErrInvalidSpec = errors.New("invalid schedule")
	// ErrInvalidJob is returned when a job's name cannot name a node, or a field of a Job has a
	// value that cannot be used.
	ErrInvalidJob = errors.New("invalid job")
	// ErrInvalidOption is returned when an option's value cannot be used.
	ErrInvalidOption = errors.New("invalid option")
	// ErrDuplicateJob is returned by Add when this member already has a job of that name.
	ErrDuplicateJob = errors.New("duplicate job")
	// ErrNoJobs is returned when a scheduler without jobs is run, unless WithWaitForJobs is given.
	ErrNoJobs = errors.New("no jobs")
	// ErrRunning is returned by Run while another call of Run goes on.
	ErrRunning = errors.New("scheduler is running")
	// ErrUnknownJob is returned when no state is stored for a job, or the job was removed. Update
	// and Withdraw return it when this member does not have the job.
	ErrUnknownJob = errors.New("unknown job")
	// ErrTooManyPending is returned when a job is triggered while 10 of its runs wait already.
	ErrTooManyPending = errors.New("too many runs wait")
	// ErrStuck is returned by Run when the functions of runs have not returned although their
	// contexts have ended.
	ErrStuck = errors.New("run does not return")
)

// Causes of the end of a run's context, beside the loss of its claim (framework.ErrSessionLost,
// framework.ErrNodeGone), and outcomes.
var (
	// ErrPanic is the outcome of a run that panicked.
	ErrPanic = errors.New("job panicked")
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
