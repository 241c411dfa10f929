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
	monitor.ProblemUnread:   {warn, "", "lockstep check", "Give the page the right to read it: it connected "},
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
// cause. What began first comes first, since it is likely to be the cause. credentials are those
// with which the page connected.
func judge(s *snapshot, credentials string) []finding {
	var all []finding
	for _, f := range s.Findings {
		a, known := adviceOn[f.Problem]
		if !known {
			a = advice{severity: warn}
		}
		one := finding{Finding: f, Severity: a.severity, Page: a.page, Advice: a.text, Command: a.command}
		if f.Problem == monitor.ProblemUnread {
			one.Advice += credentials + "."
		}
		if a.command != "" && strings.HasPrefix(f.Path, "/") {
			one.Command = a.command + " " + shellWord(f.Path)
		}
		if i := slices.IndexFunc(s.Jobs, func(r scheduler.Report) bool { return r.JobPath() == f.Path }); i >= 0 {
			one.Command = "lockstep runs " + shellWord(s.Jobs[i].Name) + " --scheduler " + shellWord(s.Jobs[i].Path)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		if a.Severity != b.Severity {
			return strings.Compare(string(a.Severity), string(b.Severity)) // bad before warn
		}
		return compareSince(a.Since, b.Since)
	})
	return groupByCause(s, all)
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

// groupByCause puts what follows from a lock that stands still, or that is held for long, below
// that finding: other findings at the same lock, those about locks whose holders wait for it, about
// queues whose consumers do, and about jobs whose runners do. A session is known to wait for a
// lock, not to need it for the work that is late.
func groupByCause(s *snapshot, all []finding) []finding {
	waitsFor := map[framework.SessionID][]string{} // locks
	sessions := map[string][]framework.SessionID{} // that what is at a path depends on
	for _, l := range s.Locks {
		if l.Kind != locks.ElectionLock {
			for _, e := range l.Waiters {
				waitsFor[e.Session] = append(waitsFor[e.Session], l.Path)
			}
		}
		for _, e := range l.Holders {
			sessions[l.Path] = append(sessions[l.Path], e.Session)
		}
	}
	for _, q := range s.Queues {
		if q.Held.Session != 0 {
			sessions[q.Path] = append(sessions[q.Path], q.Held.Session)
		}
	}
	lastRuns := map[string]*scheduler.RunRecord{}
	for _, j := range s.Jobs {
		path := j.JobPath()
		lastRuns[path] = j.LastRun
		for _, m := range j.Members {
			runs := j.Owner != nil && j.Owner.Session == m.Session || j.LastRun != nil && j.LastRun.Runner == m.ID ||
				slices.ContainsFunc(j.Running, func(run scheduler.RunRecord) bool { return run.Runner == m.ID })
			if runs {
				sessions[path] = append(sessions[path], m.Session)
			}
		}
	}
	blocked := map[string]int{} // the index of the cause of a lock that stands still
	for i, f := range all {
		_, known := blocked[f.Path]
		if f.Page == "lock" && (f.Severity == bad || f.Problem == monitor.ProblemHold && !known) { // bad comes first
			for _, path := range locksOf(s, f) {
				blocked[path] = i
			}
		}
	}
	causes := map[int]int{} // by consequence
	for i, f := range all {
		if cause, found := causeOf(i, f, blocked, waitsFor, sessions); found {
			last := lastRuns[f.Path]
			if f.Problem == monitor.Problem(scheduler.ProblemFailed) && last != nil && !last.Ended.IsZero() &&
				last.Ended.Before(all[cause].Since) {
				continue // it failed before
			}
			causes[i] = cause
		}
	}
	firstCause := func(i int) int {
		first := i
		for range all {
			cause, follows := causes[first]
			if !follows {
				return first
			}
			first = cause
		}
		return i // holders that wait for each other
	}
	var top []finding
	at := map[int]int{} // in top, by index in all
	for i, f := range all {
		if firstCause(i) == i {
			at[i] = len(top)
			top = append(top, f)
		}
	}
	for i, f := range all {
		if first := firstCause(i); first != i {
			c := &top[at[first]]
			c.Because = append(c.Because, f)
		}
	}
	return top
}

// locksOf are the paths that a finding is about: of a deadlock all of its locks.
func locksOf(s *snapshot, f finding) []string {
	if f.Problem == monitor.ProblemDeadlock {
		if chain, cycle := chainOf(s, s.locksAt[f.Path]); cycle >= 0 {
			var paths []string
			for _, c := range chain {
				paths = append(paths, c.holds)
			}
			return paths
		}
	}
	return []string{f.Path}
}

// waits are the problems of those that wait for a lock.
var waits = map[monitor.Problem]bool{monitor.ProblemWaiters: true, monitor.ProblemHold: true,
	monitor.ProblemGrowing: true, monitor.ProblemOldItem: true, monitor.ProblemHeldItem: true,
	monitor.Problem(scheduler.ProblemFailed): true, monitor.Problem(scheduler.ProblemStuck): true,
	monitor.Problem(scheduler.ProblemOverdue): true, monitor.Problem(scheduler.ProblemMissed): true}

// causeOf returns the index of the finding that f, the one with index i, follows from. Something
// that stands still by itself at a lock follows from nothing.
func causeOf(i int, f finding, blocked map[string]int, waitsFor map[framework.SessionID][]string,
	sessions map[string][]framework.SessionID) (int, bool) {
	if f.Severity == bad && f.Page == "lock" {
		return 0, false
	}
	if cause, same := blocked[f.Path]; same && cause != i {
		return cause, true
	}
	if !waits[f.Problem] {
		return 0, false
	}
	for _, session := range sessions[f.Path] {
		for _, path := range waitsFor[session] {
			if cause, stands := blocked[path]; stands && cause != i {
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
