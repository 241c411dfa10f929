package monitor

import (
	"context"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/scheduler"
)

// jobLooker looks at jobs.
type jobLooker struct {
	client     *framework.Client
	failedRuns int
}

// lookAtJobs adds the problems that package scheduler finds with the jobs of the schedulers at
// these paths.
func (w *jobLooker) lookAtJobs(ctx context.Context, l *lookResult, paths []string) error {
	all, err := moduleonly.InspectSchedulers(ctx, w.client, paths)
	reports, _ := all.([]scheduler.JobReport)
	if err != nil {
		if err := l.addUnread(ctx, areaJobs, "/", err); err != nil {
			return err
		}
	}
	l.jobs = reports
	var failed []scheduler.JobReport // jobs whose latest run has failed: their history decides
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Problem == scheduler.ProblemFailed && w.failedRuns > 1 {
				failed = append(failed, r)
				continue
			}
			addJobFinding(l, r, f)
		}
	}
	ended, err := moduleonly.RunsOfJobs(ctx, w.client, failed)
	runs, _ := ended.([][]scheduler.RunRecord)
	if err != nil {
		if err := l.addUnread(ctx, areaJobs, "/", err); err != nil {
			return err
		}
	}
	for i, r := range failed {
		if i < len(runs) && w.hasFailedRuns(runs[i]) {
			f := slices.IndexFunc(r.Findings,
				func(f scheduler.Finding) bool { return f.Problem == scheduler.ProblemFailed })
			addJobFinding(l, r, r.Findings[f])
		}
	}
	return nil
}

func addJobFinding(l *lookResult, r scheduler.JobReport, f scheduler.Finding) {
	l.addFinding(Finding{Problem: Problem(f.Problem), Path: r.JobPath(), Since: f.Since}, "%s", f.Text)
}

// hasFailedRuns reports whether the latest w.failedRuns ended runs have all failed. runs are the
// latest ones, with those that are under way. It returns false if there are fewer ended runs.
func (w *jobLooker) hasFailedRuns(runs []scheduler.RunRecord) bool {
	failed := 0
	for _, run := range runs {
		switch {
		case run.Outcome == scheduler.Running:
		case !run.Outcome.IsFailure():
			return false
		default:
			if failed++; failed == w.failedRuns {
				return true
			}
		}
	}
	return false
}
