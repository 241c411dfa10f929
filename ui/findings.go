package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/scheduler"
)

// severity is how urgent something is; it is also the class of its mark.
type severity string

// The severities, and the other states that marks show.
const (
	bad  severity = "bad"  // stands still until somebody acts
	warn severity = "warn" // still works, or repairs itself
	good severity = "good"
	busy severity = "busy"
	wait severity = "wait"
	off  severity = "off"
)

// finding is a problem with what to do about it.
type finding struct {
	monitor.Finding
	Severity severity
	Page     string    // the page about it, such as "lock"
	Advice   string    // what to do
	Command  string    // the command that shows more
	Because  []finding // its consequences
}

// advice is what an operator does about a problem.
type advice struct {
	severity severity
	page     string // about the path
	command  string // that shows more; the path is appended
	text     string
}

var adviceOn = map[monitor.Problem]advice{
	monitor.ProblemWaiters: {warn, "lock", "lockstep locks", "See who holds it and what that process does."},
	monitor.ProblemHold: {warn, "lock", "lockstep locks",
		"See what the holder does. Ask it to let go if it should not hold any more."},
	monitor.ProblemSilent: {bad, "lock", "lockstep release",
		"The holder does not listen. End its process, or take the lock away."},
	monitor.ProblemOrphan: {bad, "lock", "lockstep locks",
		"No session owns this node, so it stays. Delete it if nobody knows it."},
	monitor.ProblemMixed: {bad, "lock", "lockstep locks",
		"Two programs use this path differently. Give one of them another path."},
	monitor.ProblemDeadlock: {bad, "lock", "lockstep revoke", "Ask one of the holders to let go, or end its process. " +
		"Then let all programs take these locks in one order."},
	monitor.ProblemSession:  {warn, "", "", "One process holds very much at once. Let it hold less."},
	monitor.ProblemGrowing:  {warn, "queue", "lockstep queue inflight", adviceConsumers},
	monitor.ProblemOldItem:  {warn, "queue", "lockstep queue inflight", adviceConsumers},
	monitor.ProblemHeldItem: {warn, "queue", "lockstep queue inflight", adviceConsumers},
	monitor.ProblemUnread:   {warn, "", "lockstep check", "Give the page's credentials the right to read it."},
	monitor.ProblemLeftOut:  {warn, "", "lockstep check", "Look at a smaller part: give the page a deeper root."},
	monitor.ProblemFailingItem: {warn, "queue", "lockstep queue ls",
		"Read the item's error. Mend the consumer, or drop the item."},
	monitor.ProblemDeadLetters: {warn, "queue", "lockstep queue dead",
		"Read the errors, then put the items back or delete them."},
	monitor.ProblemFailedRuns: {warn, "workflows", "lockstep workflows",
		"Read the run's error and mend the cause. Then retry the run, or remove it."},
	monitor.ProblemUntakenRun: {bad, "workflows", "lockstep workflows",
		"Start a member that executes this kind, or more of them."},
	monitor.Problem(scheduler.ProblemNoMember): {bad, "job", "", "Start a member that has the job, or remove the job."},
	monitor.Problem(scheduler.ProblemOverdue):  {bad, "job", "", "See whether the member that should run it is alive."},
	monitor.Problem(scheduler.ProblemStuck): {bad, "job", "",
		"The run does not end although its time is over. End its process."},
	monitor.Problem(scheduler.ProblemFailed): {warn, "job", "", "Read the error of the latest run."},
	monitor.Problem(scheduler.ProblemMissed): {warn, "job", "", "See the reason of the gap."},
	monitor.Problem(scheduler.ProblemSchedule): {bad, "job", "",
		"The stored schedule cannot be read. Register the job again."},
}

const adviceConsumers = "See whether consumers work, and what they have in hand."

// judge adds to each finding how urgent it is and what to do, and puts consequences below their
// cause. What began first comes first, since it is likely to be the cause.
func judge(r monitor.Report) []finding {
	var all []finding
	for _, f := range r.Findings {
		a, known := adviceOn[f.Problem]
		if !known {
			a = advice{severity: warn}
		}
		one := finding{Finding: f, Severity: a.severity, Page: a.page, Advice: a.text, Command: a.command}
		if a.command != "" && strings.HasPrefix(f.Path, "/") {
			one.Command = a.command + " " + shellWord(f.Path)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		if a.Severity != b.Severity {
			return strings.Compare(string(a.Severity), string(b.Severity)) // bad before warn
		}
		return compareSince(a.Since, b.Since)
	})
	return groupByCause(r, all)
}

// compareSince orders times; an unknown time comes last.
func compareSince(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// groupByCause puts what follows from a lock that stands still below that finding: other findings
// at the same lock, those about locks whose holders wait for it, and those about queues whose
// consumers do.
func groupByCause(r monitor.Report, all []finding) []finding {
	waiters := map[framework.SessionID][]string{} // the locks that a session waits for
	for _, l := range r.Locks {
		if l.Kind == locks.ElectionLock {
			continue
		}
		for _, e := range l.Waiters {
			waiters[e.Session] = append(waiters[e.Session], l.Path)
		}
	}
	blocked := map[string]int{} // the index of the cause of a lock that stands still
	for i, f := range all {
		if f.Severity == bad && f.Page == "lock" {
			blocked[f.Path] = i
		}
	}
	holders := map[string][]framework.SessionID{}
	for _, l := range r.Locks {
		for _, e := range l.Holders {
			holders[l.Path] = append(holders[l.Path], e.Session)
		}
	}
	for _, q := range r.Queues {
		if q.Held.Session != 0 {
			holders[q.Path] = append(holders[q.Path], q.Held.Session)
		}
	}
	var top []finding
	causes := map[int]int{} // index in all → index in top
	var rest []finding
	for i, f := range all {
		if f.Severity == bad {
			causes[i] = len(top)
			top = append(top, f)
			continue
		}
		rest = append(rest, f)
	}
	for _, f := range rest {
		if cause, found := causeOf(f, blocked, waiters, holders); found {
			c := &top[causes[cause]]
			c.Because = append(c.Because, f)
			continue
		}
		top = append(top, f)
	}
	return top
}

// waits are the problems of waiters.
var waits = map[monitor.Problem]bool{monitor.ProblemWaiters: true, monitor.ProblemHold: true,
	monitor.ProblemGrowing: true, monitor.ProblemOldItem: true, monitor.ProblemHeldItem: true}

// causeOf returns the index of the finding that f follows from.
func causeOf(f finding, blocked map[string]int, waiters map[framework.SessionID][]string,
	holders map[string][]framework.SessionID) (int, bool) {
	if cause, same := blocked[f.Path]; same {
		return cause, true
	}
	if !waits[f.Problem] {
		return 0, false
	}
	for _, session := range holders[f.Path] {
		for _, path := range waiters[session] {
			if cause, stands := blocked[path]; stands {
				return cause, true
			}
		}
	}
	return 0, false
}

// worst is the severity of the worst of these findings, or "".
func worst(found []finding) severity {
	var w severity
	for _, f := range found {
		if f.Severity == bad {
			return bad
		}
		w = f.Severity
	}
	return w
}

// allFindings are the findings and their consequences.
func allFindings(top []finding) (all []finding) {
	for _, f := range top {
		all = append(all, f)
		all = append(all, f.Because...)
	}
	return all
}
