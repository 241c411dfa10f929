package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// lockRow is a lock in a list.
type lockRow struct {
	Link     link
	Report   locks.Report
	Problems []finding
	Severity severity
	Kind     string
	Holder   string
	Session  framework.SessionID // of the holder
	More     int                 // further holders
	Asked    time.Time
	Waiting  int
	Longest  time.Time // since when the first waiter waits
}

func (u *UI) lockRowOf(s *snapshot, r locks.Report) lockRow {
	page := "lock"
	if r.Kind == locks.ElectionLock {
		page = "election"
	}
	row := lockRow{Link: linkTo(page, r.Path, u.root), Report: r, Kind: string(r.Kind), Waiting: len(r.Waiters),
		Problems: s.problemsAt[r.Path]}
	row.Severity = worst(row.Problems)
	if r.Permits > 0 {
		row.Kind = fmt.Sprintf("%s %d/%d", r.Kind, heldPermits(r), r.Permits)
	}
	if len(r.Holders) > 0 {
		row.Holder, row.Session, row.Asked = owner(r.Holders[0]), r.Holders[0].Session, r.Holders[0].Since
		row.More = len(r.Holders) - 1
	}
	if len(r.Waiters) > 0 {
		row.Longest = r.Waiters[0].Since
	}
	return row
}

func heldPermits(r locks.Report) (n int) {
	for _, e := range r.Holders {
		n += max(1, e.Permits)
	}
	return n
}

func (r lockRow) matches(wanted string) bool {
	texts := []string{r.Report.Path, string(r.Report.Kind)}
	for _, entries := range [][]locks.Entry{r.Report.Holders, r.Report.Waiters} {
		for _, e := range entries {
			texts = append(texts, e.Owner, e.Host, e.Session.String())
		}
	}
	return containsAny(wanted, texts...)
}

var lockSorts = map[string]func(a, b lockRow) int{
	"lock":    func(a, b lockRow) int { return strings.Compare(a.Report.Path, b.Report.Path) },
	"asked":   func(a, b lockRow) int { return compareSince(a.Asked, b.Asked) },
	"waiting": func(a, b lockRow) int { return b.Waiting - a.Waiting },
}

// lockRows are the locks or the elections of a snapshot, what is wrong first.
func (u *UI) lockRows(s *snapshot, elections bool) (rows []lockRow, reports []locks.Report) {
	for _, r := range s.locks {
		if (r.Kind == locks.ElectionLock) == elections {
			rows, reports = append(rows, u.lockRowOf(s, r)), append(reports, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b lockRow) int {
		return cmp.Or(severityRank(a.Severity)-severityRank(b.Severity), b.Waiting-a.Waiting)
	})
	return rows, reports
}

type locksView struct {
	List          list[lockRow]
	Held, Waiting int
}

func buildLocks(u *UI, q request, s *snapshot) (built, error) {
	rows, reports := u.lockRows(s, false)
	v := locksView{List: listOf(q.query, rows, lockSorts, lockRow.matches)}
	for _, r := range rows {
		v.Waiting += r.Waiting
		if len(r.Report.Holders) > 0 {
			v.Held++
		}
	}
	return built{"Locks", v, listJSON(reports)}, nil
}

type lockView struct {
	Path         string
	Link         link
	Kind         string
	Problems     []finding
	Holders      []holderView
	Line         []lineRow
	Graph        *drawing
	Waiting      int
	Clients      int
	More         int // waiters that are left out
	Commands     []string
	Done         string
	First, Since time.Time
}

type holderView struct {
	locks.Entry
	Name      string
	AlsoHolds []link
	WaitsFor  []link
}

// IsFull reports whether there may be more locks than these.
func (lockView) IsFull(locks []link) bool { return len(locks) == maxOfSession }

type lineRow struct {
	Place string
	locks.Entry
	Name  string
	Holds []link
	Waits []link
	Class string
}

// buildLock reads the lock anew: it may be another one by now than that of the snapshot.
func buildLock(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	report, err := u.readLock(q, s, path)
	if err != nil {
		return built{}, err
	}
	row := u.lockRowOf(s, report)
	v := lockView{Path: path, Link: linkTo("", path, u.root), Kind: row.Kind, Problems: row.Problems,
		Waiting: len(report.Waiters), Done: doneText(q.query), Since: row.Asked, First: row.Longest}
	clients := map[framework.SessionID]bool{}
	for _, e := range report.Holders {
		h := holderView{Entry: e, Name: owner(e)}
		h.AlsoHolds, h.WaitsFor = u.ofSession(s, e.Session, path)
		v.Holders = append(v.Holders, h)
		v.Line = append(v.Line, lineRow{Place: "holds", Entry: e, Name: owner(e), Waits: h.WaitsFor, Class: "here"})
	}
	for i, e := range report.Waiters {
		clients[e.Session] = true
		row := lineRow{Place: fmt.Sprint(i + 1), Entry: e, Name: owner(e)}
		row.Holds, _ = u.ofSession(s, e.Session, path)
		if i < pageRows {
			v.Line = append(v.Line, row)
		}
	}
	v.Clients, v.More = len(clients), max(0, len(report.Waiters)-pageRows)
	if report.Kind != locks.ElectionLock {
		v.Graph = u.waitGraph(s, report)
	}
	word := shellWord(path)
	v.Commands = []string{"lockstep locks " + word, "lockstep locks --deadlocks", "lockstep revoke " + word}
	return built{path, v, report}, nil
}

// readLock reads a lock, or says that there is none.
func (u *UI) readLock(q request, s *snapshot, path string) (locks.Report, error) {
	if err := u.checkPath(path); err != nil {
		return locks.Report{}, err
	}
	if s.failed != nil {
		if r, known := s.locksAt[path]; known {
			return r, nil
		}
	}
	report, err := read(q.ctx, u.hub, s, "lock "+path, func(ctx context.Context) (locks.Report, error) {
		report, err := locks.Inspect(ctx, u.client, path)
		if err == nil && u.hideData {
			report = hideLock(report)
		}
		return report, err
	})
	if err != nil {
		return locks.Report{}, err
	}
	if report.Kind == locks.NoLock {
		if _, known := s.locksAt[path]; !known {
			return locks.Report{}, u.missingLock(s, "lock", path)
		}
	}
	return report, nil
}

func (u *UI) missingLock(s *snapshot, what, path string) error {
	_, there := u.lockRows(s, what == "election")
	return missing(what, path, there, func(r locks.Report) link { return linkTo(what, r.Path, u.root) })
}

// maxOfSession is how many locks a lock's page names beside itself; the session's page has all.
const maxOfSession = 8

// ofSession are the locks that a session holds and waits for, except one.
func (u *UI) ofSession(s *snapshot, session framework.SessionID, except string) (holds, waits []link) {
	if session == 0 {
		return nil, nil
	}
	for _, r := range s.locks {
		if r.Path == except {
			continue
		}
		page := "lock"
		if r.Kind == locks.ElectionLock {
			page = "election"
		}
		same := func(e locks.Entry) bool { return e.Session == session }
		if slices.ContainsFunc(r.Holders, same) && len(holds) < maxOfSession {
			holds = append(holds, linkTo(page, r.Path, u.root))
		}
		if slices.ContainsFunc(r.Waiters, same) && len(waits) < maxOfSession {
			waits = append(waits, linkTo(page, r.Path, u.root))
		}
	}
	return holds, waits
}
