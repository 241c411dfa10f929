package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/scheduler"
)

// jobRow is a job in a list.
type jobRow struct {
	Link     link
	Report   scheduler.Report
	Severity severity
	Words    string // its schedule
	Next     time.Time
	State    severity // the mark of its last run
	LastText string
	LastAt   time.Time
}

func (u *UI) jobRowOf(s *snapshot, r scheduler.Report) jobRow {
	row := jobRow{Link: linkTo("job", r.JobPath(), u.root), Report: r, Next: r.Next(s.at),
		Severity: worst(s.problemsAt[r.JobPath()]), Words: r.Spec}
	if row.Severity == "" && len(r.Findings) > 0 {
		row.Severity = warn
	}
	if schedule, err := r.Schedule(); err == nil {
		row.Words = schedule.Words()
	}
	switch {
	case !r.Paused.IsZero():
		row.State, row.LastText, row.LastAt = off, "paused", r.Paused
		row.Next = time.Time{}
	case len(r.Running) > 0:
		row.State, row.LastText, row.LastAt = busy, "runs", r.Running[0].Started
	case r.LastRun != nil:
		row.State, row.LastText, row.LastAt = good, string(r.LastRun.Outcome), r.LastRun.Started
		if r.LastRun.Outcome.IsFailure() {
			row.State = warn
		}
	default:
		row.State, row.LastText = wait, "never ran"
	}
	return row
}

func (r jobRow) matches(wanted string) bool {
	texts := []string{r.Report.JobPath(), r.Report.Spec, r.LastText, r.Report.Description}
	for _, m := range r.Report.Members {
		texts = append(texts, m.ID)
	}
	return containsAny(wanted, texts...)
}

var jobSorts = map[string]func(a, b jobRow) int{
	"job":  func(a, b jobRow) int { return strings.Compare(a.Report.JobPath(), b.Report.JobPath()) },
	"next": func(a, b jobRow) int { return compareSince(a.Next, b.Next) },
	"last": func(a, b jobRow) int { return compareSince(b.LastAt, a.LastAt) },
}

func (u *UI) jobRows(s *snapshot) (rows []jobRow) {
	for _, r := range s.Jobs {
		rows = append(rows, u.jobRowOf(s, r))
	}
	slices.SortStableFunc(rows, func(a, b jobRow) int {
		return cmp.Or(severityRank(a.Severity)-severityRank(b.Severity), compareSince(a.Next, b.Next))
	})
	return rows
}

type jobsView struct {
	List            list[jobRow]
	Running, Paused int
}

func buildJobs(u *UI, q request, s *snapshot) (built, error) {
	rows := u.jobRows(s)
	v := jobsView{List: listOf(q.query, rows, jobSorts, jobRow.matches)}
	for _, r := range rows {
		if len(r.Report.Running) > 0 {
			v.Running++
		}
		if !r.Report.Paused.IsZero() {
			v.Paused++
		}
	}
	return built{"Jobs", v, listJSON(s.Jobs)}, nil
}

type jobView struct {
	Path     string
	Row      jobRow
	Problems []finding
	Runs     []runRow // the latest first
	Gaps     []scheduler.Gap
	Ticks    []time.Time
	Zone     *time.Location
	Commands []string
	Done     string
	HideData bool
	Seen     string // for actions
	Timeline timeline
}

// barsOfJob are a job's runs, the latest first, and its gaps.
func barsOfJob(runs []runRow, gaps []scheduler.Gap) (bars []bar) {
	for _, g := range gaps {
		bars = append(bars, bar{Class: "b-missed", Text: "not run: " + string(g.Reason), From: g.From, Until: g.To})
	}
	for _, r := range slices.Backward(runs) {
		bars = append(bars, bar{Class: "b-" + string(r.Mark), Text: fmt.Sprintf("run %d: %s", r.Number, r.Text),
			From: r.Started, Until: r.Ended})
	}
	return bars
}

type runRow struct {
	scheduler.RunRecord
	Mark severity
	Text string
	Took string
}

// HasOtherZone reports whether the job's zone has another name than the page's.
func (v jobView) HasOtherZone(page string) bool { return v.Zone.String() != page }

// TickIn is a tick in the job's own zone.
func (v jobView) TickIn(t time.Time) string {
	return t.In(v.Zone).Format("Mon 02 Jan 15:04:05 MST")
}

func buildJob(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	i := slices.IndexFunc(s.Jobs, func(r scheduler.Report) bool { return r.JobPath() == path })
	if i < 0 {
		return built{}, missing("job", path, s.Jobs,
			func(r scheduler.Report) link { return linkTo("job", r.JobPath(), u.root) })
	}
	report := s.Jobs[i]
	runs, err := read(q.ctx, u.hub, s, "job "+path, func(ctx context.Context) ([]scheduler.RunRecord, error) {
		runs, err := scheduler.New(u.client, report.Path).Runs(ctx, report.Name)
		if u.hideData {
			runs = hideRecords(runs)
		}
		return runs, err
	})
	if err != nil && s.failed == nil {
		return built{}, err
	}
	v := jobView{Path: path, Row: u.jobRowOf(s, report), Problems: s.problemsAt[path], Zone: time.UTC,
		Gaps: slices.Clone(report.Gaps), Done: doneText(q.query), HideData: u.hideData,
		Seen: seenOfJob(report)}
	slices.Reverse(v.Gaps)
	for _, r := range runs {
		row := runRow{RunRecord: r, Mark: good, Text: string(r.Outcome)}
		switch {
		case r.Outcome == scheduler.Running:
			row.Mark, row.Text, row.Took = busy, "runs", age(s.at.Sub(r.Started))
		case r.Outcome.IsFailure():
			row.Mark = warn
		}
		if !r.Ended.IsZero() {
			row.Took = age(r.Ended.Sub(r.Started))
		}
		v.Runs = append(v.Runs, row)
	}
	v.Timeline = timelineOf(barsOfJob(v.Runs, v.Gaps), s.at, q.query)
	if schedule, err := report.Schedule(); err == nil && report.Paused.IsZero() {
		v.Zone = schedule.Zone()
		for t := schedule.Next(s.at); !t.IsZero() && len(v.Ticks) < 10; t = schedule.Next(t) {
			v.Ticks = append(v.Ticks, t)
		}
	}
	name := shellWord(report.Name) + " --scheduler " + shellWord(report.Path)
	v.Commands = []string{"lockstep jobs " + name, "lockstep runs " + name}
	return built{report.Name, v, sharedreport.NewJob(report, runs)}, nil
}
