package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// These holders do not know yet that somebody has deleted their claim, as one that was stopped
// would not.

func TestLateAckOfLaneItemIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b, a := w.member("b"), w.member("a") // the first heartbeat of the second session comes late enough
		require.NoError(t, a.Put(t.Context(), "urgent", WithPriority(1)))
		late := a.take()
		require.Contains(t, late.Node(), "/lanes/1/")
		dir := testPath + "/tickets/1/0000000000"
		require.Len(t, w.Children(dir), 1)
		_, err := b.client.Multi(t.Context(), framework.DeleteOp(dir+"/"+w.Children(dir)[0], framework.AnyVersion),
			b.engine.store.nodes.SignalRecoverer())
		require.NoError(t, err)
		d := b.take()
		require.Equal(t, "urgent", d.Value)
		require.Equal(t, 2, d.Attempt)
		require.NoError(t, late.Context().Err(), "it has not noticed")
		require.ErrorIs(t, late.Ack(t.Context()), ErrLost)
		b.ack(d)
	})
}

func TestLateAckUnderAnotherLockIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		strict := WithOrder(Strict)
		a, b := w.member("a", strict, WithMaxInFlight(2)), w.member("b", strict)
		a.put(names(0, 3)...)
		late := a.take()
		lines := w.Children(testPath + "/lock")
		require.Len(t, lines, 1)
		require.NoError(t, b.client.Delete(t.Context(), testPath+"/lock/"+lines[0], framework.AnyVersion))
		d := b.take()
		require.Equal(t, "item 0", d.Value)
		require.NoError(t, late.Context().Err(), "it has not noticed")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := a.Take(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "nothing is claimed without the lock")
		synctest.Wait()
		n, _ := w.Node(testPath + "/items/0000000000/i-0000000001")
		require.Zero(t, n.Stat.Version)
		require.ErrorIs(t, late.Ack(t.Context()), ErrLost)
		b.ack(d)
		require.Equal(t, names(1, 3), b.drain(2))
	})
}
