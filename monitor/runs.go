package monitor

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
)

// judgeRuns finds failed runs, and runs that no member takes. The survey has the runs of a path one
// after the other.
func judgeRuns(l *scanResult, s settings) {
	for rest := l.survey.Runs; len(rest) > 0; {
		path := rest[0].Path
		var failed, untaken int
		var latest, longest workflow.Report
		var since time.Time // when the first run has failed
		for ; len(rest) > 0 && rest[0].Path == path; rest = rest[1:] {
			run := rest[0]
			switch {
			case run.State == workflow.Failed && run.Parent == "":
				if failed++; failed == 1 || run.Changed.After(latest.Changed) {
					latest = run
				}
				if since.IsZero() || run.Changed.Before(since) {
					since = run.Changed
				}
			case survey.IsUntaken(run) && l.at.Sub(run.Changed) > s.untakenRun:
				if untaken++; untaken == 1 || run.Changed.Before(longest.Changed) {
					longest = run
				}
			}
		}
		if failed > s.failedRuns {
			text := "the run %[2]q has failed: %[3]s"
			if failed > 1 {
				text = "%[1]d runs have failed, the latest is %[2]q: %[3]s"
			}
			l.addFinding(findingOn(ProblemFailedRuns, latest, since), text, failed, latest.ID, latest.Error)
		}
		if untaken > 0 {
			l.addFinding(findingOn(ProblemUntakenRun, longest, longest.Changed),
				"no member has taken the run %q of the kind %q for %v; such runs: %d", longest.ID, longest.Kind,
				l.at.Sub(longest.Changed).Round(time.Second), untaken)
		}
	}
}

func findingOn(p Problem, run workflow.Report, since time.Time) Finding {
	return Finding{Problem: p, Path: run.Path, Node: znode.Join(run.Path, run.ID), Since: since}
}
