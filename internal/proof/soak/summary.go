package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// summary is the result that is printed at the end.
type summary struct {
	result
	done, killed int
	trends       []trend
	missing      []seriesName // expected, but without values for most of the run
	warmUp       time.Duration
	servers      float64 // processor time, in seconds
}

func summarise(r *recorder, result result, warmUp time.Duration) summary {
	s := summary{result: result, done: r.done, killed: r.killed, warmUp: warmUp}
	found := map[seriesName]bool{}
	for _, n := range r.series.names() {
		points := after(r.series[n], warmUp)
		switch {
		case n.measure == itemsDone, n.measure == workersKilled: // they ought to grow
		case n.measure == processorTime:
			s.servers += r.series[n][len(r.series[n])-1].value
		case coversRun(points, result.took-warmUp):
			s.trends = append(s.trends, fitTrend(n, points))
			found[n] = true
		}
	}
	s.missing = slices.DeleteFunc(expectedSeries(len(r.addrs), r.o.unkilled),
		func(n seriesName) bool { return found[n] })
	return s
}

// expectedSeries returns the series that every run must have: of the servers, of the pipeline, and
// of the workers that are not killed.
func expectedSeries(servers, unkilled int) (names []seriesName) {
	expect := func(subject string, measures ...string) {
		for _, m := range measures {
			names = append(names, seriesName{subject, m})
		}
	}
	for i := range servers {
		expect(serverSubject(i), residentMemory, anonymousMemory, openDescriptors)
	}
	for _, c := range serverCounters {
		if c.added {
			expect("servers", c.measure)
			continue
		}
		for i := range servers {
			expect(serverSubject(i), c.measure)
		}
	}
	expect("pipeline", residentMemory, anonymousMemory, openDescriptors, goroutines, liveHeap, processes)
	for i := range unkilled { // the example spares the workers in the first places
		expect(fmt.Sprintf("worker-%d.1", i+1), residentMemory, anonymousMemory, openDescriptors, goroutines, liveHeap)
	}
	return names
}

// verdict returns an error that lists all violations.
func (s summary) verdict() error {
	var errs []error
	if s.err != nil {
		errs = append(errs, fmt.Errorf("the pipeline: %w", s.err))
	}
	if s.Sum != s.Want || s.Rounds == 0 {
		errs = append(errs, fmt.Errorf("the sum is %d, but must be %d", s.Sum, s.Want))
	}
	if len(s.trends) == 0 {
		errs = append(errs, errors.New("too short: no series is longer than the warm-up"))
	} else {
		for _, n := range s.missing {
			errs = append(errs, fmt.Errorf("%s of %s was not measured for most of the time", n.measure, n.subject))
		}
	}
	for _, f := range s.trends {
		if f.verdict() == "GROWS" {
			errs = append(errs, fmt.Errorf("%s of %s grows", f.measure, f.subject))
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
	fmt.Fprintf(&b, "items delivered again after a worker's death: %d, %d of these with a result\n",
		s.Returned, s.Repeated)
	fmt.Fprintf(&b, "sum: %d, want %d\n", s.Sum, s.Want)
	fmt.Fprintf(&b, "processor time: %.3f of a core for the pipeline, %.3f for the servers\n\n",
		s.cpu.Seconds()/s.took.Seconds(), s.servers/s.took.Seconds())
	fmt.Fprintf(&b, "after a warm-up of %v:\n%-18s %-12s %12s %14s  %s\n", s.warmUp, "measure", "of", "median",
		"slope an hour", "verdict")
	for _, f := range s.trends {
		fmt.Fprintf(&b, "%-18s %-12s %12s %14s  %s\n", f.measure, f.subject, formatValue(f.measure, f.median),
			"+"+formatValue(f.measure, f.perHour), f.verdict())
	}
	if err := s.verdict(); err != nil {
		fmt.Fprintf(&b, "\nFAILED\n%v\n", err)
	} else {
		fmt.Fprintf(&b, "\nall flat, and the sum is right\n")
	}
	return strings.ReplaceAll(b.String(), "+-", " -")
}

// formatValue returns a value with its unit.
func formatValue(measure string, value float64) string {
	switch measure {
	case residentMemory, anonymousMemory, liveHeap:
		return fmt.Sprintf("%.2f MiB", value/(1<<20))
	case "data":
		return fmt.Sprintf("%.1f KiB", value/(1<<10))
	}
	return fmt.Sprintf("%.1f", value)
}
