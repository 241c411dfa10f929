package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/scheduler"
)

// summary is the result, printed as text or as JSON.
type summary struct {
	Due            int64  `json:"due"`
	Fired          int64  `json:"fired"`
	Duplicated     int64  `json:"duplicated"`
	Missed         int64  `json:"missed"`
	TakeoverMs     int64  `json:"takeover_ms"`
	SessionTimeout int64  `json:"session_timeout_ms"`
	Terms          []term `json:"terms"`
}

type term struct {
	Leader string `json:"leader"`
	Token  int64  `json:"token"`
}

// due counts the ticks between the job's registration and a time.
func due(state scheduler.State, until time.Time) int64 {
	schedule, err := scheduler.ParseSpec(jobSpec, time.UTC)
	if err != nil {
		panic(err) // the schedule is a constant
	}
	var n int64
	for tick := schedule.Next(state.Registered); !tick.After(until); tick = schedule.Next(tick) {
		n++
	}
	return n
}

// summary counts the ticks that were due since the registration, those stored as fired and missed,
// and those that members ran twice.
func (rec *recorder) summary() summary {
	s := summary{
		Due: due(rec.state, rec.state.Last), Fired: rec.state.Fired, Terms: rec.terms,
		TakeoverMs: rec.takeover.Milliseconds(), SessionTimeout: rec.timeout.Milliseconds(),
	}
	for _, n := range rec.state.Missed {
		s.Missed += n
	}
	for _, n := range rec.ticks {
		s.Duplicated += n - 1
	}
	return s
}

// verdict returns an error that lists all violations.
func (rec *recorder) verdict() error {
	s := rec.summary()
	var errs []error
	if s.Duplicated > 0 {
		errs = append(errs, fmt.Errorf("%d ticks fired more than once", s.Duplicated))
	}
	errs = append(errs, demo.CheckTokensRise(s.Terms, func(t term) int64 { return t.Token }))
	if s.Due != s.Fired+s.Missed {
		errs = append(errs, fmt.Errorf("%d ticks were due, but %d fired or were missed", s.Due, s.Fired+s.Missed))
	}
	if ran := rec.reportedTicks(); ran < s.Fired {
		errs = append(errs, fmt.Errorf("%d ticks are stored as fired, but the members reported %d", s.Fired, ran))
	}
	if rec.takeover == 0 {
		errs = append(errs, errors.New("no member took over"))
	}
	return errors.Join(errs...)
}

// reportedTicks counts the ticks that members have reported, up to the latest stored tick.
func (rec *recorder) reportedTicks() int64 {
	var n int64
	for tick := range rec.ticks {
		if !tick.After(rec.state.Last) {
			n++
		}
	}
	return n
}

func (rec *recorder) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(rec.summary()) }

// writeSummary writes the summary as text.
func (rec *recorder) writeSummary() {
	s := rec.summary()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(rec.Out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(rec.Out, "\n%s\n", rec.Bold("Summary"))
	line("due", "%4d  ticks of %q, by the clock", s.Due, jobSpec)
	line("fired", "%4d", s.Fired)
	line("duplicated", "%4d", s.Duplicated)
	line("missed", "%4d", s.Missed)
	for _, g := range rec.state.Gaps {
		line("", "%4d  %s to %s: %s", g.Count, g.From.Local().Format(time.TimeOnly), g.To.Local().Format(time.TimeOnly),
			g.Reason)
	}
	line("takeover", "%v after the kill, with a session timeout of %v", rec.takeover.Round(time.Millisecond),
		rec.timeout)
	for i, t := range s.Terms {
		line(map[bool]string{true: "terms"}[i == 0], "%s with token %d", t.Leader, t.Token)
	}
	if rec.verdict() == nil {
		fmt.Fprintf(rec.Out, "\n%s no tick fired twice, none is unaccounted for, and the tokens rose.\n",
			rec.Green("Held:"))
	}
}
