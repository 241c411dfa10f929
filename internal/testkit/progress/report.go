package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is an event of "go test -json" (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// report shows the events of one "go test".
type report struct {
	out     io.Writer
	began   time.Time
	total   int // 0 if it is not known
	ended   int
	failed  []string
	crashed []string // of the failed packages, those in which the race detector itself has crashed
	running map[string]*runningPackage
	took    map[string]time.Duration // by package that has ended
}

// runningPackage is a package whose tests run.
type runningPackage struct {
	began  time.Time
	tests  map[string]time.Time        // those that run
	output map[string]*strings.Builder // of each test, and of the package under ""
	failed []string
}

func newReport(out io.Writer, total int, now time.Time) *report {
	return &report{out: out, began: now, total: total, running: map[string]*runningPackage{},
		took: map[string]time.Duration{}}
}

// readEvent reads one line. A line that is not an event is shown unchanged.
func (r *report) readEvent(line []byte, now time.Time) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = r.out.Write(line)
		return
	}
	if e.Package == "" { // of the build
		_, _ = io.WriteString(r.out, e.Output)
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &runningPackage{began: now, tests: map[string]time.Time{}, output: map[string]*strings.Builder{}}
		r.running[e.Package] = p
	}
	switch {
	case e.Action == "output":
		if p.output[e.Test] == nil {
			p.output[e.Test] = &strings.Builder{}
		}
		p.output[e.Test].WriteString(e.Output)
	case e.Action == "run" || e.Action == "cont":
		p.tests[e.Test] = now
	case e.Action == "pause": // until other tests have ended
		delete(p.tests, e.Test)
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	case e.Test == "":
		r.endPackage(e, p)
	default:
		delete(p.tests, e.Test)
		if e.Action == "fail" {
			p.failed = append(p.failed, e.Test)
		} else {
			delete(p.output, e.Test)
		}
	}
}

// endPackage shows a package's outcome. For a failed package it also shows the output of the failed
// tests and of those that had not ended.
func (r *report) endPackage(e event, p *runningPackage) {
	delete(r.running, e.Package)
	r.ended++
	if e.Action == "fail" {
		r.failed = append(r.failed, e.Package)
		if len(p.failed) == 0 && p.wasPrinted(detectorCrash) {
			r.crashed = append(r.crashed, e.Package)
		}
		unfinished := slices.Sorted(maps.Keys(p.tests))
		for _, test := range slices.Concat(p.failed, unfinished, []string{""}) {
			if p.output[test] != nil {
				_, _ = io.WriteString(r.out, p.output[test].String())
			}
		}
	}
	cached := ""
	if p.output[""] != nil && strings.Contains(p.output[""].String(), "(cached)") {
		cached = " (cached)"
	}
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(100 * time.Millisecond)
	r.took[e.Package] = took
	r.printLine("%s %s %s%s", map[string]string{"pass": "ok", "fail": "FAIL", "skip": "no tests in"}[e.Action],
		e.Package, took, cached)
}

// detectorCrash is the output of the race detector when one of its own checks fails
// (go.dev/issue/27660).
const detectorCrash = "ThreadSanitizer: CHECK failed"

func (p *runningPackage) wasPrinted(text string) bool {
	for _, output := range p.output {
		if strings.Contains(output.String(), text) {
			return true
		}
	}
	return false
}

// printLine prints a line that begins with the number of packages that have ended.
func (r *report) printLine(format string, args ...any) {
	of := ""
	if r.total > 0 {
		of = fmt.Sprintf("/%d", r.total)
	}
	_, _ = fmt.Fprintf(r.out, "[%d%s] %s\n", r.ended, of, fmt.Sprintf(format, args...))
}

// showRunning shows, for each package, the test that has run longest, and for how long.
func (r *report) showRunning(now time.Time) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		p := r.running[name]
		text, since := name, p.began
		oldest := slices.MinFunc(append(slices.Collect(maps.Keys(p.tests)), ""), func(a, b string) int {
			return startOf(p.tests, a, now).Compare(startOf(p.tests, b, now))
		})
		if oldest != "" {
			text, since = text+" "+oldest, p.tests[oldest]
		}
		all = append(all, fmt.Sprintf("%s (%v)", text, now.Sub(since).Round(time.Second)))
	}
	if len(all) == 0 {
		all = []string{"compiling"}
	}
	r.printLine("after %v: %s", now.Sub(r.began).Round(time.Second), strings.Join(all, ", "))
}

// startOf returns when a test began. For "", which is no test, it returns a time after all tests.
func startOf(tests map[string]time.Time, test string, now time.Time) time.Time {
	if test == "" {
		return now.Add(time.Hour)
	}
	return tests[test]
}

// slowestShown is how many of the slowest packages the outcome names.
const slowestShown = 10

// printOutcome prints where the time went, and the outcome of all packages.
func (r *report) printOutcome(now time.Time) {
	outcome := "no failure"
	if len(r.failed) > 0 {
		outcome = "failed: " + strings.Join(r.failed, ", ")
	}
	slowest := slices.SortedFunc(maps.Keys(r.took), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.took[b], r.took[a]), cmp.Compare(a, b))
	})
	var all time.Duration
	for _, took := range r.took {
		all += took
	}
	for _, name := range slowest[:min(len(slowest), slowestShown)] {
		_, _ = fmt.Fprintf(r.out, "%8v %s\n", r.took[name].Round(time.Second), name)
	}
	_, _ = fmt.Fprintf(r.out, "%8v in all packages, beside each other\n", all.Round(time.Second))
	r.printLine("%s, in %v", outcome, now.Sub(r.began).Round(time.Second))
}
