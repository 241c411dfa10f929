package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/scheduler"
)

// memory is what the page remembers of former scans. It is bounded.
type memory struct {
	since   time.Time // the first scan
	changes []change  // the latest last
	depths  map[string][]depth
	terms   map[string][]term // of elections, the latest last
}

const (
	maxChanges = 300
	maxDepths  = 240
	maxTerms   = 50
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

// depth is how many items a queue had.
type depth struct {
	At    time.Time
	Items int
}

// term is a leader that scans have seen.
type term struct {
	Leader      string
	Node        string
	From, Until time.Time // Until is zero while it leads
	Seen        time.Time // the latest scan that has seen it
}

func newMemory() memory { return memory{depths: map[string][]depth{}, terms: map[string][]term{}} }

// add remembers the differences between two snapshots. at is when the later one was made.
func (m *memory) add(former, s *snapshot, at time.Time) {
	first := former.at.IsZero()
	if first {
		m.since = at
	}
	m.addDepths(s, at)
	m.addTerms(s, at, first)
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
		now := depth{at, q.Items + q.Delayed}
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
		known = append(known, term{Leader: leader.Owner, Node: leader.Node, From: from, Seen: at})
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

func (m *memory) addRuns(former, s *snapshot, at time.Time) {
	before := map[string]int64{}
	for _, j := range former.Jobs {
		if j.LastRun != nil {
			before[j.JobPath()] = j.LastRun.Number
		}
	}
	for _, j := range s.Jobs {
		if j.LastRun == nil || before[j.JobPath()] == j.LastRun.Number {
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
