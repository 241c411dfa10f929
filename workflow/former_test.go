package workflow_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestAnIDIsKept: the run was removed, and its id is kept for two days after the run's end.
func TestAnIDIsKept(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return child[int](ctx, run, "c", "five", 1)
		}, workflow.WithRunAttempts(1, time.Second))
		m := w.flows("a", workflow.WithRetention(time.Hour)).work(fiveSteps(&done), parent)
		keep := workflow.WithKeptID(6 * time.Hour)
		for _, id := range []string{"x", "p.c"} {
			require.NoError(t, m.Start(t.Context(), "five", id, 1, keep))
			m.await(id, workflow.Done)
		}
		time.Sleep(3 * time.Hour)
		_, err := m.Inspect(t.Context(), "x")
		require.ErrorIs(t, err, framework.ErrNotFound)
		_, err = m.Wait(t.Context(), "x")
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.ErrorIs(t, m.Signal(t.Context(), "x", "s", 1), framework.ErrNotFound)
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Empty(t, runs)
		require.NoError(t, m.Start(t.Context(), "five", "x", 1, keep), "it was started")
		require.NoError(t, m.Start(t.Context(), "five", "x", 1))
		require.ErrorIs(t, m.Start(t.Context(), "five", "x", 2), workflow.ErrIDInUse)
		require.ErrorIs(t, m.Start(t.Context(), "parent", "x", 1), workflow.ErrIDInUse)
		require.ErrorIs(t, m.Start(t.Context(), "five", "x", 1,
			workflow.WithOps(framework.CheckOp("/", framework.AnyVersion))), workflow.ErrIDInUse)
		m.start("parent", "p", 1)
		require.Contains(t, m.await("p", workflow.Failed).Error, "its id is kept until")
		require.Len(t, done.all(), 10)
		time.Sleep(4 * time.Hour)
		require.NoError(t, m.Start(t.Context(), "five", "x", 2))
		m.await("x", workflow.Done)
		require.Len(t, done.all(), 15)
		require.ErrorIs(t, m.Start(t.Context(), "five", "y", 1, workflow.WithKeptID(0)), framework.ErrInvalid)
	})
}

// TestOneRunForATickThatIsRepeatedLate: a member dies after it has started the run of a tick, and
// the job is paused for hours. The run was removed when the attempt is repeated.
func TestOneRunForATickThatIsRepeatedLate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var starts atomic.Int64
		var executed doneLog
		kind := newFunction("invoices", func(_ context.Context, run *workflow.Run, _ any) (string, error) {
			executed.add("%s %s", run.ID(), run.UUID())
			return "", nil
		})
		member := func(name string) (*worker, *scheduler.Scheduler, context.CancelFunc) {
			m := w.flows(name, workflow.WithRetention(time.Hour)).work(kind)
			jobs := scheduler.New(m.Client, "/jobs")
			ctx, stop := context.WithCancel(t.Context())
			require.NoError(t, jobs.Add(scheduler.Job{Name: "invoices", Spec: "0 3 * * *",
				Guarantee: scheduler.AtLeastOnce, Attempts: 6,
				Run: func(ctx context.Context, r scheduler.Run) error {
					err := m.Start(ctx, "invoices", "invoices-"+r.Tick.UTC().Format(time.RFC3339), nil,
						workflow.WithKeptID(90*24*time.Hour))
					if starts.Add(1) == 1 {
						m.Link.Cut()
						<-ctx.Done()
						return ctx.Err()
					}
					return err
				}}))
			done := make(chan struct{})
			go func() { defer close(done); _ = jobs.Run(ctx) }()
			return m, jobs, func() { stop(); <-done }
		}
		a, _, stopA := member("a")
		settled()
		_, jobs, stopB := member("b")
		defer func() { a.Link.Heal(); settled(); stopA(); stopB() }()
		time.Sleep(time.Until(time.Date(2000, 1, 1, 3, 0, 1, 0, time.UTC)))
		require.NoError(t, jobs.Pause(t.Context(), "invoices"))
		time.Sleep(6 * time.Hour)
		require.NoError(t, jobs.Resume(t.Context(), "invoices"))
		time.Sleep(time.Hour)
		require.Greater(t, starts.Load(), int64(1), "the attempt was repeated")
		// the first member may have died while it executed the run: the same run is then executed
		// again
		runs := map[string]string{}
		for _, run := range executed.all() {
			id, uuid, _ := strings.Cut(run, " ")
			require.Contains(t, []string{"", uuid}, runs[id], id)
			runs[id] = uuid
		}
		require.NotEmpty(t, runs)
	})
}
