package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestCancelledWaitForMissingNodeLeavesNoWatch: the caller's context ends before the answer.
func TestCancelledWaitForMissingNodeLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		m.Link.Delay(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		_, _, err := s.WatchExists(ctx, "/a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(3 * timeout)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(s))
	})
}

// TestEventBeforeAnswerLeavesNoWatch: the event is that of a watch that was there before.
func TestEventBeforeAnswerLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		require.NoError(t, b.Create(ctx, "/n", nil, framework.Persistent))
		_, _, data, err := a.WatchData(ctx, "/n")
		require.NoError(t, err)
		m.Link.Delay(10 * time.Millisecond)
		go func() { _ = b.Delete(ctx, "/n", framework.AnyVersion) }()
		_, there, err := a.WatchExists(ctx, "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.Equal(t, framework.NodeDeleted, (<-data.C()).Kind)
		there.Stop()
		time.Sleep(3 * timeout)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(a))
	})
}

// TestWaitEndedDuringReadLeavesNoWatch: somebody else asks for the missing node's data meanwhile.
func TestWaitEndedDuringReadLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		_, there, err := s.WatchExists(ctx, "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		m.Link.Delay(10 * time.Millisecond)
		go func() { _, _, _, _ = s.WatchData(ctx, "/n") }()
		synctest.Wait()
		there.Stop()
		time.Sleep(3 * timeout)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(s))
	})
}
