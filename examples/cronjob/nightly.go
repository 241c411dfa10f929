package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	path    = "/offices"
	jobName = "close-the-books"
)

// newNightlyScheduler is the part that a service would have: a scheduler with a job that runs each
// night in one of the processes. If no process could run the job in time, the latest night is run
// within a quarter of a day; earlier nights are recorded as missed. observe gets both.
func newNightlyScheduler(client *framework.Client, spec string, day time.Duration, books *nightStore,
	observe func(scheduler.Event)) (*scheduler.Scheduler, error) {
	s := scheduler.New(client, path, scheduler.WithOnEvent(observe))
	return s, s.Add(scheduler.Job{
		Name:     jobName,
		Spec:     spec,
		Misfire:  scheduler.MisfireLatest,
		Deadline: day / 4,
		Timeout:  day / 2,
		Attempts: 4,
		Run:      books.close,
	})
}

// nightStore stores the closed nights of all offices, as a database would. It stores the highest
// token that has written to it and refuses lower ones, so that an office that was frozen during the
// job cannot write late.
type nightStore struct {
	mu           sync.Mutex
	token        int64
	closedNights []closedNight
}

// closedNight is a night whose books were closed.
type closedNight struct {
	night time.Time
	token int64
}

// close closes the books of one night: that of the run's tick, even if the run comes later.
func (l *nightStore) close(ctx context.Context, run scheduler.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if run.Token < l.token {
		return fmt.Errorf("token %d is older than %d", run.Token, l.token)
	}
	l.token = run.Token
	l.closedNights = append(l.closedNights, closedNight{run.Tick, run.Token})
	return nil
}

// nights returns the closed nights in the order in which they were closed.
func (l *nightStore) nights() []closedNight {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]closedNight(nil), l.closedNights...)
}
