package monitor

import (
	"encoding/json"
	"time"

	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/scheduler"
)

// Problem is the kind of a finding.
type Problem string

// The problems of locks, elections and claims.
const (
	// ProblemWaiters: more contenders wait for a lock than WithWaiters allows. The candidates of an
	// election and the consumers of a strict queue do not count.
	ProblemWaiters Problem = "many waiters"
	// ProblemHold: one holder has held a lock for longer than WithLongHold allows, and others wait
	// for it. Terms of an election do not count. A hold counts from the first scan of this leader
	// that saw the holder, or from the Since of a finding that a former leader has recorded.
	ProblemHold Problem = "long hold"
	// ProblemSilent: an operator has asked a holder to release the lock (locks.Revoke), and it
	// still holds, for longer than WithSilentHolder allows.
	ProblemSilent Problem = "silent holder"
	// ProblemOrphan: a node in a lock's line belongs to no session, so the servers will not delete
	// it.
	ProblemOrphan Problem = "orphan"
	// ProblemMixed: a directory has contenders of several kinds, which do not see each other.
	ProblemMixed Problem = "mixed kinds"
	// ProblemDeadlock: holders of locks wait for each other, and none of them gives up, since they
	// only report the deadlock; see locks.WithDeadlockMode. Other deadlocks end by themselves.
	ProblemDeadlock Problem = "deadlock"
	// ProblemSession: the paths of a session's nodes in locks, elections and claims have more bytes
	// together than WithSessionBytes allows.
	ProblemSession Problem = "large session"
)

// The problems of queues. Those of jobs are the values of scheduler.Problem.
const (
	// ProblemGrowing: each of several scans in a row has found more items in a queue than the scan
	// before; see WithGrowth.
	ProblemGrowing Problem = "growing queue"
	// ProblemOldItem: an item at the head of a queue is older than WithOldItem allows.
	ProblemOldItem Problem = "old item"
	// ProblemFailingItem: an item of a queue has come back as often as WithFailingItem says: its
	// attempts fail, or its consumers die. A scan reads some of the items that have come back; see
	// queue.Retried.
	ProblemFailingItem Problem = "failing item"
	// ProblemHeldItem: a consumer of a parallel queue has had an item for longer than WithHeldItem
	// allows.
	ProblemHeldItem Problem = "held item"
	// ProblemDeadLetters: a queue has more dead letters than WithDeadLetters allows.
	ProblemDeadLetters Problem = "dead letters"
)

// The problems of workflows: a scan has one finding of each for all runs at a path.
const (
	// ProblemFailedRuns: more runs have failed than WithFailedRuns allows. A run that another run
	// has started does not count: its parent learns of the failure, and decides. The finding ends
	// when the runs are retried or removed.
	ProblemFailedRuns Problem = "failed runs"
	// ProblemUntakenRun: a run could go on, and no member has taken it, and its record is as old as
	// WithUntakenRun says: no member that lives executes its kind, all are busy, or its item was
	// deleted.
	ProblemUntakenRun Problem = "untaken run"
)

// The problems of scans.
const (
	// ProblemUnread: a scan could not read a path: the monitor's credentials do not permit it, this
	// release cannot read the data, or the directory has too many children.
	ProblemUnread Problem = "unread"
	// ProblemLeftOut: there are more nodes below the root than a scan reads.
	ProblemLeftOut Problem = "left out"
)

// areaOf returns the part of the survey in which a problem is found, or 0 for the problems of
// scans. If a scan could not read a path of that part, the findings at and below that path stay as
// they were.
func areaOf(p Problem) survey.Part {
	switch p {
	case ProblemWaiters, ProblemHold, ProblemSilent, ProblemOrphan, ProblemMixed, ProblemDeadlock, ProblemSession:
		return survey.Locks
	case ProblemGrowing, ProblemOldItem, ProblemFailingItem, ProblemHeldItem, ProblemDeadLetters:
		return survey.Queues
	case ProblemFailedRuns, ProblemUntakenRun:
		return survey.Runs
	case ProblemUnread, ProblemLeftOut:
		return 0
	}
	return survey.Jobs
}

func init() {
	for _, p := range problems {
		moduleonly.MonitorProblems = append(moduleonly.MonitorProblems, string(p))
	}
}

// problems are all of them, in the order of reports.
var problems = []Problem{
	ProblemWaiters, ProblemHold, ProblemSilent, ProblemOrphan, ProblemMixed, ProblemDeadlock, ProblemSession,
	Problem(scheduler.ProblemNoMember), Problem(scheduler.ProblemOverdue), Problem(scheduler.ProblemStuck),
	Problem(scheduler.ProblemFailed),
	Problem(scheduler.ProblemMissed), Problem(scheduler.ProblemSchedule), ProblemGrowing, ProblemOldItem,
	ProblemFailingItem, ProblemHeldItem,
	ProblemDeadLetters, ProblemFailedRuns, ProblemUntakenRun, ProblemUnread, ProblemLeftOut,
}

// Finding is a problem at one path. Path and Text may hold what other programs have written: escape
// them before they reach a terminal.
type Finding struct {
	Problem Problem `json:"problem"`
	// Path is the path of the lock (for ProblemDeadlock, of the one for which that request waits)
	// or the queue, the JobPath of a job (scheduler.Report), the path of Workflows, or the path
	// that could not be read. For ProblemSession it is the session's number.
	Path string `json:"path"`
	// Node is the node of the holder, the contender or the item that the finding is about, or "".
	// For runs it is the path of the Workflows and the id of the run that the text names.
	Node string `json:"node,omitempty"`
	// Since is when the problem began, as far as a scan can tell, or the zero time: for
	// ProblemWaiters when the first waiter joined, for ProblemSilent when the operator has asked,
	// for ProblemOrphan when the node was created, for ProblemOldItem when the item was put, for
	// ProblemHeldItem when the consumer has got the item, for ProblemDeadlock when the request has
	// begun that comes first in the text, by its own clock, for ProblemFailedRuns when the first of
	// the runs has failed, for ProblemUntakenRun when the record of the run that waits for the
	// longest time has changed.
	Since time.Time `json:"since,omitzero"`
	// Text describes the problem, without the path.
	Text string `json:"text"`
}

// EventKind says whether an event reports the begin or the end of a finding.
type EventKind string

// The kinds.
const (
	Begins EventKind = "begins"
	Ends   EventKind = "ends"
)

// Event is the begin or the end of a finding.
type Event struct {
	Kind EventKind
	// ID is the same for the begin and the end of a finding, and when an event is reported again.
	ID string
	// Finding is as it was at its begin.
	Finding
	// Began is the time of the first scan in the row that has seen the problem, by the ensemble's
	// clock.
	Began time.Time
	// Ended is the time of the first scan in the row that has not seen it any more, by the
	// ensemble's clock. It is the zero time in an event of Kind Begins.
	Ended time.Time
}

// Lasted is how long the finding lasted. It is 0 in an event of Kind Begins.
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
