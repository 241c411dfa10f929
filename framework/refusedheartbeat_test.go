package framework_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// countSuspensions counts the suspensions of a member's sessions from now on.
func countSuspensions(t *testing.T, m *zktest.Member) *atomic.Int64 {
	var n atomic.Int64
	changes := m.FollowState(t.Context())
	go func() {
		for c := range changes {
			if c.State == framework.Suspended {
				n.Add(1)
			}
		}
	}()
	return &n
}

// TestDeletedYoungHoldsEndNoOther: an operator deletes a hundred young nodes of a session at once,
// over a link as slow as is permitted. A hold that nobody has touched stands, and so does the
// connection. The young holds end with the heartbeat that finds the first of them, and the round
// trip after it.
func TestDeletedYoungHoldsEndNoOther(t *testing.T) {
	for _, c := range []struct {
		roundTrip time.Duration
		young     int
	}{{time.Millisecond, 1}, {100 * time.Millisecond, 100}, {timeout / 15, 100}} {
		t.Run(fmt.Sprintf("%v %d", c.roundTrip, c.young), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, zk := t.Context(), zktest.Start(t)
				m := zk.Member(t, "a", sleepy)
				operator := session(t, zk.Member(t, "operator", sleepy))
				m.Link.Delay(c.roundTrip / 2)
				s := session(t, m)
				old := held(t, s, "/old")
				time.Sleep(3 * timeout)
				suspensions := countSuspensions(t, m)
				young, nodes := make([]primitives.Hold, c.young), make([]framework.Op, c.young)
				var all sync.WaitGroup
				for i := range c.young {
					path := fmt.Sprintf("/young-%03d", i)
					nodes[i] = framework.DeleteOp(path, framework.AnyVersion)
					all.Go(func() { young[i] = held(t, s, path) })
				}
				all.Wait()
				_, err := operator.Multi(ctx, nodes...)
				require.NoError(t, err)
				time.Sleep(timeout/4 + 4*c.roundTrip) // a heartbeat may be under way
				for _, h := range young {
					require.ErrorIs(t, h.Err(), framework.ErrNodeGone)
				}
				time.Sleep(2 * timeout)
				require.NoError(t, old.Err())
				require.Zero(t, suspensions.Load())
			})
		})
	}
}

// TestARefusedHeartbeatExtendsTheLease: an operator deletes a young node before each heartbeat, so
// that all are refused. Each is sent once.
func TestARefusedHeartbeatExtendsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", sleepy)
		operator := session(t, zk.Member(t, "operator", sleepy))
		s := session(t, m)
		old := held(t, s, "/old")
		suspensions := countSuspensions(t, m)
		var refused, accepted atomic.Int64
		defer zk.Observe(func(r zktest.Request) {
			switch {
			case r.Session != s.ID() || r.Op != zktest.OpMulti || r.Writes():
			case r.Parts[len(r.Parts)-1].Err != 0:
				refused.Add(1)
			default:
				accepted.Add(1)
			}
		})()
		for i := range int64(12) {
			young := held(t, s, fmt.Sprint("/young-", i))
			require.NoError(t, operator.Delete(t.Context(), fmt.Sprint("/young-", i), framework.AnyVersion))
			<-young.Context().Done()
			require.ErrorIs(t, young.Err(), framework.ErrNodeGone)
			synctest.Wait()
			require.Greater(t, s.LeaseRemaining(), timeout/2, i)
			require.Equal(t, i+1, refused.Load())
		}
		require.Zero(t, accepted.Load())
		require.NoError(t, old.Err())
		require.Zero(t, suspensions.Load())
	})
}
