package workflow_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestOneRunForEachTickOfAJob: docs/workflow.md shows the job. A member dies as it starts a run:
// before the servers have the run, or after.
func TestOneRunForEachTickOfAJob(t *testing.T) {
	for _, afterStart := range []bool{false, true} {
		in(t, func(t *testing.T, w *world) {
			var starts atomic.Int64
			counting := newFunction("invoices",
				func(_ context.Context, run *workflow.Run, _ any) (string, error) { return run.ID(), nil })
			member := func(name string) (*worker, context.CancelFunc) {
				m := w.flows(name).work(counting)
				jobs := scheduler.New(m.Client, "/jobs")
				ctx, stop := context.WithCancel(t.Context())
				require.NoError(t, jobs.Add(scheduler.Job{Name: "invoices", Spec: "@every 1h",
					Guarantee: scheduler.AtLeastOnce, Attempts: 6,
					Run: func(ctx context.Context, r scheduler.Run) error {
						start := func() error {
							return m.Start(ctx, "invoices", "invoices-"+r.Tick.UTC().Format(time.RFC3339), nil)
						}
						if starts.Add(1) != 2 {
							return start()
						}
						if afterStart {
							if err := start(); err != nil {
								return err
							}
						}
						m.Link.Cut()
						<-ctx.Done()
						return ctx.Err()
					}}))
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = jobs.Run(ctx)
				}()
				return m, func() {
					stop()
					<-done
				}
			}
			a, stopA := member("a")
			b, stopB := member("b")
			time.Sleep(4*time.Hour + 30*time.Minute)
			a.Link.Heal()
			b.Link.Heal()
			settled()
			runs, err := failure.Collect(a.List(t.Context()))
			require.NoError(t, err)
			ticks := map[string]bool{}
			for _, r := range runs {
				require.Equal(t, workflow.Done, r.State)
				ticks[r.ID] = true
			}
			require.Len(t, ticks, 4, fmt.Sprint(ticks))
			require.Len(t, runs, 4)
			stopA()
			stopB()
		})
	}
}
