package monitor

import (
	"context"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/scheduler"
)

// judgeJobs adds the problems that package scheduler finds with jobs. A job is failed when its
// latest jobFailures ended runs have failed.
func judgeJobs(ctx context.Context, client *framework.Client, l *scanResult, jobFailures int) error {
	var failed []scheduler.Report // jobs whose latest run has failed: their history decides
	for _, r := range l.survey.Jobs {
		for _, f := range r.Findings {
			if f.Problem == scheduler.ProblemFailed && jobFailures > 1 {
				failed = append(failed, r)
				continue
			}
			addJobFinding(l, r, f)
		}
	}
	ended, err := moduleonly.RunsOfJobs(ctx, client, failed)
	runs, _ := ended.([][]scheduler.RunRecord)
	if err := l.addUnreadOf(ctx, survey.Jobs, "/", err); err != nil {
		return err
	}
	for i, r := range failed {
		if i < len(runs) && hasFailedRuns(runs[i], jobFailures) {
			f := slices.IndexFunc(r.Findings,
				func(f scheduler.Finding) bool { return f.Problem == scheduler.ProblemFailed })
			addJobFinding(l, r, r.Findings[f])
		}
	}
	return nil
}

func addJobFinding(l *scanResult, r scheduler.Report, f scheduler.Finding) {
	l.addFinding(Finding{Problem: Problem(f.Problem), Path: r.JobPath(), Since: f.Since}, "%s", f.Text)
}

// hasFailedRuns reports whether the latest n ended runs have all failed. runs are the latest ones,
// with those that are under way. It returns false if there are fewer ended runs.
func hasFailedRuns(runs []scheduler.RunRecord, n int) bool {
	failed := 0
	for _, run := range runs {
		switch {
		case run.Outcome == scheduler.Running:
		case !run.Outcome.IsFailure():
			return false
		default:
			if failed++; failed == n {
				return true
			}
		}
	}
	return false
}
