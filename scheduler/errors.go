package scheduler

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrInvalidSpec is returned when a cron expression cannot be read, has no tick, or means something
	// else than it seems to.
	ErrInvalidSpec = errors.New("invalid schedule")
	// ErrInvalidJob is returned when a job cannot be scheduled.
	ErrInvalidJob = errors.New("invalid job")
	// ErrInvalidOption is returned when an option's value cannot be used.
	ErrInvalidOption = errors.New("invalid option")
	// ErrDuplicateJob is returned when a job of that name was added before.
	ErrDuplicateJob = errors.New("duplicate job")
	// ErrNoJobs is returned when a scheduler without jobs is run, unless WithWaitForJobs is given.
	ErrNoJobs = errors.New("no jobs")
	// ErrRunning is returned when a scheduler that runs is run again.
	ErrRunning = errors.New("scheduler is running")
	// ErrUnknownJob is returned when no state is stored for a job.
	ErrUnknownJob = errors.New("unknown job")
	// ErrTooManyPending is returned when a job is triggered while 10 of its runs wait already.
	ErrTooManyPending = errors.New("too many runs wait")
	// ErrBadState is returned when a stored record cannot be read.
	ErrBadState = recipe.ErrCorrupt
	// ErrNewerState is returned when a newer release has written a record that this one cannot read.
	ErrNewerState = recipe.ErrNewer
	// ErrStuck is returned when runs have not returned in spite of their contexts' end.
	ErrStuck = errors.New("run does not return")
)

// Causes of the end of a run's context, beside the loss of its claim (framework.ErrSessionLost,
// framework.ErrNodeGone), and outcomes.
var (
	// ErrPanic is the outcome of a run that panicked.
	ErrPanic = errors.New("job panicked")
	// ErrTimeout is the cause when an attempt took longer than the job's Timeout.
	ErrTimeout = errors.New("run timed out")
	// ErrReplaced is the cause when the next run is due and the job's overlap policy is to replace.
	ErrReplaced = errors.New("run replaced by the next")
	// ErrRemoved is the cause when the job was removed.
	ErrRemoved = errors.New("job removed")
	// ErrDrained is the cause when the scheduler was stopped and the run had not finished in time. A function that was told
	// to end in another way returns an error that wraps it: the run is recorded as stopped, not as failed.
	ErrDrained = errors.New("scheduler stopped")
)
