package monitor

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
)

// Problem is the kind of a finding.
type Problem string

// The problems of locks, elections and claims.
const (
	// ProblemWaiters: more wait for a lock than WithWaiters allows. The candidates of an election and the consumers of a strict queue do not count.
	ProblemWaiters Problem = "many waiters"
	// ProblemHold: a lock was held without a break for longer than WithLongHold, and others wait for it. Terms of an election do not count. The
	// time is counted from the first look of this leader that has seen the holder.
	ProblemHold Problem = "long hold"
	// ProblemSilent: a holder that was asked to let go (locks.Revoke) still holds.
	ProblemSilent Problem = "silent holder"
	// ProblemOrphan: a node in a lock's line belongs to no session, so no process stands behind it, and it does not go by itself.
	ProblemOrphan Problem = "orphan"
	// ProblemMixed: a directory has contenders of several kinds, which do not see each other.
	ProblemMixed Problem = "mixed kinds"
	// ProblemSession: the paths of a session's nodes in locks, elections and claims have more bytes together than WithSessionBytes allows.
	ProblemSession Problem = "large session"
)

// The problems of jobs are those of scheduler.Problem. These are the ones of queues.
const (
	// ProblemGrowing: a queue has grown at each of so many looks in a row; see WithGrowth.
	ProblemGrowing Problem = "growing queue"
	// ProblemOldItem: an item at the head of a queue is older than WithOldItem allows.
	ProblemOldItem Problem = "old item"
	// ProblemDeadLetters: a queue has more dead letters than WithDeadLetters allows.
	ProblemDeadLetters Problem = "dead letters"
)

// The problems of looks.
const (
	// ProblemUnread: a path cannot be read, for example because these credentials may not.
	ProblemUnread Problem = "unread"
	// ProblemLeftOut: there is more below the root than a look reads.
	ProblemLeftOut Problem = "left out"
)

// area is what a problem is found in. What is not read of an area neither begins nor ends.
type area int

const (
	areaLooks area = iota
	areaLocks
	areaJobs
	areaQueues
)

func areaOf(p Problem) area {
	switch p {
	case ProblemWaiters, ProblemHold, ProblemSilent, ProblemOrphan, ProblemMixed, ProblemSession:
		return areaLocks
	case ProblemGrowing, ProblemOldItem, ProblemDeadLetters:
		return areaQueues
	case ProblemUnread, ProblemLeftOut:
		return areaLooks
	}
	return areaJobs
}

// Problems returns all problems that a monitor can find, in the order of reports.
func Problems() []Problem { return slices.Clone(problems) }

// problems are all of them, in the order of reports.
var problems = []Problem{
	ProblemWaiters, ProblemHold, ProblemSilent, ProblemOrphan, ProblemMixed, ProblemSession,
	Problem(scheduler.ProblemNoMember), Problem(scheduler.ProblemOverdue), Problem(scheduler.ProblemStuck), Problem(scheduler.ProblemFailed),
	Problem(scheduler.ProblemMissed), Problem(scheduler.ProblemSchedule), ProblemGrowing, ProblemOldItem, ProblemDeadLetters, ProblemUnread, ProblemLeftOut,
}

// Finding is one thing that is wrong. Path and Text may hold what other programs have written: escape them before they reach a terminal.
type Finding struct {
	Problem Problem `json:"problem"`
	// Path is that of the lock, the queue, the job's node, or what cannot be read. Of ProblemSession it is the session's number.
	Path string `json:"path"`
	// Node is the node of the holder or contender that the finding is about, or "".
	Node string `json:"node,omitempty"`
	// Since is when it began as far as that is known, else the zero time.
	Since time.Time `json:"since,omitzero"`
	// Text says it in words, without the path.
	Text string `json:"text"`
}

// EventKind is what an event tells.
type EventKind string

// The kinds.
const (
	Begins EventKind = "begins"
	Ends   EventKind = "ends"
)

// Event is the begin or the end of a finding.
type Event struct {
	Kind EventKind
	// ID is the same for the begin and the end, and when an event is told again.
	ID string
	// Finding is what it was at its begin.
	Finding
	// Began is the time of the first look that has seen it, by the ensemble's clock.
	Began time.Time
	// Ended is the time of the first look that has not seen it any more, or the zero time at its begin.
	Ended time.Time
}

// Lasted is how long the finding lasted, or 0 at its begin.
func (e Event) Lasted() time.Duration {
	if e.Kind != Ends {
		return 0
	}
	return max(0, e.Ended.Sub(e.Began))
}

// MarshalJSON returns the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	type flat struct {
		Event EventKind `json:"event"`
		ID    string    `json:"id"`
		Finding
		Began  time.Time `json:"began"`
		Ended  time.Time `json:"ended,omitzero"`
		Lasted float64   `json:"lasted_seconds,omitzero"`
	}
	return json.Marshal(flat{e.Kind, e.ID, e.Finding, e.Began, e.Ended, e.Lasted().Seconds()})
}
