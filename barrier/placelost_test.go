package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
)

// TestLostPlaceIsNotOfMemberInside: numbers have begun again with another number of members, so
// that a member inside has the name that the lost place had.
func TestLostPlaceIsNotOfMemberInside(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		old := enter(t, t.Context(), barrier.NewDoubleBarrier(ms[0].Client, path, 3))
		require.Equal(t, []string{"m-0000000000"}, w.Children(w.in()))
		ms[0].Link.Cut()
		time.Sleep(2 * timeout)
		rs := enterAll(t, doubles(2, ms[1:]...)...)
		require.Contains(t, []string{rs[0].Node(), rs[1].Node()}, w.in()+"/m-0000000000")
		ms[0].Link.Heal()
		require.ErrorIs(t, old.failed(), framework.ErrSessionLost, "nobody knows what came before numbers began again")
		time.Sleep(2 * timeout)
		for _, r := range rs {
			require.NoError(t, r.Err())
		}
		leaveAll(t, rs...)
	})
}

func TestLostPlaceIsNotOfWaitingMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		old := enter(t, t.Context(), barrier.NewDoubleBarrier(ms[0].Client, path, 3))
		ms[0].Link.Cut()
		time.Sleep(2 * timeout)
		waits := enter(t, t.Context(), barrier.NewDoubleBarrier(ms[1].Client, path, 2))
		time.Sleep(2 * timeout)
		before := w.Children(w.in())
		require.Equal(t, []string{"m-0000000000"}, before)
		ms[0].Link.Heal()
		require.ErrorIs(t, old.failed(), framework.ErrSessionLost)
		time.Sleep(2 * timeout)
		require.Equal(t, before, w.Children(w.in()))
		leaveAll(t, waits.roundWith(barrier.NewDoubleBarrier(ms[2].Client, path, 2))...)
	})
}

// TestPlaceOfDeletedBarrierIsNotOfItsSuccessor: somebody deletes the barrier while a member is cut
// off, and others make it anew with the same numbers. The member must neither delete nor take for
// its own what is there now.
func TestPlaceOfDeletedBarrierIsNotOfItsSuccessor(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		in(t, func(t *testing.T, w *world) {
			ms := w.members(3)
			bs := doubles(2, ms...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			old := enter(t, ctx, bs[0])
			first := w.session(ms[0])
			ms[0].Link.Cut()
			if gaveUp {
				synctest.Wait() // until the session is suspended
				cancel()
				require.ErrorIs(t, old.failed(), framework.ErrSuspended)
			}
			_, err := ms[1].Multi(t.Context(), framework.DeleteOp(w.in()+"/m-0000000000", framework.AnyVersion),
				framework.DeleteOp(w.in(), framework.AnyVersion),
				framework.DeleteOp(path+"/round", framework.AnyVersion),
				framework.DeleteOp(path, framework.AnyVersion))
			require.NoError(t, err)
			waits := enter(t, t.Context(), bs[1])
			ms[0].Link.Heal()
			if !gaveUp {
				require.ErrorIs(t, old.failed(), framework.ErrNoNode)
			}
			time.Sleep(timeout / 2)
			require.NoError(t, first.Err())
			require.Equal(t, []string{"m-0000000000"}, w.Children(w.in()))
			leaveAll(t, waits.roundWith(bs[2])...)
		})
	}
}

// TestWaitEndedDuringCreateHasUnknownOutcome: the request has arrived, the answer has not, and a
// round begins with the place.
func TestWaitEndedDuringCreateHasUnknownOutcome(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		leaveAll(t, enterAll(t, bs...)...)
		ms[0].Link.BlackHole(false, true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		a := enter(t, ctx, bs[0])
		b := enter(t, t.Context(), bs[1]).round()
		require.EqualValues(t, 2, b.Number())
		err := a.failed()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrSuspended)
		ms[0].Link.Heal()
		require.NoError(t, b.Leave(t.Context()))
		leaveAll(t, enterAll(t, bs...)...)
	})
}

// TestRoundStartsWithUnacknowledgedPlace: the same, but the session is lost, and with it the place.
func TestRoundStartsWithUnacknowledgedPlace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		leaveAll(t, enterAll(t, bs...)...)
		ms[0].Link.BlackHole(false, true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*timeout)
		defer cancel()
		a := enter(t, ctx, bs[0])
		b := enter(t, t.Context(), bs[1]).round()
		require.EqualValues(t, 2, b.Number())
		ms[0].Link.Cut()
		require.NoError(t, b.Leave(t.Context()), "once the servers know that the other is dead")
		ms[0].Link.Heal()
		require.ErrorIs(t, a.failed(), framework.ErrSessionLost)
		leaveAll(t, enterAll(t, bs...)...)
	})
}
