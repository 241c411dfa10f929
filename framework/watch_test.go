package framework_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestWatchersShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		a, b := session(t, zk.Member(t, "a", config)), session(t, zk.Member(t, "b", config))
		require.NoError(t, a.Create(ctx, "/n", nil, framework.Persistent))
		var ws []*framework.Watch
		for range 100 {
			_, _, w, err := a.WatchData(ctx, "/n")
			require.NoError(t, err)
			ws = append(ws, w)
		}
		require.Len(t, zk.Watches(), 1)
		_, err := b.Set(ctx, "/n", []byte("x"), 0)
		require.NoError(t, err)
		for _, w := range ws {
			require.Equal(t, framework.Event{Kind: framework.NodeChanged, Path: "/n"}, <-w.C())
		}
		require.Empty(t, zk.Watches())
	})
}

func TestWatchKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))

		_, _, w, err := s.WatchData(ctx, "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.Nil(t, w)
		require.Empty(t, zk.Watches(), "a missing node leaves no data watch")

		_, w, err = s.WatchExists(ctx, "/n")
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.NoError(t, s.Create(ctx, "/n", nil, framework.Persistent))
		require.Equal(t, framework.NodeCreated, (<-w.C()).Kind)

		_, _, w, err = s.WatchChildren(ctx, "/n")
		require.NoError(t, err)
		require.NoError(t, s.Create(ctx, "/n/k", nil, framework.Persistent))
		require.Equal(t, framework.ChildrenChanged, (<-w.C()).Kind)

		_, _, w, err = s.WatchData(ctx, "/n/k")
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, "/n/k", framework.AnyVersion))
		require.Equal(t, framework.NodeDeleted, (<-w.C()).Kind)
	})
}

// TestAReconnectWakesWatchers changes the node while the link is cut: nothing may be missed.
func TestAReconnectWakesWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		a, b := session(t, m), session(t, zk.Member(t, "b", config))
		require.NoError(t, b.Create(ctx, "/n", nil, framework.Persistent))
		_, _, w, err := a.WatchData(ctx, "/n")
		require.NoError(t, err)
		m.Link.Cut()
		require.NoError(t, b.Delete(ctx, "/n", framework.AnyVersion))
		time.Sleep(timeout / 8)
		m.Link.Heal()
		<-w.C()
		require.NoError(t, a.Err())
	})
}

// TestGivenUpWatchesDoNotPileUp gives up 10,000 waits, some of them while the server is asked.
func TestGivenUpWatchesDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		for i := range 10 {
			require.NoError(t, s.Create(t.Context(), fmt.Sprintf("/n%d", i), nil, framework.Persistent))
		}
		m.Link.Delay(time.Millisecond)
		for i := range 10000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4)*time.Millisecond)
			_, _, w, err := s.WatchData(ctx, fmt.Sprintf("/n%d", i%10))
			if err == nil {
				w.Stop()
			}
			cancel()
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, len(zk.Watches()), 10)
		require.LessOrEqual(t, framework.WatchEntries(s), 10)
	})
}

// lateContext ends between a call's wait for the connection and its wait for the answer.
type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Done() <-chan struct{} {
	if c.asked++; c.asked == 1 {
		return nil
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (c *lateContext) Err() error {
	if c.asked > 1 {
		return context.Canceled
	}
	return nil
}

// TestAWatchGivenUpBeforeItsCallHasBegun once ended the process.
func TestAWatchGivenUpBeforeItsCallHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, zktest.Start(t).Member(t, "a", config))
		for range 100 {
			_, _, w, err := s.WatchData(&lateContext{Context: t.Context()}, "/")
			if err == nil { // the answer was there as well
				w.Stop()
				continue
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Nil(t, w)
		}
		synctest.Wait()
		require.LessOrEqual(t, framework.WatchEntries(s), 1)
	})
}

// TestSharedWatchMissesNoChange has readers follow a node that changes, all of one session. One
// whose read overtook the request that armed the watch once slept through a change.
func TestSharedWatchMissesNoChange(t *testing.T) {
	const readers, changes = 16, 300
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		a, b := session(t, zk.Member(t, "a", config)), session(t, zk.Member(t, "b", config))
		require.NoError(t, a.Create(ctx, "/n", nil, framework.Persistent))
		var seen [readers]atomic.Int32
		var done sync.WaitGroup
		for i := range readers {
			done.Go(func() {
				for seen[i].Load() < changes {
					_, stat, w, err := a.WatchData(ctx, "/n")
					if err != nil {
						t.Error(err)
						return
					}
					seen[i].Store(stat.Version)
					if stat.Version < changes {
						<-w.C()
					}
					w.Stop()
				}
			})
		}
		for i := range int32(changes) {
			_, err := b.Set(ctx, "/n", nil, i)
			require.NoError(t, err)
			if i%10 == 0 { // all wait for the next one
				time.Sleep(time.Second)
				for r := range seen {
					require.Equal(t, i+1, seen[r].Load())
				}
			}
		}
		time.Sleep(time.Second)
		for r := range seen {
			require.EqualValues(t, changes, seen[r].Load())
		}
		done.Wait()
	})
}

// TestWatchOnMissingNodeIsRemovedWithLastWaiter: the server's watch on a missing node goes with the
// last who waits, and with nobody before; who waits again hears of the node.
func TestWatchOnMissingNodeIsRemovedWithLastWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		wait := func() *framework.Watch {
			_, w, err := s.WatchExists(ctx, "/a")
			require.ErrorIs(t, err, framework.ErrNoNode)
			return w
		}
		before := len(zk.Watches())
		for range 10 {
			first, second := wait(), wait()
			first.Stop()
			synctest.Wait()
			require.Len(t, zk.Watches(), before+1, "somebody waits")
			second.Stop()
			second.Stop()
			synctest.Wait()
			require.Len(t, zk.Watches(), before)
		}
		last := wait()
		wait().Stop()
		require.NoError(t, s.Create(ctx, "/a", nil, framework.Persistent))
		require.Equal(t, framework.NodeCreated, (<-last.C()).Kind)

		_, there, err := s.WatchExists(ctx, "/a")
		require.NoError(t, err)
		_, _, data, err := s.WatchData(ctx, "/a")
		require.NoError(t, err)
		there.Stop()
		require.NoError(t, s.Delete(ctx, "/a", framework.AnyVersion))
		require.Equal(t, framework.NodeDeleted, (<-data.C()).Kind)

		for range 200 { // the node comes while the last one stops
			gone := wait()
			go gone.Stop()
			require.NoError(t, s.Create(ctx, "/a", nil, framework.Persistent))
			_, _, data, err := s.WatchData(ctx, "/a")
			require.NoError(t, err)
			require.NoError(t, s.Delete(ctx, "/a", framework.AnyVersion))
			require.Equal(t, framework.NodeDeleted, (<-data.C()).Kind)
		}
	})
}

// TestSharedWatchTellsAllOfAChange reads a node twice at once: one request arms the watch for both
// readers. Each reader that has seen the former data is told of the change.
func TestSharedWatchTellsAllOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s, other := session(t, zk.Member(t, "a", config)), session(t, zk.Member(t, "b", config))
		require.NoError(t, other.Create(t.Context(), "/n", []byte("former"), framework.Persistent))
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				data, _, w, err := s.WatchData(ctx, "/n")
				if err != nil || string(data) != "former" {
					return
				}
				defer w.Stop()
				select {
				case <-w.C():
				case <-ctx.Done():
					t.Error("a reader was not told")
				}
			})
		}
		time.Sleep(500 * time.Microsecond)
		_, err := other.Set(t.Context(), "/n", []byte("new"), framework.AnyVersion)
		require.NoError(t, err)
		readers.Wait()
	})
}
