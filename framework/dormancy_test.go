package framework_test

import (
	"context"
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

// sleepy is the configuration of sessions that sleep.
var sleepy = framework.Config{SessionTimeout: timeout}

// writesOf counts the writes and syncs of a session while f runs.
func writesOf(zk *zktest.Server, s *framework.Session, f func()) (writes, syncs int) {
	var w, y atomic.Int64
	stop := zk.Observe(func(r zktest.Request) {
		switch {
		case r.Session != s.ID():
		case r.Op == zktest.OpSync:
			y.Add(1)
		case r.Op == zktest.OpMulti || r.Op == zktest.OpCreate || r.Op == zktest.OpDelete:
			w.Add(1)
		}
	})
	f()
	stop()
	return int(w.Load()), int(y.Load())
}

// held creates a node and holds it.
func held(t *testing.T, s *framework.Session, path string) primitives.Hold {
	t.Helper()
	h, err := primitives.Of(s).Hold(t.Context(), createOwn(t, s, path))
	require.NoError(t, err)
	require.Positive(t, s.LeaseRemaining(), "granted without a lease")
	return h
}

// TestIdleSessionSendsNoWrites for an hour, with a reconnect, and keeps its one session.
func TestIdleSessionSendsNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		writes, syncs := writesOf(zk, s, func() {
			time.Sleep(30 * time.Minute)
			m.Link.Reset()
			time.Sleep(30 * time.Minute)
		})
		require.Zero(t, writes)
		require.Equal(t, 1, syncs, "after the reconnect")
		require.NoError(t, s.Err())
		require.Zero(t, s.LeaseRemaining())
		require.Equal(t, framework.Connected, s.State())
		require.False(t, m.Status().Awake)
	})
}

// TestASessionIsAwakeWhileItHolds and for a session timeout after that.
func TestASessionIsAwakeWhileItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		time.Sleep(time.Hour)
		h := held(t, s, "/a")
		time.Sleep(time.Hour)
		require.NoError(t, h.Err())
		require.True(t, m.Status().Awake)
		h.End(context.Canceled)
		h.End(context.Canceled)
		time.Sleep(timeout - time.Second)
		require.True(t, m.Status().Awake)
		time.Sleep(timeout/2 + time.Second)
		require.False(t, m.Status().Awake)
		require.NoError(t, s.Err())
		writes, _ := writesOf(zk, s, func() { time.Sleep(time.Hour) })
		require.Zero(t, writes)
	})
}

// TestWakingTakesTwoWritesOfOneConnection at any age of the connection; the connect request needs
// one.
func TestWakingTakesTwoWritesOfOneConnection(t *testing.T) {
	for phase := range 40 {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			idle, want := time.Duration(phase)*timeout/10, 2
			if idle < timeout/2 {
				want = 1
			}
			time.Sleep(idle)
			node := createOwn(t, s, "/a")
			var left time.Duration
			writes, _ := writesOf(zk, s, func() {
				_, err := primitives.Of(s).Hold(t.Context(), node)
				require.NoError(t, err)
				left = s.LeaseRemaining()
			})
			if idle < timeout/2 || idle > timeout {
				require.Equal(t, want, writes, "idle for %v", idle)
			}
			require.GreaterOrEqual(t, left, timeout/4, "idle for %v", idle)
			require.Less(t, left, timeout-timeout/100)
			time.Sleep(2 * timeout)
			require.NoError(t, s.Err())
		})
	}
}

// TestOneWakingForAll who ask at once.
func TestOneWakingForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		node := createOwn(t, s, "/a")
		time.Sleep(time.Hour)
		m.Link.Delay(10 * time.Millisecond)
		var granted atomic.Int64
		writes, _ := writesOf(zk, s, func() {
			for range 100 {
				go func() {
					if _, err := primitives.Of(s).Hold(t.Context(), node); err == nil {
						granted.Add(1)
					}
				}()
			}
			time.Sleep(100 * time.Millisecond)
		})
		require.EqualValues(t, 100, granted.Load())
		require.Equal(t, 2, writes)
	})
}

// TestAFaultInTheMiddleOfWaking loses a reply, or the connection, at each of the waking's requests.
func TestAFaultInTheMiddleOfWaking(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSync} {
		for nth := 1; nth <= 2; nth++ {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", sleepy)
				s := session(t, m)
				node := createOwn(t, s, "/a")
				time.Sleep(time.Hour)
				f := zk.DropReply(nth, zktest.Match{Op: op, Session: s.ID()})
				h, err := primitives.Of(s).Hold(t.Context(), node)
				require.NoError(t, err)
				require.Positive(t, s.LeaseRemaining())
				<-f.Hit()
				time.Sleep(2 * timeout)
				require.NoError(t, h.Err())
			})
		}
	}
}

// TestAWakingEndsWithItsContext while the servers do not answer. The session sleeps again.
func TestAWakingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		s := session(t, m)
		node := createOwn(t, s, "/a")
		time.Sleep(time.Hour)
		m.Link.BlackHole(true, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := primitives.Of(s).Hold(ctx, node)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		m.Link.Heal()
		time.Sleep(3 * timeout)
		require.NoError(t, s.Err())
		require.False(t, m.Status().Awake)
	})
}

// TestExpiredSessionGetsNoGrant in its sleep, also when no server says so.
func TestExpiredSessionGetsNoGrant(t *testing.T) {
	for _, silently := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			node := createOwn(t, s, "/a")
			time.Sleep(time.Hour + timeout/5) // between two pings
			m.Link.BlackHole(true, true)
			if silently {
				time.Sleep(timeout + time.Second)
				require.False(t, alive(zk, s.ID()))
			} else {
				require.NoError(t, zk.Expire(s.ID()))
			}
			require.NoError(t, s.Err(), "it sleeps")
			var granted atomic.Bool
			go func() {
				_, err := primitives.Of(s).Hold(t.Context(), node)
				granted.Store(err == nil)
			}()
			time.Sleep(timeout / 2)
			m.Link.Heal()
			<-s.Done()
			synctest.Wait()
			require.False(t, granted.Load())
			require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
		})
	}
}

// TestDormantSessionSurvivesServerFaults: a suspension of less than its timeout. A longer one ends
// it.
func TestDormantSessionSurvivesServerFaults(t *testing.T) {
	for cut, want := range map[time.Duration]bool{timeout - time.Second: true, timeout + time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			time.Sleep(time.Hour)
			m.Link.Cut()
			time.Sleep(cut)
			require.Equal(t, want, s.Err() == nil)
			m.Link.Heal()
			time.Sleep(timeout)
		})
	}
}

// TestStoppedProcessWakesAgain: its lease has lapsed while nothing was held, and is not revived.
func TestStoppedProcessWakesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		clock := &jumping{Clock: clock.Time()}
		m := zk.Member(t, "a", sleepy, testclock.WithClock(clock))
		s := session(t, m)
		node := createOwn(t, s, "/a")
		h, err := primitives.Of(s).Hold(t.Context(), node)
		require.NoError(t, err)
		h.End(context.Canceled)
		require.Positive(t, s.LeaseRemaining())
		clock.ahead.Store(int64(timeout))
		require.NoError(t, s.Err(), "nothing was held")
		require.Zero(t, s.LeaseRemaining())
		began := time.Now()
		_, err = primitives.Of(s).Hold(t.Context(), node)
		require.NoError(t, err)
		require.Greater(t, time.Since(began), timeout/4, "the packets from before the stop do not count")
		require.Positive(t, s.LeaseRemaining())
	})
}

// TestHoldRequestedWhileSessionFallsAsleep has a lease, and keeps it.
func TestHoldRequestedWhileSessionFallsAsleep(t *testing.T) {
	for at := range 100 {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", sleepy)
			s := session(t, m)
			node := createOwn(t, s, "/a")
			h, err := primitives.Of(s).Hold(t.Context(), node)
			require.NoError(t, err)
			h.End(context.Canceled)
			time.Sleep(timeout + time.Duration(at)*timeout/400)
			h, err = primitives.Of(s).Hold(t.Context(), node)
			require.NoError(t, err)
			require.Positive(t, s.LeaseRemaining())
			time.Sleep(3 * timeout)
			require.NoError(t, h.Err())
		})
	}
}
