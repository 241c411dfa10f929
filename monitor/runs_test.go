package monitor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/workflow"
)

// executes runs the runs of a kind at /app/orders until stop is called.
func (w *world) executes(name string, kind workflow.Kind[int, string],
	f func(context.Context, *workflow.Run, int) (string, error)) (flows *workflow.Workflows, stop func()) {
	w.t.Helper()
	flows = workflow.New(w.member(name).Client, "/app/orders")
	w.t.Cleanup(func() { _ = flows.Close(context.Background()) })
	if f == nil {
		return flows, func() {}
	}
	require.NoError(w.t, flows.Register(kind.Function(f)))
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- flows.Work(ctx) }()
	w.t.Cleanup(cancel)
	return flows, func() { cancel(); require.NoError(w.t, <-done) }
}

// TestFailedRuns are one finding for all runs at a path, from one more than WithFailedRuns on,
// until they are removed. A failed child does not count.
func TestFailedRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := workflow.NewKind[int, string]("order")
		flows, _ := w.executes("app", kind, func(ctx context.Context, run *workflow.Run, n int) (string, error) {
			if n == 0 { // its child fails, and it goes on
				_, err := kind.Child(ctx, run, "child", 1)
				return "done without", onlyUnexpected(err)
			}
			return "", workflow.Permanent(errors.New("no shelf is free"))
		})
		x := w.watch("x", monitor.WithFailedRuns(1))
		for _, id := range []string{"parent", "first"} {
			_, err := kind.Start(t.Context(), flows, id, len(id)%2)
			require.NoError(t, err)
		}
		w.scans(4)
		require.Empty(t, w.news(), "one has failed, and a child")
		_, err := kind.Start(t.Context(), flows, "second", 1)
		require.NoError(t, err)
		w.scans(4)
		require.Equal(t, []string{"x begins failed runs /app/orders"}, w.news())
		require.Equal(t, `2 runs have failed, the latest is "second": no shelf is free`, w.last().Text)
		require.Equal(t, "/app/orders/second", w.last().Node)
		first, err := flows.Inspect(t.Context(), "first")
		require.NoError(t, err)
		require.True(t, first.Changed.Equal(w.last().Since))
		require.NoError(t, flows.Remove(t.Context(), "second"))
		w.scans(4)
		require.Equal(t, []string{"x ends failed runs /app/orders"}, w.news())

		report, err := monitor.Check(t.Context(), x.Client, root)
		require.NoError(t, err)
		require.Len(t, report.Findings, 1, "by default one is too many")
		require.Equal(t, `the run "first" has failed: no shelf is free`, report.Findings[0].Text)
	})
}

// onlyUnexpected leaves the end of the context, and passes over the failure of a child.
func onlyUnexpected(err error) error {
	if errors.Is(err, workflow.ErrFailed) {
		return nil
	}
	return err
}

// TestUntakenRuns: no member executes the kind, until one starts. A run that waits is none.
func TestUntakenRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := workflow.NewKind[int, string]("order")
		flows, _ := w.executes("client", kind, nil)
		w.watch("x", monitor.WithUntakenRun(10*time.Minute))
		for _, id := range []string{"first", "second"} {
			_, err := kind.Start(t.Context(), flows, id, 1)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		time.Sleep(7 * time.Minute)
		require.Empty(t, w.news())
		time.Sleep(4 * time.Minute)
		require.Equal(t, []string{"x begins untaken run /app/orders"}, w.news())
		require.Regexp(t, `^no member has taken the run "first" of the kind "order" for 10m\S+; such runs: 1$`, w.last().Text)
		w.executes("late", kind, func(ctx context.Context, run *workflow.Run, n int) (string, error) {
			return workflow.Await[string](ctx, run, "paid", 0)
		})
		w.scans(4)
		require.Equal(t, []string{"x ends untaken run /app/orders"}, w.news())
		time.Sleep(time.Hour)
		require.Empty(t, w.news())
	})
}

// TestWorkflowsThatCannotBeRead are a finding, and their other findings stay as they were.
func TestWorkflowsThatCannotBeRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := workflow.NewKind[int, string]("order")
		flows, stop := w.executes("app", kind, func(context.Context, *workflow.Run, int) (string, error) {
			return "", workflow.Permanent(errors.New("no shelf is free"))
		})
		w.watch("x")
		_, err := kind.Start(t.Context(), flows, "first", 1)
		require.NoError(t, err)
		w.scans(4)
		require.Equal(t, []string{"x begins failed runs /app/orders"}, w.news())
		stop()
		app := w.member("operator")
		var node string
		for _, n := range w.Tree("/app/orders/runs") {
			if len(n.Data) > 0 {
				node = n.Path
				break
			}
		}
		stat, err := app.Exists(t.Context(), node)
		require.NoError(t, err)
		_, err = app.Set(t.Context(), node, []byte(`{"v":99,"kind":"run"}`), stat.Version)
		require.NoError(t, err)
		w.scans(4)
		require.Equal(t, []string{"x begins unread " + node}, w.news(), "the failed run stays a finding")
		require.NoError(t, app.Delete(t.Context(), node, framework.AnyVersion))
	})
}
