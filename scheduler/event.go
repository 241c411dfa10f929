package scheduler

import (
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/usercode"
)

// EventKind says what has happened.
type EventKind string

// The kinds of events.
const (
	// EventLeading: this member leads now. Run.Token is its term's.
	EventLeading EventKind = "leading"
	// EventFollowing: this member does not lead any more.
	EventFollowing EventKind = "following"
	// EventStarted: a run begins. Run is set.
	EventStarted EventKind = "started"
	// EventRetrying: an attempt has failed, and there is another after a pause. Run and Err are
	// set.
	EventRetrying EventKind = "retrying"
	// EventFinished: a run has ended. Run is set, and Err if it failed.
	EventFinished EventKind = "finished"
	// EventStuck: a run has not returned although its context has ended. Run is set, and Err is the
	// cause of the end.
	EventStuck EventKind = "stuck"
	// EventMissed: ticks were recorded as missed. Gap is set. The member that records them reports
	// the event: the job's owner, or the member of a Resume, a Reschedule or a start with another
	// schedule.
	EventMissed EventKind = "missed"
	// EventAhead: this machine's clock says that a tick is due, but it lies more than MaxAhead
	// ahead of the ensemble's clock. Run.Tick is when it is due; it is run once the ensemble's
	// clock is near. Err tells how far the clocks differ, and which of them was set.
	EventAhead EventKind = "ahead"
	// EventBehind: the ensemble's clock says that a tick was due more than MaxAhead ago, but this
	// machine's does not. Run.Tick is when it is due. It is run when the ensemble has said so for a
	// minute; ticks after it are run MaxAhead late. Err is as for EventAhead. It is reported again
	// when the clocks have agreed for two minutes.
	EventBehind EventKind = "behind"
	// EventFailed: a job could not be registered or scheduled, because a request failed. This
	// member tries again. Job and Err are set.
	EventFailed EventKind = "failed"
	// EventRemoved: a job was removed, or its node was deleted. This member does not run the job
	// any more, until it is added again.
	EventRemoved EventKind = "removed"
)

// Event is something that has happened in this member.
type Event struct {
	Kind EventKind
	// Job is the job's name, if it is about a job.
	Job string
	// Member is the identity of another member, if it is about one.
	Member string
	// At is this machine's time.
	At  time.Time
	Run Run
	Gap Gap
	Err error
}

// reporter passes what happens in this member to WithOnEvent, the log and the metrics.
type reporter struct {
	path    string
	log     *slog.Logger
	tel     telemetry
	now     func() time.Time
	onEvent func(Event) // or nil
}

// passEvent calls the function of WithOnEvent, if there is one, with an event.
func (r *reporter) passEvent(e Event) {
	if r.onEvent == nil {
		return
	}
	e.At = r.now()
	_ = usercode.Call(r.log, errPanic, "the function of WithOnEvent", []any{"path", r.path}, // the log has it
		func() error { r.onEvent(e); return nil })
}

// reportMissed reports ticks that were recorded as missed.
func (r *reporter) reportMissed(job string, gaps []Gap) {
	for _, g := range gaps {
		r.tel.countMissed(job, g)
		r.passEvent(Event{Kind: EventMissed, Job: job, Gap: g})
	}
}

// warn logs a warning that concerns the scheduler's path.
func (r *reporter) warn(text string, args ...any) {
	r.log.Warn(text, append([]any{"path", r.path}, args...)...)
}

// reportFailure logs a failure that is tried again, and passes it to WithOnEvent.
func (r *reporter) reportFailure(text, job string, err error) {
	r.warn(text, "job", job, "error", err)
	r.passEvent(Event{Kind: EventFailed, Job: job, Err: err})
}
