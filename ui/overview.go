package ui

import (
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/workflow"
)

// glanceRows is how many rows of each kind the overview shows.
const glanceRows = 5

type overviewView struct {
	Stopped, AtRisk           []findingView
	Changes                   []changeView
	Watched                   time.Time
	Locks, Elections          []lockRow
	Jobs                      []jobRow
	Queues                    []queueRow
	NumLocks, NumElections    int
	NumJobs, NumQueues        int
	NumBarriers, NumRuns      int
	Held, Waiting, Led, Items int
	Runs                      []workflowRow
	Failed                    int // runs
	Unread                    []string
	Servers                   []serverRow
	Away                      int
}

// findingView is a finding with links.
type findingView struct {
	finding
	Link  link
	Links []link // of its consequences
}

type changeView struct {
	change
	Link link
}

func (u *UI) findingViewOf(f finding) findingView {
	v := findingView{finding: f, Link: linkTo(f.Page, f.Path, u.root)}
	for _, b := range f.Because {
		v.Links = append(v.Links, linkTo(b.Page, b.Path, u.root))
	}
	return v
}

func buildOverview(u *UI, _ request, s *snapshot) (built, error) {
	v := overviewView{NumJobs: len(s.Jobs), NumQueues: len(s.Queues), NumBarriers: len(s.barriers),
		NumRuns: len(s.Runs), Unread: s.unread}
	for _, f := range s.findings {
		if f.Severity == bad {
			v.Stopped = append(v.Stopped, u.findingViewOf(f))
		} else {
			v.AtRisk = append(v.AtRisk, u.findingViewOf(f))
		}
	}
	u.hub.mu.Lock()
	changes := slices.Clone(u.hub.memory.changes)
	v.Watched = u.hub.memory.since
	u.hub.mu.Unlock()
	for _, c := range slices.Backward(changes) {
		if len(v.Changes) == 20 || s.at.Sub(c.At) > time.Hour {
			break
		}
		v.Changes = append(v.Changes, changeView{c, linkTo(c.Page, c.Path, u.root)})
	}
	lockRows, _ := u.lockRows(s, false)
	elections, _ := u.lockRows(s, true)
	for _, r := range lockRows {
		v.Waiting += r.Waiting
		if len(r.Report.Holders) > 0 {
			v.Held++
		}
	}
	for _, r := range elections {
		if len(r.Report.Holders) > 0 {
			v.Led++
		}
	}
	slices.SortStableFunc(elections, func(a, b lockRow) int { return compareSince(b.Asked, a.Asked) })
	jobs, queues := u.jobRows(s), u.queueRows(s)
	for _, q := range queues {
		v.Items += q.Report.Items
	}
	v.NumLocks, v.NumElections = len(lockRows), len(elections)
	v.Locks, v.Elections = lockRows[:min(len(lockRows), glanceRows)], elections[:min(len(elections), glanceRows)]
	v.Jobs, v.Queues = jobs[:min(len(jobs), glanceRows)], queues[:min(len(queues), glanceRows)]
	for i, r := range s.Runs {
		if i < glanceRows {
			v.Runs = append(v.Runs, workflowRowOf(r))
		}
		if r.State == workflow.Failed {
			v.Failed++
		}
	}
	for _, state := range s.servers {
		v.Servers = append(v.Servers, serverRowOf(state))
		if !state.Away.IsZero() {
			v.Away++
		}
	}
	return built{"Overview", v, listJSON(s.Findings)}, nil
}
