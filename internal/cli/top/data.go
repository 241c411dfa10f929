package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/cron"
	"github.com/lockstep-go/lockstep/internal/cli/elect"
	"github.com/lockstep-go/lockstep/internal/cli/lock"
	cliqueue "github.com/lockstep-go/lockstep/internal/cli/queue"
	cliworkflow "github.com/lockstep-go/lockstep/internal/cli/workflow"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// topView is one of the lists of lockstep top.
type topView struct {
	name  string
	dir   string   // where it scans without a ROOT
	head  []string // of its columns
	sorts []string // by weight, by order, by path
	part  survey.Part
	rows  func(seen *survey.Survey, now time.Time) []topRow
	open  func(context.Context, *topReader, topRow) ([]string, error)
}

var topViews = []topView{
	{"locks", cli.LocksDir, []string{"LOCK", "KIND", "HELD BY", "ASKED", "WAITING"}, []string{"waiting", "age", "path"},
		survey.Locks, lockRows, openLock},
	{"elections", cli.ElectionsDir, []string{"ELECTION", "LEADER", "SINCE", "STANDING BY"},
		[]string{"waiting", "age", "path"}, survey.Locks, electionRows, openElection},
	{"jobs", cli.JobsDir, []string{"JOB", "STATE", "NEXT", "LAST RUN", "PROBLEMS"},
		[]string{"problems", "next", "path"},
		survey.Jobs, jobRows, openJob},
	{"queues", cli.QueuesDir, []string{"QUEUE", "ITEMS", "DELAYED", "DEAD", "STATE"}, []string{"items", "dead", "path"},
		survey.Queues, queueRows, openQueue},
	{"workflows", cliworkflow.DefaultWorkflows, []string{"RUN", "STATE", "SINCE", "FAILED", "WAITS FOR OR ERROR"},
		[]string{"problems", "age", "path"}, survey.Runs, runRows, openWorkflow},
}

// topRow is one line of a list.
type topRow struct {
	path   string
	job    string // the name of a job whose scheduler is at path, or the id of a run whose workflows are there
	cells  []cli.Cell
	weight int64  // the more, the higher up: waiters, problems, items
	order  int64  // the less, the higher up: when it was asked for or is due
	words  string // the text that a filter searches
	value  any    // as JSON
}

// key identifies a row.
func (r topRow) key() string { return r.path + "\x00" + r.job }

// topReader reads lists, with a limited number of requests per second.
type topReader struct {
	client *framework.Client
	pace   requestPace
	style  terminal.Style // of the details of a row
}

// topScan is what a scan has found.
type topScan struct {
	view   string
	at     time.Time
	rows   []topRow
	opened string   // the key of the row that was opened, or ""
	detail []string // of that row
	wrong  []string // what could not be read or was left out
	unread error    // the errors of that
}

// scanList scans a list, or at one row of it. The scan has the errors of what cannot be read,
// beside the rest.
func (r *topReader) scanList(ctx context.Context, view *topView, root string, opened *topRow) (topScan, error) {
	found := topScan{view: view.name}
	err := r.pace.wait(ctx) // the scan before may have been given up
	if err != nil {
		return found, err
	}
	if opened != nil {
		found.opened = opened.key()
		found.detail, err = view.open(ctx, r, *opened)
	} else {
		var seen *survey.Survey
		seen, err = survey.Read(ctx, r.client, root, view.part, r.pace.wait)
		found.rows = view.rows(seen, time.Now())
		for _, u := range seen.Unread {
			err = errors.Join(err, u.Err)
		}
	}
	found.at = time.Now()
	if ctx.Err() != nil || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) {
		return found, err
	}
	for _, e := range failure.SplitJoined(err) {
		if e != nil {
			found.wrong = append(found.wrong, cli.InOneLine(e.Error()))
		}
	}
	found.unread = err
	return found, r.pace.wait(ctx)
}

func lockRows(seen *survey.Survey, now time.Time) (rows []topRow) {
	shown := lock.Filter{}
	for _, r := range seen.Locks {
		if r.Kind == locks.ElectionLock || !shown.Admits(r, now) {
			continue
		}
		row := lockRow(r, lock.HeldSince(r, now))
		row.cells = []cli.Cell{cli.BoldCell(cli.QuoteName(r.Path)), cli.PlainCell(lock.KindOf(r)), lock.HolderCell(r),
			lock.AskedCell(r, now), lock.WaitingCell(r)}
		rows = append(rows, row)
	}
	return rows
}

func electionRows(seen *survey.Survey, now time.Time) (rows []topRow) {
	for _, r := range seen.Locks {
		if r.Kind != locks.ElectionLock {
			continue
		}
		row := lockRow(r, lock.HeldSince(r, now))
		row.cells = []cli.Cell{cli.BoldCell(cli.QuoteName(r.Path)), lock.HolderCell(r), lock.AskedCell(r, now),
			lock.WaitingCell(r)}
		rows = append(rows, row)
	}
	return rows
}

func lockRow(report locks.Report, since time.Time) topRow {
	row := topRow{path: report.Path, weight: int64(len(report.Waiters)), order: since.UnixNano(),
		value: report}
	words := []string{report.Path, string(report.Kind)}
	for _, e := range report.Holders {
		words = append(words, e.Owner, e.Host, e.Data)
	}
	for _, e := range report.Waiters {
		words = append(words, e.Owner, e.Host, e.Data)
	}
	row.words = strings.ToLower(strings.Join(words, "\n"))
	return row
}

func openLock(ctx context.Context, r *topReader, row topRow) ([]string, error) {
	report, err := locks.Inspect(ctx, r.client, row.path)
	if err != nil {
		return nil, err
	}
	return formattedLines(func(b *bytes.Buffer) error { return lock.PrintDetail(b, report, time.Now()) })
}

func openElection(ctx context.Context, r *topReader, row topRow) ([]string, error) {
	all, err := election.New(r.client, row.path).Candidates(ctx)
	if err != nil {
		return nil, err
	}
	return elect.CandidateTable(row.path, all).FormatLines(r.style), nil
}

// formattedLines returns the lines that print writes.
func formattedLines(print func(*bytes.Buffer) error) ([]string, error) {
	var b bytes.Buffer
	if err := print(&b); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), nil
}

func jobRows(seen *survey.Survey, _ time.Time) (rows []topRow) {
	for _, r := range seen.Jobs {
		rows = append(rows, jobRow(r.Path, r))
	}
	return rows
}

func jobRow(path string, r scheduler.Report) topRow {
	var problems []string
	for _, f := range r.Findings {
		problems = append(problems, string(f.Problem))
	}
	next := r.Next(r.At)
	row := topRow{path: path, job: r.Name, weight: int64(len(problems)), order: next.UnixNano(), value: r}
	if next.IsZero() {
		row.order = 1<<63 - 1
	}
	row.cells = []cli.Cell{cli.BoldCell(cli.QuoteName(r.JobPath())), cron.StateCell(r),
		cli.PlainCell(cli.FormatTime(next)),
		cron.LastRunCell(r.State, r.At), cli.RedCell(strings.Join(problems, ", "))}
	row.words = strings.ToLower(strings.Join(append(problems, path, r.Name, row.cells[1].Text), "\n"))
	return row
}

func openJob(ctx context.Context, r *topReader, row topRow) ([]string, error) {
	s := scheduler.New(r.client, row.path)
	report, err := s.Inspect(ctx, row.job)
	if err != nil {
		return nil, err
	}
	runs, err := s.Runs(ctx, row.job)
	if err != nil {
		return nil, err
	}
	return formattedLines(func(b *bytes.Buffer) error { return cron.PrintDetail(b, false, report, runs) })
}

func queueRows(seen *survey.Survey, _ time.Time) (rows []topRow) {
	for _, r := range seen.Queues {
		rows = append(rows, queueRow(r))
	}
	return rows
}

func queueRow(one queue.Report) topRow {
	row := topRow{path: one.Path, weight: int64(one.Items + one.Delayed), order: -int64(one.Dead),
		words: strings.ToLower(one.Path), value: one}
	state := cli.DimCell("")
	if one.Paused {
		state = cli.YellowCell("paused")
		row.words += "\npaused"
	}
	row.cells = []cli.Cell{cli.BoldCell(cli.QuoteName(one.Path)), cli.PlainCell(strconv.Itoa(one.Items)),
		cli.PlainCell(cli.FormatCount(one.Delayed)), cli.RedCell(cli.FormatCount(one.Dead)), state}
	return row
}

func openQueue(ctx context.Context, r *topReader, row topRow) ([]string, error) {
	one, err := queue.Inspect(ctx, r.client, row.path)
	if err != nil {
		return nil, err
	}
	lines := []string{r.style.Bold(cli.QuoteName(row.path)),
		fmt.Sprintf("  items %d, delayed %d, dead letters %d", one.Items, one.Delayed, one.Dead)}
	if one.Paused {
		lines = append(lines, "  paused")
	}
	if failing := cliqueue.FailingCell(one); failing.Text != "" {
		lines = append(lines,
			"  retried "+cliqueue.RetriedCell(one.Retried).Text+", most attempts "+cli.InOneLine(failing.Text))
	}
	return lines, nil
}

func runRows(seen *survey.Survey, now time.Time) (rows []topRow) {
	for _, run := range seen.Runs {
		rows = append(rows, runRow(run, now))
	}
	return rows
}

// runRow shows failed runs first, then those that no member has, then those with failed attempts,
// and those that have ended well last.
func runRow(run workflow.Report, now time.Time) topRow {
	state := cliworkflow.WorkflowStateCell(run)
	row := topRow{path: run.Path, job: run.ID, weight: 1 + int64(run.Failures), order: run.Changed.UnixNano(),
		value: run}
	switch {
	case run.State == workflow.Failed:
		row.weight = 1 << 32
	case survey.IsUntaken(run):
		row.weight, state = 1<<31, cli.YellowCell("no member")
	case run.State.IsFinished():
		row.weight = 0
	}
	why := strings.Join(append(run.Waits, run.Error), " ")
	row.words = strings.ToLower(strings.Join([]string{cliworkflow.NameOf(run), run.Kind, state.Text,
		cliworkflow.FormatTaken(run), why},
		"\n"))
	row.cells = []cli.Cell{cli.BoldCell(cli.QuoteName(cliworkflow.NameOf(run))), state,
		cli.PlainCell(cli.FormatAge(now.Sub(run.Changed))),
		cli.YellowCell(cli.FormatCount(run.Failures)), cli.PlainCell(cli.CutMiddle(cli.ShortenText(why), 24))}
	return row
}

func openWorkflow(ctx context.Context, r *topReader, row topRow) ([]string, error) {
	w := workflow.New(r.client, row.path)
	defer w.Close(ctx) //nolint:errcheck // it has put nothing
	info, err := w.Inspect(ctx, row.job)
	if err != nil {
		return nil, err
	}
	return formattedLines(func(b *bytes.Buffer) error {
		return cliworkflow.PrintRun(b, info, time.Now())
	})
}

// findTopView returns the list with a name, or nil.
func findTopView(name string) *topView {
	i := slices.IndexFunc(topViews, func(v topView) bool { return v.name == name })
	if i < 0 {
		return nil
	}
	return &topViews[i]
}
