package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// memory is what the page remembers of former scans. It is bounded.
type memory struct {
	since   time.Time // the first scan
	changes []change  // the latest last
	depths  map[string][]depth
	terms   map[string][]term  // of elections, the latest last
	asked   map[string]string  // whom an action of this page has asked to lead, by election
	takers  map[string][]taker // executors of runs that have not ended, by path and id, the latest last
}

const (
	maxChanges = 300
	maxDepths  = 240
	maxTerms   = 50
	maxTakers  = 20
	maxPaths   = 2000 // queues and elections that are remembered, each
	depthPause = 15 * time.Second
)

// change is something that was different at a scan than at the scan before.
type change struct {
	At   time.Time
	Mark severity
	Page string
	Path string
	Text string
}

// depth is how many items a queue had, and since when the oldest had been there.
type depth struct {
	At     time.Time
	Items  int
	Oldest time.Duration
}

// term is a leader that scans have seen.
type term struct {
	Leader      string
	Node        string
	From, Until time.Time // Until is zero while it leads
	Seen        time.Time // the latest scan that has seen it
	Session     framework.SessionID
	Why         string // it ended, as far as scans can tell
}

// taker is a member that has executed a run.
type taker struct {
	workflow.Taken
	Until time.Time // zero while it has it
	Why   string    // it has it no more
}

func newMemory() memory {
	return memory{depths: map[string][]depth{}, terms: map[string][]term{}, asked: map[string]string{},
		takers: map[string][]taker{}}
}

// add remembers the differences between two snapshots. at is when the later one was made.
func (m *memory) add(former, s *snapshot, at time.Time) {
	first := former.at.IsZero()
	if first {
		m.since = at
	}
	m.addDepths(s, at)
	m.explainEnds(s)
	m.addTerms(s, at, first)
	m.addTakers(s, at)
	if !first {
		m.addFindings(former, s, at)
		m.addRuns(former, s, at)
	}
	if n := len(m.changes) - maxChanges; n > 0 {
		m.changes = append([]change(nil), m.changes[n:]...)
	}
}

func (m *memory) addDepths(s *snapshot, at time.Time) {
	present := map[string]bool{}
	for _, q := range s.Queues {
		if q.Missing {
			continue
		}
		present[q.Path] = true
		known := m.depths[q.Path]
		if len(known) == 0 && len(m.depths) >= maxPaths {
			continue
		}
		now := depth{At: at, Items: q.Items + q.Delayed}
		if !q.Oldest.IsZero() {
			now.Oldest = max(0, at.Sub(q.Oldest))
		}
		if n := len(known); n > 0 && at.Sub(known[n-1].At) < depthPause {
			continue
		}
		if known = append(known, now); len(known) > maxDepths {
			known = append([]depth(nil), known[len(known)-maxDepths:]...)
		}
		m.depths[q.Path] = known
	}
	for path := range m.depths {
		if !present[path] {
			delete(m.depths, path)
		}
	}
}

func (m *memory) addTerms(s *snapshot, at time.Time, first bool) {
	present := map[string]bool{}
	for _, r := range s.locks {
		if r.Kind != locks.ElectionLock {
			continue
		}
		present[r.Path] = true
		known := m.terms[r.Path]
		if len(known) == 0 && len(m.terms) >= maxPaths {
			continue
		}
		n := len(known)
		leads := n > 0 && known[n-1].Until.IsZero()
		var leader locks.Entry
		if len(r.Holders) > 0 {
			leader = r.Holders[0]
		}
		switch {
		case leads && known[n-1].Node == leader.Node:
			known[n-1].Seen = at
			continue
		case leads:
			known[n-1].Until = at
			if asked := m.asked[r.Path]; asked != "" && asked == leader.Owner {
				known[n-1].Why = "it handed over, as was asked on this page"
			}
			delete(m.asked, r.Path)
			if leader.Node == "" {
				m.note(at, warn, "election", r.Path, fmt.Sprintf("%s leads no more; nobody leads", known[n-1].Leader))
			}
		}
		if leader.Node == "" {
			m.terms[r.Path] = known
			continue
		}
		from := at
		if first || n == 0 {
			from = leader.Since
		}
		if n > 0 || !first {
			m.note(at, busy, "election", r.Path, leader.Owner+" leads")
		}
		known = append(known, term{Leader: leader.Owner, Node: leader.Node, From: from, Seen: at,
			Session: leader.Session})
		if len(known) > maxTerms {
			known = append([]term(nil), known[len(known)-maxTerms:]...)
		}
		m.terms[r.Path] = known
	}
	if slices.ContainsFunc(s.Findings, func(f monitor.Finding) bool {
		return f.Problem == monitor.ProblemUnread || f.Problem == monitor.ProblemLeftOut
	}) {
		return // an election that the scan has not seen may have a leader
	}
	for path, known := range m.terms { // an election without candidates looks like nothing
		if present[path] || len(known) == 0 {
			continue
		}
		if last := &known[len(known)-1]; last.Until.IsZero() {
			last.Until = at
			m.note(at, warn, "election", path, fmt.Sprintf("%s leads no more; nobody leads", last.Leader))
		}
	}
}

// explainEnds says why terms and executions have ended, by a scan that began later. The servers do
// not store that: what is gone has crashed, has ended, or was cut off until its session expired.
func (m *memory) explainEnds(s *snapshot) {
	for _, known := range m.terms {
		for i := range known {
			if t := &known[i]; t.Why == "" && !t.Until.IsZero() && s.at.After(t.Until) {
				t.Why = "it is gone: its session has nothing here any more"
				if len(s.holdings()[t.Session]) > 0 {
					t.Why = "it resigned or handed over: its session goes on"
				}
			}
		}
	}
	for _, known := range m.takers {
		for i := range known {
			if t := &known[i]; t.Why == "" && !t.Until.IsZero() && s.at.After(t.Until) {
				t.Why = "lost: its session has nothing here any more"
				if len(s.holdings()[t.Session]) > 0 {
					t.Why = "it gave the run back"
				}
			}
		}
	}
}

// addTakers remembers who has executed runs that have not ended.
func (m *memory) addTakers(s *snapshot, at time.Time) {
	present := map[string]bool{}
	for _, r := range s.Runs {
		if r.State.IsFinished() || r.TakenErr != nil {
			continue
		}
		run := r.Path + "\x00" + r.ID
		present[run] = true
		known := m.takers[run]
		if n := len(known); n > 0 && known[n-1].Until.IsZero() {
			last := &known[n-1]
			if r.Taken != nil && r.Taken.Session == last.Session {
				continue
			}
			if r.State != workflow.Active {
				last.Why = "the run waited"
			}
			last.Until = at
		}
		if r.Taken == nil || len(known) == 0 && len(m.takers) >= maxPaths {
			continue
		}
		if known = append(known, taker{Taken: *r.Taken}); len(known) > maxTakers {
			known = append([]taker(nil), known[len(known)-maxTakers:]...)
		}
		m.takers[run] = known
	}
	for run := range m.takers {
		if !present[run] {
			delete(m.takers, run)
		}
	}
}

func (m *memory) addFindings(former, s *snapshot, at time.Time) {
	type key struct{ problem, path string }
	before, after := map[key]finding{}, map[key]finding{}
	for _, f := range allFindings(former.findings) {
		before[key{string(f.Problem), f.Path}] = f
	}
	for _, f := range allFindings(s.findings) {
		k := key{string(f.Problem), f.Path}
		after[k] = f
		if _, known := before[k]; !known {
			m.note(at, f.Severity, f.Page, f.Path, string(f.Problem))
		}
	}
	for k, f := range before {
		if _, open := after[k]; !open {
			m.note(at, good, f.Page, f.Path, "ended: "+string(f.Problem))
		}
	}
}

// addRuns remembers runs that have failed, and the first one after them that has not.
func (m *memory) addRuns(former, s *snapshot, at time.Time) {
	before := map[string]scheduler.RunRecord{}
	for _, j := range former.Jobs {
		if j.LastRun != nil {
			before[j.JobPath()] = *j.LastRun
		}
	}
	for _, j := range s.Jobs {
		if j.LastRun == nil {
			continue
		}
		last, known := before[j.JobPath()]
		if last.Number == j.LastRun.Number || known && !last.Outcome.IsFailure() && !j.LastRun.Outcome.IsFailure() {
			continue
		}
		mark := good
		if j.LastRun.Outcome.IsFailure() {
			mark = warn
		}
		m.note(at, mark, "job", j.JobPath(), outcomeText(*j.LastRun))
	}
}

func outcomeText(r scheduler.RunRecord) string {
	if r.Outcome == scheduler.Running {
		return "runs"
	}
	text := string(r.Outcome)
	if !r.Ended.IsZero() && !r.Started.IsZero() {
		text += " after " + age(r.Ended.Sub(r.Started))
	}
	return text
}

func (m *memory) note(at time.Time, mark severity, page, path, text string) {
	m.changes = append(m.changes, change{at, mark, page, path, text})
}
