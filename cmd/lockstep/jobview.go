package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/scheduler"
)

func sortNames(names []string) []string {
	slices.Sort(names)
	return names
}

// jobTable has one line for each job. Problems are red.
func jobTable(jobs []scheduler.JobReport) *table {
	t := newTable("JOB", "SCHEDULE", "ZONE", "NEXT", "STATE", "LAST RUN", "RAN", "FAILED", "MISSED", "OVERDUE")
	for _, r := range jobs {
		failed := yellowCell(formatCount(r.Failures))
		if hasProblem(r, scheduler.ProblemFailed) {
			failed.paint = terminal.Style.Red
		}
		t.addRow(boldCell(shortenText(r.Name)), plainCell(shortenText(r.Spec)), plainCell(shortenText(r.Zone)),
			plainCell(formatTime(r.Next(r.At))), stateCell(r),
			lastRunCell(r.State, r.At), plainCell(strconv.FormatInt(r.Fired+r.Triggered, 10)), failed,
			yellowCell(formatCount(missedTicks(r.State))), redCell(formatCount(r.Overdue.Count)))
	}
	return t
}

func missedTicks(s scheduler.State) (n int64) {
	for _, count := range s.Missed {
		n += count
	}
	return n
}

func hasProblem(r scheduler.JobReport, problem scheduler.Problem) bool {
	return slices.ContainsFunc(r.Findings, func(f scheduler.Finding) bool { return f.Problem == problem })
}

// stateCell is what a job does, or why it does not run.
func stateCell(r scheduler.JobReport) cell {
	for _, f := range r.Findings {
		switch f.Problem {
		case scheduler.ProblemStuck:
			return redCell("stuck on " + shortenText(r.Running[0].Runner))
		case scheduler.ProblemNoMember:
			if len(r.Running) == len(r.Abandoned) { // a member that was stopped may still finish its run
				text := "no member runs it"
				if !f.Since.IsZero() {
					text += ", due since " + formatTime(f.Since)
				}
				if !r.Paused.IsZero() {
					text += ", paused"
				}
				return redCell(text)
			}
		case scheduler.ProblemOverdue:
			return redCell("overdue since " + formatTime(f.Since))
		}
	}
	switch {
	case len(r.Running) > 0:
		text := "runs on " + shortenText(r.Running[0].Runner)
		if more := len(r.Running) - 1; more > 0 {
			text += " +" + strconv.Itoa(more)
		}
		if !r.Paused.IsZero() {
			return yellowCell(text + ", paused")
		}
		return greenCell(text)
	case len(r.Pending) > 0:
		return yellowCell("to be run")
	case !r.Paused.IsZero():
		return yellowCell("paused")
	}
	return dimCell("waits")
}

func lastRunCell(r scheduler.State, now time.Time) cell {
	if r.LastRun == nil {
		return dimCell("-")
	}
	return outcomeCell(*r.LastRun, string(r.LastRun.Outcome)+" "+formatAge(now.Sub(r.LastRun.Started)))
}

func outcomeCell(r scheduler.RunRecord, text string) cell {
	switch r.Outcome {
	case scheduler.Succeeded:
		return greenCell(text)
	case scheduler.Failed, scheduler.Panicked, scheduler.TimedOut, scheduler.Lost:
		return redCell(text)
	}
	return yellowCell(text)
}

// runTable has one line for each run.
func runTable(runs []scheduler.RunRecord) *table {
	t := newTable("RUN", "SCHEDULED", "STARTED", "TOOK", "OUTCOME", "ATTEMPT", "RUNNER", "TOKEN", "ERROR")
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
		t.addRow(plainCell(strconv.FormatInt(r.Number, 10)), plainCell(formatTime(r.Tick)),
			plainCell(formatTime(r.Started)), plainCell(formatDuration(r)), outcomeCell(r, how),
			dimCell(strconv.Itoa(r.Attempt)), plainCell(shortenText(r.Runner)), dimCell(formatCount(r.Token)),
			plainCell(formatFailure(r)))
	}
	return t
}

// formatFailure is the error that a run has ended with, or "".
func formatFailure(r scheduler.RunRecord) string {
	if r.Error == "" {
		return ""
	}
	return quoteName(r.Error)
}

func formatDuration(r scheduler.RunRecord) string {
	if r.Ended.IsZero() {
		return ""
	}
	return max(0, r.Ended.Sub(r.Started)).Round(time.Millisecond).String()
}

// jobJSON is a job as JSON. Times that are not known are left out.
type jobJSON struct {
	Name        string                     `json:"name"`
	Spec        string                     `json:"spec"`
	Zone        string                     `json:"zone"`
	Words       string                     `json:"words,omitempty"`
	Revision    int64                      `json:"revision"`
	Description string                     `json:"description,omitempty"`
	Next        *time.Time                 `json:"next,omitempty"`
	Last        *time.Time                 `json:"last,omitempty"`
	Paused      *time.Time                 `json:"paused,omitempty"`
	Owner       string                     `json:"owner,omitempty"`
	Leader      string                     `json:"leader,omitempty"`
	Members     []string                   `json:"members"`
	Running     []runJSON                  `json:"running,omitempty"`
	LastRun     *runJSON                   `json:"last_run,omitempty"`
	Pending     int                        `json:"pending"`
	Fired       int64                      `json:"fired"`
	Triggered   int64                      `json:"triggered"`
	Failures    int64                      `json:"failures"`
	Missed      map[scheduler.Reason]int64 `json:"missed,omitempty"`
	Overdue     *scheduler.Gap             `json:"overdue,omitempty"`
	Gaps        []scheduler.Gap            `json:"gaps,omitempty"`
	Findings    []findingJSON              `json:"findings"`
	NextTicks   []time.Time                `json:"next_ticks,omitempty"`
	Runs        []runJSON                  `json:"runs,omitempty"`
}

// runJSON is a run as JSON.
type runJSON struct {
	ID      string     `json:"id"`
	Number  int64      `json:"number"`
	Tick    time.Time  `json:"tick"`
	Manual  bool       `json:"manual"`
	Attempt int        `json:"attempt"`
	Token   int64      `json:"token,omitempty"`
	Runner  string     `json:"runner"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Outcome string     `json:"outcome"`
	Error   string     `json:"error,omitempty"`
	Stuck   bool       `json:"stuck,omitempty"`
}

func jobView(r scheduler.JobReport) jobJSON {
	v := jobJSON{
		Name: r.Name, Spec: r.Spec, Zone: r.Zone, Revision: r.Revision, Description: r.Description,
		Next: knownTime(r.Next(r.At)), Last: knownTime(r.Last),
		Paused: knownTime(r.Paused), Leader: r.Leader, Members: []string{}, Pending: len(r.Pending), Fired: r.Fired,
		Triggered: r.Triggered, Failures: r.Failures, Missed: r.Missed,
		Gaps: r.Gaps, Findings: []findingJSON{},
	}
	if schedule, err := r.Schedule(); err == nil {
		v.Words = schedule.Words()
	}
	if r.Owner != nil {
		v.Owner = r.Owner.ID
	}
	for _, m := range r.Members {
		v.Members = append(v.Members, m.ID)
	}
	if r.Overdue.Count > 0 {
		v.Overdue = &r.Overdue
	}
	for _, run := range r.Running {
		v.Running = append(v.Running, runView(run))
	}
	if r.LastRun != nil {
		last := runView(*r.LastRun)
		v.LastRun = &last
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings,
			findingJSON{Problem: string(f.Problem), Since: knownTime(f.Since), Text: f.Text})
	}
	return v
}

func runView(r scheduler.RunRecord) runJSON {
	how := string(r.Outcome)
	if r.Outcome == scheduler.Running {
		how = "running"
	}
	return runJSON{
		ID: r.ID, Number: r.Number, Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt, Token: r.Token,
		Runner:  r.Runner,
		Started: r.Started, Ended: knownTime(r.Ended), Outcome: how, Error: r.Error, Stuck: r.Stuck,
	}
}

// knownTime returns nil for the zero time, which stands for an unknown one.
func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
