package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// summary is what is said at the end.
type summary struct {
	result
	done, killed int
	fits         []trend
	warmUp       time.Duration
	servers      float64 // processor time, in seconds
}

func summarise(r *recorder, result result, warmUp time.Duration) summary {
	s := summary{result: result, done: r.done, killed: r.killed, warmUp: warmUp}
	for _, n := range r.series.names() {
		points := after(r.series[n], warmUp)
		switch {
		case n.measure == itemsDone, n.measure == workersKilled: // they ought to grow
		case n.measure == processorTime:
			s.servers += r.series[n][len(r.series[n])-1].value
		case coversRun(points, result.took-warmUp):
			s.fits = append(s.fits, fitTrend(n, points))
		}
	}
	return s
}

// verdict is an error that names all that is not as it must be.
func (s summary) verdict() error {
	var errs []error
	if s.err != nil {
		errs = append(errs, fmt.Errorf("the pipeline: %w", s.err))
	}
	if s.Sum != s.Want || s.Rounds == 0 {
		errs = append(errs, fmt.Errorf("the sum is %d, but must be %d", s.Sum, s.Want))
	}
	if len(s.fits) == 0 {
		errs = append(errs, errors.New("too short: no series outlasts the warm-up"))
	}
	for _, f := range s.fits {
		if f.verdict() == "GROWS" {
			errs = append(errs, fmt.Errorf("%s of %s grows", f.measure, f.whose))
		}
	}
	return errors.Join(errs...)
}

func (s summary) ok() bool { return s.verdict() == nil }

func (s summary) text() string {
	var b strings.Builder
	leaders := 0
	for _, k := range s.Kills {
		if k.Leader {
			leaders++
		}
	}
	fmt.Fprintf(&b, "soak: %v; %d rounds, %d items done, %d workers killed (%d of them leading), %d terms\n",
		s.took.Round(time.Second), s.Rounds, s.done, s.killed, leaders, len(s.Terms))
	fmt.Fprintf(&b, "items that came back from the dead: %d, %d of these with a result\n", s.Returned, s.Repeated)
	fmt.Fprintf(&b, "sum: %d, want %d\n", s.Sum, s.Want)
	fmt.Fprintf(&b, "processor time: %.3f of a core for the pipeline, %.3f for the servers\n\n",
		s.cpu.Seconds()/s.took.Seconds(), s.servers/s.took.Seconds())
	fmt.Fprintf(&b, "after a warm-up of %v:\n%-18s %-12s %12s %14s  %s\n", s.warmUp, "measure", "of", "median", "slope an hour", "verdict")
	for _, f := range s.fits {
		fmt.Fprintf(&b, "%-18s %-12s %12s %14s  %s\n", f.measure, f.whose, shown(f.measure, f.median), "+"+shown(f.measure, f.perHour), f.verdict())
	}
	if err := s.verdict(); err != nil {
		fmt.Fprintf(&b, "\nFAILED\n%v\n", err)
	} else {
		fmt.Fprintf(&b, "\nall flat, and the sum is right\n")
	}
	return strings.ReplaceAll(b.String(), "+-", " -")
}

// shown is a value with its unit.
func shown(measure string, value float64) string {
	switch measure {
	case residentMemory, anonymousMemory, liveHeap:
		return fmt.Sprintf("%.2f MiB", value/(1<<20))
	case "data":
		return fmt.Sprintf("%.1f KiB", value/(1<<10))
	}
	return fmt.Sprintf("%.1f", value)
}
