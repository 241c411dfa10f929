package scheduler

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalidSpec is returned when a cron expression cannot be read, never fires, or means something
	// else than it seems to.
	ErrInvalidSpec = errors.New("invalid schedule")
	// ErrInvalidJob is returned when a job cannot be scheduled.
	ErrInvalidJob = errors.New("invalid job")
	// ErrDuplicateJob is returned when a job of that name was added before.
	ErrDuplicateJob = errors.New("duplicate job")
	// ErrNoJobs is returned when a scheduler without jobs is run: leading, it would keep others from
	// theirs.
	ErrNoJobs = errors.New("no jobs")
	// ErrRunning is returned when a scheduler that runs is run again or given another job.
	ErrRunning = errors.New("scheduler is running")
	// ErrUnknownJob is returned when no state is stored for a job.
	ErrUnknownJob = errors.New("unknown job")
	// ErrSpecMismatch is returned when a job's stored state is of another spec or zone: the members of the
	// cluster would not agree on its ticks.
	ErrSpecMismatch = errors.New("schedule differs from the stored one")
	// ErrBadState is returned when a job's stored state cannot be read.
	ErrBadState = errors.New("unreadable state")
	// ErrNewerState is returned when a job's state was stored by a later release that this one cannot read.
	ErrNewerState = errors.New("state of a later release")
	// ErrPanic is the outcome of a run that panicked.
	ErrPanic = errors.New("job panicked")
	// ErrDrained is the cause of the end of a run's context when the scheduler was stopped and the run had
	// not finished in time.
	ErrDrained = errors.New("scheduler stopped")
)

// SpecMismatchError tells both schedules. It wraps ErrSpecMismatch.
type SpecMismatchError struct {
	// Job is its name.
	Job string
	// Stored and Given are the two schedules: the spec and its zone.
	Stored, Given string
}

func (e *SpecMismatchError) Error() string {
	return fmt.Sprintf("job %q: %v: stored %s, given %s; to change it, stop every member and delete the stored state, or use another name",
		e.Job, ErrSpecMismatch, e.Stored, e.Given)
}

// Unwrap returns ErrSpecMismatch.
func (e *SpecMismatchError) Unwrap() error { return ErrSpecMismatch }
