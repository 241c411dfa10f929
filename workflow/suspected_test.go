package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/workflow"
)

// TestARunThatCrashesItsProcessesLeavesOthers: one run crashes each process at once that executes
// it. The others need a minute for their first step, so that none of them is recorded as long as
// all are executed beside it. Half of its losses later the suspected runs are executed one at a
// time, in a random order.
func TestARunThatCrashesItsProcessesLeavesOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const others = workflow.DefaultWorkers - 1
		crash := make(chan struct{}, 1)
		kind := newFunction("work", func(ctx context.Context, run *workflow.Run, crashes bool) (int, error) {
			if crashes {
				crash <- struct{}{}
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			return workflow.Step(ctx, run, "pay", func(ctx context.Context, _ workflow.Key) (int, error) {
				select {
				case <-time.After(time.Minute):
					return 1, nil
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			})
		})
		starter := w.flows("starter")
		starter.start("work", "crashes", true) // the first in the queue
		for i := range others {
			starter.start("work", fmt.Sprint("other", i), false)
		}
		for i := range workflow.DefaultMaxLosses + 1 {
			m := w.flows(fmt.Sprint("m", i)).work(kind)
			<-crash
			time.Sleep(time.Second) // so that all have been taken
			m.kill()
		}
		w.flows("last").work(kind)
		require.Contains(t, starter.await("crashes", workflow.Failed).Error, "51 executors were lost")
		for i := range others {
			starter.await(fmt.Sprint("other", i), workflow.Done)
		}
	})
}

// TestSuspectedRunsAreExecutedOneAtATime: a process has died with three runs that may lose one
// executor. In the next one, each begins when the one before has recorded a step, and one that was
// cancelled meanwhile does not begin.
func TestSuspectedRunsAreExecutedOneAtATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var calls doneLog
		steps, most := 0, 0
		kind := func(works bool) workflow.Function {
			return newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				calls.add("%s", run.ID())
				if !works {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				err := run.Do(ctx, "step", func(context.Context, workflow.Key) error {
					steps++
					most = max(most, steps)
					time.Sleep(time.Minute)
					steps--
					return nil
				})
				time.Sleep(time.Hour)
				return 1, err
			}, workflow.WithMaxLosses(1))
		}
		former := w.flows("former").work(kind(false))
		runs := []string{"a", "b", "c"}
		for _, id := range runs {
			former.start("work", id, 0)
		}
		settled()
		require.Len(t, calls.all(), 3)
		former.kill()
		began := time.Now()
		next := w.flows("next").work(kind(true))
		time.Sleep(90 * time.Second)
		first, second := calls.all()[3], calls.all()[4]
		require.Len(t, calls.all(), 5)
		for _, id := range runs {
			if id != first && id != second {
				require.NoError(t, next.Cancel(t.Context(), id, ""))
			}
		}
		next.await(first, workflow.Done)
		next.await(second, workflow.Done)
		require.Less(t, time.Since(began), 65*time.Minute)
		require.Len(t, calls.all(), 5)
		require.Equal(t, 1, most)
	})
}
