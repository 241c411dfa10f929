package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
)

func sortNames(names []string) []string {
	slices.Sort(names)
	return names
}

// jobTable is one line for each job.
func jobTable(jobs []scheduler.State, now time.Time) *table {
	t := newTable("JOB", "SCHEDULE", "ZONE", "NEXT", "STATE", "LAST RUN", "RAN", "FAILED", "MISSED")
	for _, r := range jobs {
		var missed int64
		for _, n := range r.Missed {
			missed += n
		}
		t.addRow(boldCell(shortenText(r.Name)), plainCell(shortenText(r.Spec)), plainCell(shortenText(r.Zone)), plainCell(formatTime(r.Next(now))), stateCell(r), lastRunCell(r, now),
			plainCell(strconv.FormatInt(r.Fired, 10)), dimCell(formatCount(r.Failures)), dimCell(formatCount(missed)))
	}
	return t
}

func formatCount(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// formatTime is a time as people here read it.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

func stateCell(r scheduler.State) cell {
	switch {
	case len(r.Running) > 0 && r.Running[0].Stuck:
		return yellowCell("stuck on " + shortenText(r.Running[0].Runner))
	case len(r.Running) > 0:
		text := "runs on " + shortenText(r.Running[0].Runner)
		if more := len(r.Running) - 1; more > 0 {
			text += " +" + strconv.Itoa(more)
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
	if r.Outcome == scheduler.Succeeded {
		return greenCell(text)
	}
	return yellowCell(text)
}

// runTable is one line for each run.
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
			how += ", asked for"
		}
		t.addRow(plainCell(strconv.FormatInt(r.Number, 10)), plainCell(formatTime(r.Tick)), plainCell(formatTime(r.Started)), plainCell(formatDuration(r)), outcomeCell(r, how),
			dimCell(strconv.Itoa(r.Attempt)), plainCell(shortenText(r.Runner)), dimCell(formatCount(r.Token)), plainCell(formatFailure(r)))
	}
	return t
}

// formatFailure is the error that a run has ended with, if it has with one.
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
	Name     string                     `json:"name"`
	Spec     string                     `json:"spec"`
	Zone     string                     `json:"zone"`
	Revision int64                      `json:"revision"`
	Next     *time.Time                 `json:"next,omitempty"`
	Last     *time.Time                 `json:"last,omitempty"`
	Paused   *time.Time                 `json:"paused,omitempty"`
	Running  []runJSON                  `json:"running,omitempty"`
	LastRun  *runJSON                   `json:"last_run,omitempty"`
	Pending  int                        `json:"pending"`
	Fired    int64                      `json:"fired"`
	Failures int64                      `json:"failures"`
	Missed   map[scheduler.Reason]int64 `json:"missed,omitempty"`
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

func jobView(r scheduler.State, now time.Time) jobJSON {
	v := jobJSON{
		Name: r.Name, Spec: r.Spec, Zone: r.Zone, Revision: r.Revision, Next: knownTime(r.Next(now)), Last: knownTime(r.Last), Paused: knownTime(r.Paused),
		Pending: len(r.Pending), Fired: r.Fired, Failures: r.Failures, Missed: r.Missed,
	}
	for _, run := range r.Running {
		v.Running = append(v.Running, runView(run))
	}
	if r.LastRun != nil {
		last := runView(*r.LastRun)
		v.LastRun = &last
	}
	return v
}

func runView(r scheduler.RunRecord) runJSON {
	how := string(r.Outcome)
	if r.Outcome == scheduler.Running {
		how = "running"
	}
	return runJSON{
		ID: r.ID, Number: r.Number, Tick: r.Tick, Manual: r.Manual, Attempt: r.Attempt, Token: r.Token, Runner: r.Runner,
		Started: r.Started, Ended: knownTime(r.Ended), Outcome: how, Error: r.Error, Stuck: r.Stuck,
	}
}

// knownTime is a time, or nil if it is not.
func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
