package workflow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/workflow"
)

// purge removes all items of a kind's queue, as an operator may do by mistake.
func (f *worker) purge(kind string) {
	f.t.Helper()
	q := queue.New(f.Client, runsPath+"/queues/"+kind, codec.Bytes(), queue.WithOrder(queue.Parallel))
	n, err := q.Purge(f.t.Context())
	require.NoError(f.t, err)
	require.Positive(f.t, n)
	require.NoError(f.t, q.Close(f.t.Context()))
}

// napping is a kind whose runs take a step, wait for an hour, and take another step.
func napping(done *doneLog) workflow.Function {
	return newFunction("napping", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
		if err := done.step(ctx, run, "before"); err != nil {
			return 0, err
		}
		if err := run.Sleep(ctx, "nap", time.Hour); err != nil {
			return 0, err
		}
		return 1, done.step(ctx, run, "after")
	})
}

// endsAtItsSecondCall is a kind whose function runs until it is given up, and ends at once when it
// is called again.
func endsAtItsSecondCall(done *doneLog) workflow.Function {
	called := false
	return newFunction("blocked", func(ctx context.Context, _ *workflow.Run, _ int) (int, error) {
		if called {
			return 1, nil
		}
		called = true
		<-ctx.Done()
		done.add("requeued: %v", context.Cause(ctx))
		return 0, ctx.Err()
	})
}

// TestRunsWithPurgedItemsGoOnAfterRequeue: one run was not taken yet, one waits for a time, one was
// cancelled while it had an item and is retried.
func TestRunsWithPurgedItemsGoOnAfterRequeue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("m").work(napping(&done))
		m.start("napping", "waits", 0)
		settled()
		m.stop()
		began := time.Now()
		m.start("napping", "cancelled", 0)
		m.start("napping", "active", 0)
		require.NoError(t, m.Cancel(t.Context(), "cancelled", ""))
		m.purge("napping")
		require.ErrorIs(t, m.Requeue(t.Context(), "cancelled"), workflow.ErrFinished)
		require.ErrorIs(t, m.Requeue(t.Context(), "none"), framework.ErrNotFound)
		require.NoError(t, m.Retry(t.Context(), "cancelled", ""))

		b := w.flows("b").work(napping(&done))
		time.Sleep(3 * time.Hour)
		ids := []string{"waits", "cancelled", "active"}
		for _, id := range ids {
			require.False(t, b.inspect(id).State.IsFinished(), "%s stands still", id)
		}
		for _, id := range ids {
			require.NoError(t, m.Requeue(t.Context(), id))
		}
		for _, id := range ids {
			b.await(id, workflow.Done)
		}
		require.Less(t, time.Since(began), 5*time.Hour)
		require.Len(t, done.all(), 6, "each step is taken once: %v", done.all())
	})
}

// TestOperatorsRequeueAtOnce: a member may execute a run when the second operator's item replaces
// that of the first.
func TestOperatorsRequeueAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("m").work(napping(&done))
		m.stop()
		m.start("napping", "x", 0)
		m.purge("napping")
		b := w.flows("b").work(napping(&done))
		var operators sync.WaitGroup
		for _, operator := range []*worker{m, b} {
			operators.Go(func() { require.NoError(t, operator.Requeue(t.Context(), "x")) })
		}
		operators.Wait()
		b.await("x", workflow.Done)
		var recorded []string
		for _, step := range b.inspect("x").Steps {
			recorded = append(recorded, step.Name)
		}
		require.Equal(t, []string{"before", "after"}, recorded)
	})
}

// TestRequeueOfAHealthyRun does no harm: a function that is executed ends and is called again, a
// wait for a time ends at its time, and a wait for a signal goes on.
func TestRequeueOfAHealthyRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("m").work(napping(&done), approval(0), endsAtItsSecondCall(&done))
		m.start("napping", "waits", 0)
		m.start("approval", "x", 0)
		m.start("blocked", "executed", 0)
		settled()
		began := time.Now()
		for _, id := range []string{"waits", "x", "executed"} {
			require.NoError(t, m.Requeue(t.Context(), id))
		}
		m.await("executed", workflow.Done)
		require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
		m.await("x", workflow.Done)
		m.await("waits", workflow.Done)
		require.InDelta(t, time.Hour, time.Since(began), float64(10*time.Second))
		require.ElementsMatch(t, []string{"before", "after",
			"requeued: the run has another item in its queue: the run's record was changed"}, done.all())
		require.ErrorIs(t, m.Requeue(t.Context(), "x"), workflow.ErrFinished)
	})
}

// TestRequeueWhoseContextEnds while the answer to one of its requests is under way. The run may
// have another item then, and the same call again does no harm.
func TestRequeueWhoseContextEnds(t *testing.T) {
	ended := 0
	for nth := 1; nth <= 6; nth++ {
		in(t, func(t *testing.T, w *world) {
			var done doneLog
			m := w.flows("m").work(napping(&done))
			m.stop()
			m.start("napping", "x", 0)
			m.purge("napping")
			const oneWay = 50 * time.Millisecond
			m.Link.Delay(oneWay)
			// the server has the nth request, and the answer is under way
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2*nth-1)*oneWay+time.Millisecond)
			defer cancel()
			if err := m.Requeue(ctx, "x"); err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				ended++
			}
			m.Link.Delay(0)
			require.NoError(t, m.Requeue(t.Context(), "x"))
			w.flows("b").work(napping(&done))
			m.await("x", workflow.Done)
			require.Equal(t, []string{"before", "after"}, done.all())
		})
	}
	require.GreaterOrEqual(t, ended, 3)
}
