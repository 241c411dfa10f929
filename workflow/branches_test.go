package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestAWaitIsOverBesideALongBranch: one function of Parallel goes on once its time, its signal or
// the end of its child has come, although another one works for hours. A limit that is over is
// settled then.
func TestAWaitIsOverBesideALongBranch(t *testing.T) {
	for name, test := range map[string]struct {
		wait      func(ctx context.Context, run *workflow.Run) error
		meanwhile func(ctx context.Context, m *worker) error
		goesOn    time.Duration
	}{
		"limit": {func(ctx context.Context, run *workflow.Run) error {
			_, err := workflow.Await[string](ctx, run, "approved", 10*time.Minute)
			if errors.Is(err, framework.ErrTimeout) {
				return nil
			}
			return errors.Join(err, errors.New("it is not over"))
		}, func(context.Context, *worker) error { return nil }, 10 * time.Minute},
		"sleep": {func(ctx context.Context, run *workflow.Run) error { return run.Sleep(ctx, "nap", 10*time.Minute) },
			func(context.Context, *worker) error { return nil }, 10 * time.Minute},
		"signal": {func(ctx context.Context, run *workflow.Run) error {
			_, err := workflow.Await[string](ctx, run, "approved", 0)
			return err
		}, func(ctx context.Context, m *worker) error { return m.Signal(ctx, "x", "approved", "eve") },
			5 * time.Minute},
		"signal before the limit": {func(ctx context.Context, run *workflow.Run) error {
			_, err := workflow.Await[string](ctx, run, "approved", 10*time.Minute)
			return err
		}, func(ctx context.Context, m *worker) error { return m.Signal(ctx, "x", "approved", "eve") },
			5 * time.Minute},
		"child": {func(ctx context.Context, run *workflow.Run) error {
			_, err := child[string](ctx, run, "c", "approval", 0)
			return err
		}, func(ctx context.Context, m *worker) error { return m.Signal(ctx, "x.c", "approved", "eve") },
			5 * time.Minute},
		"in a Parallel of its own": {func(ctx context.Context, run *workflow.Run) error {
			return run.Parallel(ctx, func(ctx context.Context) error { return run.Sleep(ctx, "nap", 10*time.Minute) },
				func(ctx context.Context) error { return run.Sleep(ctx, "short nap", time.Minute) })
		}, func(context.Context, *worker) error { return nil }, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				began := time.Now()
				wentOn, calls := make(chan time.Duration, 1), 0
				kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
					calls++
					return 1, run.Parallel(ctx, func(ctx context.Context) error {
						err := test.wait(ctx, run)
						wentOn <- time.Since(began)
						return err
					}, func(ctx context.Context) error {
						return run.Do(ctx, "long", func(context.Context, workflow.Key) error {
							time.Sleep(2 * time.Hour)
							return nil
						})
					})
				})
				m := w.flows("a").work(kind, approval(0))
				m.start("work", "x", 0)
				time.Sleep(5*time.Minute - time.Since(began))
				require.NoError(t, test.meanwhile(t.Context(), m))
				m.await("x", workflow.Done)
				require.InDelta(t, test.goesOn.Seconds(), (<-wentOn).Seconds(), 3)
				require.Equal(t, 1, calls)
			})
		})
	}
}

// TestARunWaitsOnTheServersWhenNoBranchWorks: a function of Parallel waits in the process only as
// long as another one works. A wait within a step does not.
func TestARunWaitsOnTheServersWhenNoBranchWorks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		await := func(ctx context.Context, run *workflow.Run, signal string) error {
			_, err := workflow.Await[string](ctx, run, signal, 0)
			return err
		}
		work := func(run *workflow.Run, name string, d time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				return run.Do(ctx, name, func(context.Context, workflow.Key) error { time.Sleep(d); return nil })
			}
		}
		kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return 1, run.Parallel(ctx, func(ctx context.Context) error {
				return run.Parallel(ctx, func(ctx context.Context) error { return await(ctx, run, "a") },
					work(run, "short", time.Hour))
			}, func(ctx context.Context) error {
				return run.Do(ctx, "step", func(ctx context.Context, _ workflow.Key) error {
					err := run.Parallel(ctx, func(ctx context.Context) error { return await(ctx, run, "in a step") })
					done.add("step returns %v", errors.Is(err, workflow.ErrWaiting))
					return err
				})
			}, func(ctx context.Context) error {
				if err := work(run, "long", 2*time.Hour)(ctx); err != nil {
					return err
				}
				return await(ctx, run, "b")
			})
		})
		m := w.flows("a").work(kind)
		m.start("work", "x", 0)
		settled()
		require.Equal(t, []string{"step returns true"}, done.all())
		time.Sleep(90 * time.Minute)
		require.Equal(t, workflow.Active, m.inspect("x").State)
		time.Sleep(time.Hour)
		report := m.inspect("x")
		require.Equal(t, workflow.Waiting, report.State, report.Error)
		require.ElementsMatch(t, []string{`signal "a"`, `signal "b"`, `signal "in a step"`}, report.Waits)
	})
}
