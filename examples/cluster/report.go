package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

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

// summary counts the ticks that were due since the registration, those stored as fired and missed, and those that members ran twice.
func (j *journal) summary() summary {
	s := summary{
		Due: due(j.state, j.state.Last), Fired: j.state.Fired, Terms: j.terms,
		TakeoverMs: j.takeover.Milliseconds(), SessionTimeout: j.timeout.Milliseconds(),
	}
	for _, n := range j.state.Missed {
		s.Missed += n
	}
	for _, n := range j.ticks {
		s.Duplicated += n - 1
	}
	return s
}

// verdict returns an error that lists all violations.
func (j *journal) verdict() error {
	s := j.summary()
	var errs []error
	if s.Duplicated > 0 {
		errs = append(errs, fmt.Errorf("%d ticks fired more than once", s.Duplicated))
	}
	for i := 1; i < len(s.Terms); i++ {
		if s.Terms[i].Token <= s.Terms[i-1].Token {
			errs = append(errs, fmt.Errorf("token %d follows %d: it did not rise", s.Terms[i].Token, s.Terms[i-1].Token))
		}
	}
	if s.Due != s.Fired+s.Missed {
		errs = append(errs, fmt.Errorf("%d ticks were due, but %d are accounted for", s.Due, s.Fired+s.Missed))
	}
	if ran := j.ran(); ran < s.Fired {
		errs = append(errs, fmt.Errorf("%d ticks are stored as fired, but the members reported %d", s.Fired, ran))
	}
	if j.takeover == 0 {
		errs = append(errs, errors.New("no member took over"))
	}
	return errors.Join(errs...)
}

// ran counts the ticks that members reported, up to the latest stored tick.
func (j *journal) ran() int64 {
	var n int64
	for tick := range j.ticks {
		if !tick.After(j.state.Last) {
			n++
		}
	}
	return n
}

func (j *journal) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(j.summary()) }

// writeSummary writes the summary for people.
func (j *journal) writeSummary() {
	s := j.summary()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(j.out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(j.out, "\n%s\n", j.paint(bold, "Summary"))
	line("due", "%4d  ticks of %q, by the clock", s.Due, jobSpec)
	line("fired", "%4d", s.Fired)
	line("duplicated", "%4d", s.Duplicated)
	line("missed", "%4d", s.Missed)
	for _, g := range j.state.Gaps {
		line("", "%4d  %s to %s: %s", g.Count, g.From.Local().Format(time.TimeOnly), g.To.Local().Format(time.TimeOnly), g.Reason)
	}
	line("takeover", "%v after the kill, with a session timeout of %v", j.takeover.Round(time.Millisecond), j.timeout)
	for i, t := range s.Terms {
		line(map[bool]string{true: "terms"}[i == 0], "%s with token %d", t.Leader, t.Token)
	}
	if j.verdict() == nil {
		fmt.Fprintf(j.out, "\n%s no tick fired twice, none is unaccounted for, and the tokens rose.\n", j.paint(green, "Held:"))
	}
}
