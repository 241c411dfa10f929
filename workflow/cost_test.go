package workflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTransactionsOfARun counts what docs/workflow.md says of its cost. Alone in its queue, a run
// shares no transaction with others.
func TestTransactionsOfARun(t *testing.T) {
	for _, test := range []struct {
		name         string
		then         func(ctx context.Context, run *workflow.Run) error
		transactions int64
	}{
		{"five steps", func(context.Context, *workflow.Run) error { return nil }, 9},
		{"five steps and a signal", func(ctx context.Context, run *workflow.Run) error {
			_, err := workflow.Await[string](ctx, run, "approved", 0)
			return err
		}, 14},
		{"five steps and a sleep",
			func(ctx context.Context, run *workflow.Run) error { return run.Sleep(ctx, "nap", time.Minute) }, 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.flows("m").work(newFunction("work",
					func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
						for i := range 5 {
							if _, err := workflow.Step(ctx, run, fmt.Sprint(i),
								func(context.Context, workflow.Key) (int, error) { return i, nil }); err != nil {
								return 0, err
							}
						}
						return 0, test.then(ctx, run)
					}))
				var transactions atomic.Int64
				execute := func(id string) {
					m.start("work", id, 0)
					settled()
					if strings.Contains(test.name, "signal") {
						require.NoError(t, m.Signal(t.Context(), id, "approved", "eve"))
					}
					time.Sleep(2 * time.Minute)
				}
				execute("first") // creates directories
				defer w.Observe(func(r zktest.Request) {
					if r.Op != zktest.OpMulti ||
						slices.ContainsFunc(r.Parts, func(part zktest.Request) bool {
							return part.Err != 0 ||
								part.Op == zktest.OpCreateContainer
						}) {
						return // it makes a directory, which many runs share, or was refused for want of it
					}
					sync := len(r.Parts) == 1 && strings.HasPrefix(r.Parts[0].Path, runsPath+"/runs/")
					if r.Writes() || sync {
						transactions.Add(1)
					}
				})()
				execute("second")
				require.Equal(t, test.transactions, transactions.Load())
			})
		})
	}
}
