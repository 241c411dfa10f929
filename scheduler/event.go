package scheduler

import (
	"log/slog"
	"time"
)

// EventKind is what has happened.
type EventKind string

// The kinds of events.
const (
	// EventLeading: this member leads now. Run.Token is its term's.
	EventLeading EventKind = "leading"
	// EventFollowing: it does so no more.
	EventFollowing EventKind = "following"
	// EventStarted: a run begins. Run is set.
	EventStarted EventKind = "started"
	// EventRetrying: an attempt has failed, and there is another after a pause. Run and Err are set.
	EventRetrying EventKind = "retrying"
	// EventFinished: a run has ended. Run is set, and Err if it failed.
	EventFinished EventKind = "finished"
	// EventStuck: a run has not returned in spite of its context's end. Run is set, and Err is why that ended.
	EventStuck EventKind = "stuck"
	// EventMissed: ticks were recorded as missed. Gap is set. The scheduler that records them tells: the one that the job
	// belongs to, or the one that has passed them by with Resume, Reschedule or a start with another schedule.
	EventMissed EventKind = "missed"
	// EventHeld: this machine's clock says that a tick is due, but it lies more than MaxAhead ahead of the
	// ensemble's clock. Run.Tick is when it is due; it is run once the ensemble's clock is near. Err tells how far
	// the clocks differ, and which of them was set.
	EventHeld EventKind = "held"
	// EventBehind: the ensemble's clock says that a tick was due more than MaxAhead ago, but this machine's does not.
	// Run.Tick is when it is due. It is run when the ensemble has said so for a minute; ticks after it are run
	// MaxAhead late. Err is as of EventHeld. It is told again when the clocks have agreed for two minutes.
	EventBehind EventKind = "behind"
	// EventFailed: a job could not be scheduled, and is tried again. Err is set.
	EventFailed EventKind = "failed"
	// EventRemoved: a job's state is gone. This member runs the job no more, until it is added again.
	EventRemoved EventKind = "removed"
)

// Event tells of something that has happened in this member.
type Event struct {
	Kind EventKind
	// Job is the job's name, if it is about a job.
	Job string
	// At is this machine's time.
	At  time.Time
	Run Run
	Gap Gap
	Err error
}

// reporter tells the observer, the log and the metrics what happens in this member.
type reporter struct {
	path    string
	log     *slog.Logger
	tel     telemetry
	now     func() time.Time
	observe func(Event) // or nil
}

// event passes an event on.
func (r *reporter) event(e Event) {
	if r.observe != nil {
		e.At = r.now()
		r.observe(e)
	}
}

// missed reports ticks that were recorded as missed.
func (r *reporter) missed(job string, gaps []Gap) {
	for _, g := range gaps {
		r.tel.missed(job, g)
		r.event(Event{Kind: EventMissed, Job: job, Gap: g})
	}
}

// warn logs a warning that concerns the scheduler's path.
func (r *reporter) warn(text string, args ...any) {
	r.log.Warn(text, append([]any{"path", r.path}, args...)...)
}

// failed logs that something about a job failed and is tried again, and tells the observer.
func (r *reporter) failed(text, job string, err error) {
	r.warn(text, "job", job, "error", err)
	r.event(Event{Kind: EventFailed, Job: job, Err: err})
}
