package main

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// schedulersAtOnce is how many schedulers are looked at side by side.
const schedulersAtOnce = 16

// foundJob is a report and the path of its scheduler.
type foundJob struct {
	path string
	scheduler.JobReport
}

// inspectSchedulers reports on all jobs of the schedulers at and below some paths, in order. What cannot be read is left out, and among
// the errors.
func inspectSchedulers(ctx context.Context, client *framework.Client, roots []string) ([]foundJob, error) {
	var paths []string
	var errs []error
	for _, root := range roots {
		for path, err := range scheduler.Find(ctx, client, root) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			paths = append(paths, path)
		}
	}
	reports, unread := make([][]scheduler.JobReport, len(paths)), make([]error, len(paths))
	slots := make(chan struct{}, schedulersAtOnce)
	var all sync.WaitGroup
	for i, path := range paths {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			reports[i], unread[i] = scheduler.New(client, path).InspectAll(ctx)
		})
	}
	all.Wait()
	var found []foundJob
	for i, path := range paths {
		for _, r := range reports[i] {
			found = append(found, foundJob{path, r})
		}
	}
	return found, errors.Join(append(errs, unread...)...)
}
