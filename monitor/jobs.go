package monitor

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/scheduler"
)

// schedulersAtOnce is how many schedulers are looked at side by side.
const schedulersAtOnce = 16

// jobWatch looks at jobs.
type jobWatch struct {
	client     *framework.Client
	root       string
	failedRuns int
}

// look takes over what package scheduler finds wrong.
func (w *jobWatch) look(ctx context.Context, l *look) error {
	var paths []string
	for path, err := range scheduler.Find(ctx, w.client, w.root) {
		if err == nil {
			paths = append(paths, path)
		} else if err := l.addUnread(ctx, areaJobs, w.root, err); err != nil {
			return err
		}
	}
	reports, errs := make([][]scheduler.JobReport, len(paths)), make([]error, len(paths))
	inParallel(len(paths), schedulersAtOnce, func(i int) { reports[i], errs[i] = scheduler.New(w.client, paths[i]).InspectAll(ctx) })
	for i, path := range paths {
		if errs[i] != nil {
			if err := l.addUnread(ctx, areaJobs, path, errs[i]); err != nil {
				return err
			}
		}
		for _, r := range reports[i] {
			if err := w.addJob(ctx, l, path, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// addJob adds a job's findings.
func (w *jobWatch) addJob(ctx context.Context, l *look, path string, r scheduler.JobReport) error {
	l.jobs++
	node := znode.Join(znode.Join(path, "jobs"), r.Name)
	for _, f := range r.Findings {
		if f.Problem == scheduler.ProblemFailed && w.failedRuns > 1 {
			failed, err := w.hasFailedRuns(ctx, path, r.Name)
			if err != nil {
				if err := l.addUnread(ctx, areaJobs, node, err); err != nil {
					return err
				}
				continue
			}
			if !failed {
				continue
			}
		}
		l.add(Finding{Problem: Problem(f.Problem), Path: node, Since: f.Since}, "%s", f.Text)
	}
	return nil
}

// hasFailedRuns reports whether the latest runs that have ended have failed, as many as a finding takes.
func (w *jobWatch) hasFailedRuns(ctx context.Context, path, job string) (bool, error) {
	runs, err := scheduler.New(w.client, path).Runs(ctx, job)
	if err != nil {
		return false, err
	}
	failed := 0
	for _, run := range runs {
		switch {
		case run.Outcome == scheduler.Running:
		case !run.Outcome.IsFailure():
			return false, nil
		default:
			if failed++; failed == w.failedRuns {
				return true, nil
			}
		}
	}
	return false, nil
}
