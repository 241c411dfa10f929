package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
)

func sorted(names []string) []string {
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
		t.add(strong(brief(r.Name)), plainly(brief(r.Spec)), plainly(brief(r.Zone)), plainly(moment(r.Next(now))), stateOf(r), lastOf(r, now),
			plainly(strconv.FormatInt(r.Fired, 10)), faint(counted(r.Failures)), faint(counted(missed)))
	}
	return t
}

func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// moment is a time as people here read it.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

func stateOf(r scheduler.State) cell {
	switch {
	case len(r.Running) > 0 && r.Running[0].Stuck:
		return busy("stuck on " + brief(r.Running[0].Runner))
	case len(r.Running) > 0:
		text := "runs on " + brief(r.Running[0].Runner)
		if more := len(r.Running) - 1; more > 0 {
			text += " +" + strconv.Itoa(more)
		}
		return good(text)
	case len(r.Pending) > 0:
		return busy("to be run")
	case !r.Paused.IsZero():
		return busy("paused")
	}
	return faint("waits")
}

func lastOf(r scheduler.State, now time.Time) cell {
	if r.LastRun == nil {
		return faint("-")
	}
	return outcome(*r.LastRun, string(r.LastRun.Outcome)+" "+ago(now.Sub(r.LastRun.Started)))
}

func outcome(r scheduler.RunRecord, text string) cell {
	if r.Outcome == scheduler.Succeeded {
		return good(text)
	}
	return busy(text)
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
		t.add(plainly(strconv.FormatInt(r.Number, 10)), plainly(moment(r.Tick)), plainly(moment(r.Started)), plainly(took(r)), outcome(r, how),
			faint(strconv.Itoa(r.Attempt)), plainly(brief(r.Runner)), faint(counted(r.Token)), plainly(failure(r)))
	}
	return t
}

// failure is the error that a run has ended with, if it has with one.
func failure(r scheduler.RunRecord) string {
	if r.Error == "" {
		return ""
	}
	return readable(r.Error)
}

func took(r scheduler.RunRecord) string {
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
		Name: r.Name, Spec: r.Spec, Zone: r.Zone, Revision: r.Revision, Next: known(r.Next(now)), Last: known(r.Last), Paused: known(r.Paused),
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
		Started: r.Started, Ended: known(r.Ended), Outcome: how, Error: r.Error, Stuck: r.Stuck,
	}
}

// known is a time, or nil if it is not.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
