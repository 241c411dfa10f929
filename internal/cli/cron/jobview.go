package cron

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/scheduler"
)

// nameOf is the NAME by which subcommands know a job.
func nameOf(r scheduler.Report) string { return strings.TrimPrefix(r.JobPath(), cli.JobsDir+"/") }

// jobTable has one line for each job. Problems are red.
func jobTable(jobs []scheduler.Report) *cli.Table {
	t := cli.NewTable("JOB", "SCHEDULE", "ZONE", "NEXT", "STATE", "LAST RUN", "RAN", "FAILED", "MISSED", "OVERDUE")
	for _, r := range jobs {
		failed := cli.YellowCell(cli.FormatCount(r.Failures))
		if hasProblem(r, scheduler.ProblemFailed) {
			failed.Paint = terminal.Style.Red
		}
		t.AddRow(cli.BoldCell(cli.ShortenText(nameOf(r))), cli.PlainCell(cli.ShortenText(r.Spec)),
			cli.PlainCell(cli.ShortenText(r.Zone)),
			cli.PlainCell(cli.FormatTime(r.Next(r.At))), StateCell(r),
			LastRunCell(r.State, r.At), cli.PlainCell(strconv.FormatInt(r.Fired+r.Triggered, 10)), failed,
			cli.YellowCell(cli.FormatCount(missedTicks(r.State))), cli.RedCell(cli.FormatCount(r.Overdue.Count)))
	}
	return t
}

func missedTicks(s scheduler.State) (n int64) {
	for _, count := range s.Missed {
		n += count
	}
	return n
}

func hasProblem(r scheduler.Report, problem scheduler.Problem) bool {
	return slices.ContainsFunc(r.Findings, func(f scheduler.Finding) bool { return f.Problem == problem })
}

// StateCell is what a job does, or why it does not run.
func StateCell(r scheduler.Report) cli.Cell {
	for _, f := range r.Findings {
		switch f.Problem {
		case scheduler.ProblemStuck:
			return cli.RedCell("stuck on " + cli.ShortenText(r.Running[0].Runner))
		case scheduler.ProblemNoMember:
			if len(r.Running) == len(r.Abandoned) { // a member that was stopped may still finish its run
				text := "no member runs it"
				if !f.Since.IsZero() {
					text += ", due since " + cli.FormatTime(f.Since)
				}
				if !r.Paused.IsZero() {
					text += ", paused"
				}
				return cli.RedCell(text)
			}
		case scheduler.ProblemOverdue:
			return cli.RedCell("overdue since " + cli.FormatTime(f.Since))
		}
	}
	switch {
	case len(r.Running) > 0:
		text := "runs on " + cli.ShortenText(r.Running[0].Runner)
		if more := len(r.Running) - 1; more > 0 {
			text += " +" + strconv.Itoa(more)
		}
		if !r.Paused.IsZero() {
			return cli.YellowCell(text + ", paused")
		}
		return cli.GreenCell(text)
	case len(r.Pending) > 0:
		return cli.YellowCell("to be run")
	case !r.Paused.IsZero():
		return cli.YellowCell("paused")
	}
	return cli.DimCell("waits")
}

func LastRunCell(r scheduler.State, now time.Time) cli.Cell {
	if r.LastRun == nil {
		return cli.DimCell("-")
	}
	return outcomeCell(*r.LastRun, string(r.LastRun.Outcome)+" "+cli.FormatAge(now.Sub(r.LastRun.Started)))
}

func outcomeCell(r scheduler.RunRecord, text string) cli.Cell {
	switch r.Outcome {
	case scheduler.Succeeded:
		return cli.GreenCell(text)
	case scheduler.Failed, scheduler.Panicked, scheduler.TimedOut, scheduler.Lost:
		return cli.RedCell(text)
	}
	return cli.YellowCell(text)
}

// runTable has one line for each run.
func runTable(runs []scheduler.RunRecord) *cli.Table {
	t := cli.NewTable("RUN", "SCHEDULED", "STARTED", "TOOK", "OUTCOME", "ATTEMPT", "RUNNER", "TOKEN", "ERROR")
	for _, r := range runs {
		how := string(r.Outcome)
		switch {
		case r.Stuck && r.Outcome == scheduler.Running:
			how = "stuck"
		case r.Outcome == scheduler.Running:
			how = "runs"
		}
		if r.Manual {
			how += ", triggered by hand"
		}
		t.AddRow(cli.PlainCell(strconv.FormatInt(r.Number, 10)), cli.PlainCell(cli.FormatTime(r.Tick)),
			cli.PlainCell(cli.FormatTime(r.Started)), cli.PlainCell(formatDuration(r)), outcomeCell(r, how),
			cli.DimCell(strconv.Itoa(r.Attempt)), cli.PlainCell(cli.ShortenText(r.Runner)),
			cli.DimCell(cli.FormatCount(r.Token)),
			cli.PlainCell(formatFailure(r)))
	}
	return t
}

// formatFailure is the error that a run has ended with, or "".
func formatFailure(r scheduler.RunRecord) string {
	if r.Error == "" {
		return ""
	}
	return cli.QuoteName(r.Error)
}

func formatDuration(r scheduler.RunRecord) string {
	if r.Ended.IsZero() {
		return ""
	}
	return max(0, r.Ended.Sub(r.Started)).Round(time.Millisecond).String()
}
