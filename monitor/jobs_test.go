package monitor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// schedule runs a scheduler with one job, which runs each minute, until stop is called.
func (w *world) schedule(m *zktest.Member, job string, run func() error) (stop func()) {
	w.t.Helper()
	s := scheduler.New(m.Client, "/app/cron", scheduler.WithGrace(0))
	require.NoError(w.t, s.Add(scheduler.Job{Name: job, Spec: "* * * * *",
		Run: func(context.Context, scheduler.Run) error { return run() }}))
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

func TestJobWithoutMembers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		stop := w.schedule(m, "rollup", func() error { return nil })
		w.watch("x")
		w.scans(10)
		require.Empty(t, w.news())
		stop()
		w.scans(2)
		require.Equal(t, []string{"x begins no member runs it /app/cron/rollup"}, w.news())
		w.scans(20)
		require.Empty(t, w.news(), "a new text is no event")
		stop = w.schedule(m, "rollup", func() error { return nil })
		w.scans(3)
		require.Contains(t, w.news(), "x ends no member runs it /app/cron/rollup")
		stop()
	})
}

func TestJobThatFailsAgainAndAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var succeeds atomic.Bool
		defer w.schedule(w.member("app"), "rollup", func() error {
			if succeeds.Load() {
				return nil
			}
			return errors.New("no disk")
		})()
		w.watch("x", monitor.WithJobFailures(4))
		w.scans(5)
		require.Empty(t, w.news(), "two runs have failed")
		w.scans(6)
		require.Equal(t, []string{"x begins failed /app/cron/rollup"}, w.news())
		require.Contains(t, w.last().Text, "no disk")
		succeeds.Store(true)
		w.scans(5)
		require.Equal(t, []string{"x ends failed /app/cron/rollup"}, w.news())
		w.scans(10)
		require.Empty(t, w.news())
	})
}

func TestARunUnderWayDoesNotEndARowOfFailedRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		runs, end := 0, make(chan struct{})
		defer w.schedule(w.member("app"), "rollup", func() error {
			if runs++; runs > 2 {
				<-end
			}
			return errors.New("no disk")
		})()
		defer close(end)
		w.watch("x", monitor.WithJobFailures(2))
		w.scans(6)
		require.Equal(t, []string{"x begins failed /app/cron/rollup"}, w.news())
		w.scans(4)
		require.Empty(t, w.news(), "the third run is under way")
	})
}
