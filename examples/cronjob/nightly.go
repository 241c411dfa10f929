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

// nightly is the part that a service would have: a scheduler with a job that runs once each night in one of all such processes. If no
// process could run it in time, the latest night is run within a quarter of a day; earlier nights are recorded as missed.
func nightly(client *framework.Client, spec string, day time.Duration, books *ledger) (*scheduler.Scheduler, error) {
	s := scheduler.New(client, path)
	return s, s.Add(scheduler.Job{
		Name:     jobName,
		Spec:     spec,
		Misfire:  scheduler.MisfireLatest,
		Deadline: day / 4,
		Timeout:  day / 2,
		Retries:  3,
		Run:      books.close,
	})
}

// ledger is the books of all offices. Like a database, it stores the highest token that has written to it and refuses lower ones, so
// that an office that was frozen during the job cannot write late.
type ledger struct {
	mu     sync.Mutex
	token  int64
	closed []entry
}

// entry is a night whose books were closed.
type entry struct {
	night time.Time
	token int64
}

// close closes the books of one night: that of the tick, whenever it runs.
func (l *ledger) close(ctx context.Context, run scheduler.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if run.Token < l.token {
		return fmt.Errorf("token %d is older than %d", run.Token, l.token)
	}
	l.token = run.Token
	l.closed = append(l.closed, entry{run.Tick, run.Token})
	return nil
}

// nights returns the closed nights in the order of their closing.
func (l *ledger) nights() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]entry(nil), l.closed...)
}
