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

// watchNewNode makes a node whose data a watches, and slows a's member down from then on.
func watchNewNode(t *testing.T, m *zktest.Member, a, b *framework.Session) *framework.Watch {
	t.Helper()
	require.NoError(t, b.Create(t.Context(), "/n", nil, framework.Persistent))
	_, _, data, err := a.WatchData(t.Context(), "/n")
	require.NoError(t, err)
	m.Link.Delay(10 * time.Millisecond)
	return data
}

// TestEventBeforeAnswerLeavesNoWatch: the event is that of a watch that was there before.
func TestEventBeforeAnswerLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		data := watchNewNode(t, m, a, b)
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

// hookedContext runs a function when a call begins to wait for the connection, and is over then.
type hookedContext struct {
	context.Context
	hook func()
	over bool
}

func (c *hookedContext) Done() <-chan struct{} {
	if !c.over {
		c.hook()
		c.over = true
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (c *hookedContext) Err() error {
	if c.over {
		return context.Canceled
	}
	return nil
}

// TestReadThatIsNotSentLeavesNoWatch: a wait for a missing node ends while somebody else is about
// to ask for the node's data, and gives up.
func TestReadThatIsNotSentLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		for range 20 { // the call may be sent nevertheless
			_, there, err := s.WatchExists(t.Context(), "/n")
			require.ErrorIs(t, err, framework.ErrNoNode)
			_, _, _, err = s.WatchData(&hookedContext{Context: t.Context(), hook: there.Stop}, "/n")
			require.Error(t, err)
			synctest.Wait()
			require.Empty(t, zk.Watches())
			require.Zero(t, framework.WatchEntries(s))
		}
	})
}

// TestAnswerBehindEventLeavesNoWatch: the event of a watch that was there before ends a wait before
// the wait's answer comes. Meanwhile somebody else is about to wait, and gives up.
func TestAnswerBehindEventLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		for range 20 { // the call may be sent nevertheless
			data := watchNewNode(t, m, a, b)
			given := make(chan error, 1)
			go func() {
				_, there, err := a.WatchExists(ctx, "/n")
				there.Stop()
				given <- err
			}()
			synctest.Wait()
			require.NoError(t, b.Delete(ctx, "/n", framework.AnyVersion))
			<-data.C() // the answer follows
			_, _, err := a.WatchExists(&hookedContext{Context: ctx, hook: func() {
				require.ErrorIs(t, <-given, framework.ErrNoNode)
				synctest.Wait()
			}}, "/n")
			require.Error(t, err)
			m.Link.Delay(0)
			time.Sleep(timeout)
			require.Empty(t, zk.Watches())
			require.Zero(t, framework.WatchEntries(a))
		}
	})
}

// TestThrottledReadBehindAnEventLeavesNoWatch: the event of a watch that was there before ends a
// wait before the wait's answer comes. The servers throttle the request of another wait, which
// began in between.
func TestThrottledReadBehindAnEventLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		data := watchNewNode(t, m, a, b)
		asked := 0
		throttled := zk.Throttle(1, zktest.Match{Op: zktest.OpExists, Func: func(zktest.Request) bool {
			asked++
			return asked == 2
		}})
		first := make(chan error, 1)
		go func() {
			_, _, err := a.WatchExists(ctx, "/n")
			first <- err
		}()
		synctest.Wait()
		require.NoError(t, b.Delete(ctx, "/n", framework.AnyVersion))
		<-data.C() // the answer follows
		_, there, err := a.WatchExists(ctx, "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.ErrorIs(t, <-first, framework.ErrNoNode)
		<-throttled.Hit()
		there.Stop()
		time.Sleep(timeout)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(a))
	})
}

// TestRemovalThatServersThrottleIsRepeated: a throttled removal leaves a watch for a while only.
func TestRemovalThatServersThrottleIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		_, there, err := s.WatchExists(t.Context(), "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		throttled := zk.Throttle(3, zktest.Match{Func: func(r zktest.Request) bool {
			return r.Op.String() == "removeWatches"
		}})
		there.Stop()
		<-throttled.Hit()
		time.Sleep(time.Minute)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(s))
	})
}
