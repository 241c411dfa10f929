//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

// TestAnEmptyListNamesWhatIsElsewhere: the programs of the README use paths of their own.
func TestAnEmptyListNamesWhatIsElsewhere(t *testing.T) {
	s := newStage(t)
	for _, list := range []string{"locks", "elections", "jobs", "queue ls", "barriers", "latch ls", "gates"} {
		_, errs := s.listed(list)
		require.Regexp(t, `^lockstep: no [a-z ]+ at or below /lockstep/[a-z]+\n$`, errs)
	}
	c := connectAs(t, s, "", "")
	ctx := t.Context()
	for _, path := range []string{"/orders/1", "/orders/2", "/orders/3", "/orders/4"} {
		_, err := locks.NewMutex(c, path).Lock(ctx)
		require.NoError(t, err)
	}
	_, err := election.New(c, "/billing").Campaign(ctx)
	require.NoError(t, err)
	require.NoError(t, queue.New(c, "/mails", codec.Text()).Put(ctx, "ann"))
	require.NoError(t, barrier.NewGate(c, "/upkeep").Raise(ctx))
	jobs := scheduler.New(c, "/jobs")
	require.NoError(t, jobs.Add(scheduler.Job{Name: "often", Spec: "0 3 * * *",
		Run: func(context.Context, scheduler.Run) error { return nil }}))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- jobs.Run(running) }()
	defer func() { stop(); <-ended }()
	s.until("the job", func() bool {
		reports, err := failure.Collect(jobs.List(ctx))
		return err == nil && len(reports) == 1
	})
	s.queue("/jobs/election", 1)

	for list, elsewhere := range map[string]string{
		"locks":     "/orders/1, /orders/2, /orders/3, and more: lockstep locks /",
		"elections": "/billing, /jobs/election: lockstep elections /",
		"queue ls":  "/mails: lockstep queue ls /", "gates": "/upkeep: lockstep gates /",
		"jobs": "/jobs: lockstep jobs /",
	} {
		out, errs := s.listed(list)
		require.Empty(t, out)
		require.Contains(t, errs, "; elsewhere "+elsewhere+"\n")
	}
	code, _, errs := s.run("queue", "ls", "mails")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "there is also a node /mails: lockstep queue ls /mails\n")
	code, _, errs = s.run("elections", "transfer", "billing", "x")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "there is also a node /billing: lockstep elections /billing\n")

	// Each command prints the same path of a job, and takes it.
	require.Contains(t, s.ok("jobs", "/"), "/jobs/often  0 3 * * *")
	require.Contains(t, s.ok("jobs", "/jobs"), "/jobs/often  0 3 * * *")
	require.Contains(t, s.ok("jobs", "/jobs/often"), "at 03:00")
	require.Contains(t, s.ok("top", "/", "--once", "--view", "jobs"), "/jobs/often  ")
	s.ok("jobs", "pause", "/jobs/often")
	report, err := jobs.Inspect(ctx, "often")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), report.Paused, time.Hour)
	s.ok("jobs", "resume", "/jobs/often")
	s.ok("runs", "/jobs/often")
	for _, args := range [][]string{{"jobs", "pause", "/jobs"}, {"jobs", "trigger", "/jobs/none"}, {"runs", "/none"}} {
		code, _, errs = s.run(args...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errs, "there is no job "+args[len(args)-1]+"\n")
	}
}

// listed runs a list without a NAME.
func (s *stage) listed(list string) (out, errs string) {
	s.t.Helper()
	code, out, errs := s.run(strings.Fields(list)...)
	require.Equal(s.t, 0, code, errs)
	return out, errs
}
