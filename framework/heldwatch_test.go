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
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// heldLong holds n nodes for so long that each has a watch: for two heartbeats, and not longer if
// they are many.
func heldLong(t *testing.T, s *framework.Session, n int) (nodes []string, holds []primitives.Hold) {
	t.Helper()
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("/held-%05d", i))
		holds = append(holds, held(t, s, nodes[i]))
	}
	time.Sleep(timeout/2 + time.Second)
	return nodes, holds
}

// TestADeletionByAnOperatorIsNoticedAtOnce ends the hold of one lock of many, in one way of the
// network, once all have stood for T/2 and again right after a reconnect. The nodes are first and
// last among those that the client asks for watches on.
func TestADeletionByAnOperatorIsNoticedAtOnce(t *testing.T) {
	const way = 10 * time.Millisecond
	for _, n := range []int{4, 5000} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			operator := session(t, zk.Member(t, "operator", sleepy))
			nodes, holds := heldLong(t, s, n)
			m.Link.Delay(way)
			isNoticed := func(i int) {
				t.Helper()
				require.NoError(t, operator.Delete(t.Context(), nodes[i], framework.AnyVersion))
				time.Sleep(way)
				synctest.Wait()
				require.ErrorIs(t, holds[i].Err(), framework.ErrNodeGone)
			}
			isNoticed(0)
			isNoticed(n - 1)
			connected := make(chan struct{})
			go func() {
				for c := range m.FollowState(t.Context()) {
					if c.State == framework.Suspended {
						connected <- struct{}{}
					}
				}
			}()
			synctest.Wait()
			m.Link.Reset()
			<-connected
			require.NoError(t, s.Sync(t.Context(), "/")) // once it is connected again
			time.Sleep(20 * way)
			isNoticed(1)
			isNoticed(n - 2)
			for _, h := range holds[2 : n-2] {
				require.NoError(t, h.Err())
			}
		})
	}
}

// TestAHoldEndsThoughItsNodeIsCreatedAgain at once, by another session or by its own, before the
// client hears of the deletion.
func TestAHoldEndsThoughItsNodeIsCreatedAgain(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, m *zktest.Member, remove func()){
		"young": func(_ *testing.T, _ *zktest.Member, remove func()) { remove() },
		"watched": func(_ *testing.T, _ *zktest.Member, remove func()) {
			time.Sleep(timeout)
			remove()
		},
		"cut off": func(_ *testing.T, m *zktest.Member, remove func()) {
			time.Sleep(timeout)
			m.Link.Cut()
			remove()
			m.Link.Heal()
		},
		"after a reconnect": func(t *testing.T, m *zktest.Member, remove func()) {
			time.Sleep(timeout)
			m.Link.Reset()
			remove()
		},
		"watched by another waiter": func(t *testing.T, m *zktest.Member, remove func()) {
			remove()
			_, w, err := session(t, m).WatchExists(t.Context(), "/a")
			require.NoError(t, err)
			t.Cleanup(w.Stop)
		},
	} {
		for _, byItself := range []bool{false, true} {
			if byItself && name == "cut off" {
				continue
			}
			t.Run(fmt.Sprintf("%s, by itself: %v", name, byItself), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					zk := zktest.Start(t)
					m := zk.Member(t, "a", sleepy)
					s, operator := session(t, m), session(t, zk.Member(t, "operator", sleepy))
					other := operator
					if byItself {
						other = s
					}
					h, stays := held(t, s, "/a"), held(t, s, "/b")
					replace(t, m, func() {
						require.NoError(t, operator.Delete(t.Context(), "/a", framework.AnyVersion))
						createOwn(t, other, "/a")
					})
					time.Sleep(timeout)
					require.ErrorIs(t, h.Err(), framework.ErrNodeGone)
					require.ErrorContains(t, h.Err(), "/a")
					require.NoError(t, stays.Err())
					_, err := other.Exists(t.Context(), "/a")
					require.NoError(t, err, "the other's node stays")
				})
			})
		}
	}
}

// TestAHoldAsksAgainWhoseNodeItIs: another waiter has armed the watch on a node of the same name,
// and the servers throttle the hold's own request.
func TestAHoldAsksAgainWhoseNodeItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", sleepy))
		operator := session(t, zk.Member(t, "operator", sleepy))
		h := held(t, s, "/a")
		require.NoError(t, operator.Delete(t.Context(), "/a", framework.AnyVersion))
		createOwn(t, operator, "/a")
		_, w, err := s.WatchExists(t.Context(), "/a")
		require.NoError(t, err)
		defer w.Stop()
		throttled := zk.Throttle(1, zktest.Match{Session: s.ID(), Op: zktest.OpExists})
		time.Sleep(timeout)
		<-throttled.Hit()
		require.ErrorIs(t, h.Err(), framework.ErrNodeGone)
	})
}

// TestWatchesOfHeldNodesReadNoData, which may be large: only whose nodes they are.
func TestWatchesOfHeldNodesReadNoData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		var data, stats atomic.Int64
		defer zk.Observe(func(r zktest.Request) {
			switch {
			case r.Session != s.ID():
			case r.Op == zktest.OpGetData:
				data.Add(1)
			case r.Op == zktest.OpExists:
				stats.Add(1)
			}
		})()
		heldLong(t, s, 50)
		m.Link.Reset()
		time.Sleep(timeout / 4)
		require.Zero(t, data.Load())
		require.EqualValues(t, 100, stats.Load(), "once in the beginning, and once after the reconnect")
	})
}

// TestAClosedClientsHoldsEndWithIt, although the servers tell of their nodes' deletion, too. Which
// of the two a hold hears of first is chance.
func TestAClosedClientsHoldsEndWithIt(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			m := zktest.Start(t).Member(t, "a", sleepy)
			_, holds := heldLong(t, session(t, m), 100)
			time.Sleep(timeout)
			require.NoError(t, m.Client.Close(t.Context()))
			synctest.Wait()
			for _, h := range holds {
				require.ErrorIs(t, h.Err(), framework.ErrClosed)
			}
		})
	}
}

// TestAHoldOfALostSessionEndsWithIt, although a heartbeat finds that its node was deleted, too: the
// process was stopped before it read the answer.
func TestAHoldOfALostSessionEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, clock := zktest.Start(t), &jumping{Clock: clock.Time()}
		s := session(t, zk.Member(t, "a", sleepy, testclock.WithClock(clock)))
		h := held(t, s, "/a")
		require.NoError(t, session(t, zk.Member(t, "operator", sleepy)).Delete(t.Context(), "/a", framework.AnyVersion))
		defer zk.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpMulti {
				clock.ahead.Store(int64(timeout))
			}
		})()
		time.Sleep(timeout/4 + time.Second)
		require.Positive(t, clock.ahead.Load())
		require.ErrorIs(t, h.Err(), framework.ErrSessionLost)
	})
}

// TestADeletionIsNoticedWithoutItsWatch: one that the connection was lost with, or that was used up
// by a change, is asked for again.
func TestADeletionIsNoticedWithoutItsWatch(t *testing.T) {
	for name, lose := range map[string]func(zk *zktest.Server, m *zktest.Member, remove func()){
		"deleted while the client is cut off": func(_ *zktest.Server, m *zktest.Member, remove func()) {
			m.Link.Cut()
			remove()
			m.Link.Heal()
		},
		"deleted after a reconnect": func(_ *zktest.Server, m *zktest.Member, remove func()) {
			m.Link.Reset()
			time.Sleep(time.Second)
			remove()
		},
		"deleted after a restart of the server": func(zk *zktest.Server, _ *zktest.Member, remove func()) {
			zk.Restart()
			time.Sleep(time.Second)
			remove()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", sleepy)
				operator := session(t, zk.Member(t, "operator", sleepy))
				nodes, holds := heldLong(t, session(t, m), 300)
				last := len(nodes) - 1
				lose(zk, m, func() {
					require.NoError(t,
						operator.Delete(t.Context(), nodes[last], framework.AnyVersion))
				})
				time.Sleep(timeout/2 + time.Second)
				require.ErrorIs(t, holds[last].Err(), framework.ErrNodeGone)
				require.NoError(t, operator.Delete(t.Context(), nodes[0], framework.AnyVersion))
				synctest.Wait()
				require.ErrorIs(t, holds[0].Err(), framework.ErrNodeGone, "all are watched again")
				require.NoError(t, holds[1].Err())
			})
		})
	}
}

// TestChangedHeldNodeIsWatchedAgain.
func TestChangedHeldNodeIsWatchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		operator := session(t, zk.Member(t, "operator", sleepy))
		nodes, holds := heldLong(t, session(t, zk.Member(t, "a", sleepy)), 1)
		_, err := operator.Set(t.Context(), nodes[0], []byte("x"), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(timeout / 2)
		require.NoError(t, holds[0].Err())
		require.NoError(t, operator.Delete(t.Context(), nodes[0], framework.AnyVersion))
		synctest.Wait()
		require.ErrorIs(t, holds[0].Err(), framework.ErrNodeGone)
	})
}

// TestHeartbeatsCheckUnwatchedNodes, up to a hundred nodes, and one that is.
func TestHeartbeatsCheckUnwatchedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", sleepy))
		checks := func(during func()) (most, least int) {
			var mu sync.Mutex
			least = 1 << 30
			stop := zk.Observe(func(r zktest.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Session == s.ID() && r.Op == zktest.OpMulti {
					most, least = max(most, len(r.Parts)), min(least, len(r.Parts))
				}
			})
			defer stop()
			during()
			mu.Lock()
			defer mu.Unlock()
			return most, least
		}
		most, _ := checks(func() { heldLong(t, s, 250) })
		require.Equal(t, 100, most)
		most, least := checks(func() { time.Sleep(10 * timeout) })
		require.Equal(t, 1, most)
		require.Equal(t, 1, least)
	})
}

// TestAShortHoldAsksForNoWatch, and a long one leaves none behind.
func TestAShortHoldAsksForNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", sleepy))
		held(t, s, "/keeps-the-session-awake")
		for i := range 100 {
			h := held(t, s, fmt.Sprint("/a", i))
			time.Sleep(timeout / 8)
			h.End(context.Canceled)
		}
		require.Equal(t, 1, framework.WatchEntries(s))
		_, holds := heldLong(t, s, 10)
		require.Equal(t, 11, framework.WatchEntries(s))
		for _, h := range holds {
			h.End(context.Canceled)
			require.NoError(t, s.Delete(t.Context(), "/held-00000", framework.AnyVersion))
			require.NoError(t, s.Create(t.Context(), "/held-00000", nil, framework.Ephemeral))
		}
		synctest.Wait()
		require.Equal(t, 10, framework.WatchEntries(s), "of the nodes that are still there")
	})
}

// TestAYoungHoldIsChecked by the next heartbeat, before it has a watch.
func TestAYoungHoldIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", sleepy))
		operator := session(t, zk.Member(t, "operator", sleepy))
		h := held(t, s, "/a")
		require.NoError(t, operator.Delete(t.Context(), "/a", framework.AnyVersion))
		time.Sleep(timeout/4 + time.Second)
		require.ErrorIs(t, h.Err(), framework.ErrNodeGone)
	})
}
