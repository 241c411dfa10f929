package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestADelayedStart: the function is called when the delay is over. A second start changes nothing.
func TestADelayedStart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("m").work(fiveSteps(&done))
		began, delay := time.Now(), workflow.WithStartDelay(time.Hour)
		require.NoError(t, m.Start(t.Context(), "five", "x", 1, delay))
		require.NoError(t, m.Start(t.Context(), "five", "cancelled", 1, delay))
		time.Sleep(10 * time.Minute)
		require.NoError(t, m.Start(t.Context(), "five", "x", 1, delay))
		require.NoError(t, m.Start(t.Context(), "five", "x", 1))
		require.NoError(t, m.Requeue(t.Context(), "x"))
		require.Equal(t, workflow.Waiting, m.inspect("x").State)
		require.NoError(t, m.Cancel(t.Context(), "cancelled", ""))
		require.Empty(t, done.all())
		m.await("x", workflow.Done)
		require.InDelta(t, time.Hour, time.Since(began), float64(5*time.Second))
		require.Len(t, done.all(), 5)
		require.ErrorIs(t, m.Start(t.Context(), "five", "y", 1, workflow.WithStartDelay(0)), framework.ErrInvalid)
	})
}

// TestStartWithASignal: the run has the signal from its start, or gets it if it has started before.
// At each request in turn the reply is lost.
func TestStartWithASignal(t *testing.T) {
	for nth := range 8 {
		in(t, func(t *testing.T, w *world) {
			m := w.flows("m").work(approval(0))
			settled()
			if nth > 0 {
				w.DropReply(nth, zktest.Match{Func: func(r zktest.Request) bool { return r.Op != zktest.OpPing }})
			}
			require.NoError(t, m.Start(t.Context(), "approval", "x", 0, workflow.WithSignal("approved", "eve")))
			m.await("x", workflow.Done)
			m.start("approval", "y", 0)
			for range 2 {
				require.NoError(t, m.Start(t.Context(), "approval", "y", 0, workflow.WithSignal("approved", "eve")))
			}
			m.await("y", workflow.Done)
			other := workflow.WithSignal("approved", "bob")
			require.ErrorIs(t, m.Start(t.Context(), "approval", "y", 0, other), workflow.ErrSignalled)
			late := workflow.WithSignal("late", 1)
			require.ErrorIs(t, m.Start(t.Context(), "approval", "y", 0, late), workflow.ErrFinished)
			require.ErrorIs(t, m.Start(t.Context(), "approval", "z", 0, late, late), framework.ErrInvalid)
			bad := workflow.WithSignal("a/b", 1)
			require.ErrorIs(t, m.Start(t.Context(), "approval", "z", 0, bad), framework.ErrInvalid)
			_, err := m.Inspect(t.Context(), "z")
			require.ErrorIs(t, err, framework.ErrNotFound)
		})
	}
}

// TestRemove: a finished run is removed and its id used again, also when replies are lost. A child
// stays as long as its parent.
func TestRemove(t *testing.T) {
	for nth := range 8 {
		in(t, func(t *testing.T, w *world) {
			var done doneLog
			parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
				return child[int](ctx, run, "c", "five", n)
			})
			m := w.flows("m").work(fiveSteps(&done), approval(0), parent)
			m.start("parent", "p", 1)
			m.await("p", workflow.Done)
			m.start("approval", "waits", 0)
			settled()
			require.ErrorIs(t, m.Remove(t.Context(), "none"), framework.ErrNotFound)
			require.ErrorIs(t, m.Remove(t.Context(), "waits"), workflow.ErrNotFinished)
			require.ErrorIs(t, m.Remove(t.Context(), "p.c"), workflow.ErrNotFinished)
			require.ErrorContains(t, m.Remove(t.Context(), "p.c"), `its parent "p" exists`)
			if nth > 0 {
				w.DropReply(nth, zktest.Match{Func: func(r zktest.Request) bool { return r.Op != zktest.OpPing }})
			}
			require.NoError(t, m.Remove(t.Context(), "p"))
			require.ErrorIs(t, m.Remove(t.Context(), "p"), framework.ErrNotFound)
			require.NoError(t, m.Remove(t.Context(), "p.c"))
			m.start("parent", "p", 2)
			require.JSONEq(t, "12", string(m.await("p", workflow.Done).Result))
			require.Len(t, done.all(), 10)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, m.Remove(ended, "p"), context.Canceled)
			require.ErrorIs(t, workflow.New(m.Member.Client, "/").Remove(t.Context(), "p"), framework.ErrInvalid)
		})
	}
}
