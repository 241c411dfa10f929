package barrier_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestMemberReturningToItsRoundHasDiedInside: a member's session is lost, and a round begins with
// its node, which the servers still have. The member is back before they remove it. To the other
// member it is inside, so it must not wait for another round.
func TestMemberReturningToItsRoundHasDiedInside(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := []*zktest.Member{w.awakeMember("a"), w.member("b")}
		bs := doubles(2, ms...)
		first := enter(t, t.Context(), bs[0])
		s := w.session(ms[0])
		ms[0].Link.BlackHole(true, true)
		second := enter(t, t.Context(), bs[1]).round()
		<-s.Done()
		require.Len(t, w.Children(w.in()), 2, "the servers have not noticed the loss")
		ms[0].Link.Heal()
		require.ErrorIs(t, first.failed(), framework.ErrSessionLost)
		require.NoError(t, second.Leave(t.Context()))
		w.nobody()
	})
}

// TestMemberStartingAnotherRoundStaysOutside: the third of a barrier of two finds two members
// before it whose round has not begun, and begins it for them.
func TestMemberStartingAnotherRoundStaysOutside(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := doubles(2, ms...)
		first := enter(t, t.Context(), bs[0])
		ms[1].Link.Delay(300 * time.Millisecond) // it has its node, and does not know yet
		slow := enter(t, t.Context(), bs[1])
		await(func() bool { return len(w.Children(w.in())) == 2 })
		w.session(ms[2])
		third := enter(t, t.Context(), bs[2])
		version := func() int32 { n, _ := w.Node(path); return n.Stat.Version }
		require.EqualValues(t, 1, version(), "the third has begun the round")
		rs := []*barrier.Round{first.round(), slow.round()}
		require.False(t, third.over(), "%v", third.err)
		leaveAll(t, rs...)
		require.ErrorIs(t, third.failed(), barrier.ErrTooMany)
	})
}

// TestTheFirstMembersEnterWhenNumbersWrap: the number of the one that has waited longest is the
// highest int32.
func TestTheFirstMembersEnterWhenNumbersWrap(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := doubles(2, ms...)
		leaveAll(t, enterAll(t, bs[:2]...)...)
		require.NoError(t, w.Number(w.in(), math.MaxInt32))
		first := enter(t, t.Context(), bs[0])
		require.Equal(t, []string{"m-2147483647"}, w.Children(w.in()))
		ms[1].Link.Delay(300 * time.Millisecond)
		slow := enter(t, t.Context(), bs[1])
		await(func() bool { return len(w.Children(w.in())) == 2 })
		third := enter(t, t.Context(), bs[2])
		rs := []*barrier.Round{first.round(), slow.round()}
		require.False(t, third.over(), "%v", third.err)
		leaveAll(t, rs...)
		require.ErrorIs(t, third.failed(), barrier.ErrTooMany)
	})
}

// TestAGuardIsCheckedByTheServers: a member's node is deleted, and the member has not heard of it
// when it sends a guarded write.
func TestAGuardIsCheckedByTheServers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		rs := enterAll(t, doubles(2, ms...)...)
		ms[0].Link.Delay(time.Second)
		require.NoError(t, ms[1].Delete(t.Context(), rs[0].Node(), framework.AnyVersion))
		require.NoError(t, rs[0].Err(), "it has not heard of the deletion")
		_, err := ms[0].Multi(t.Context(), rs[0].Guard(), framework.CreateOp("/x", nil, framework.Persistent))
		require.ErrorIs(t, err, framework.ErrNoNode)
		_, there := w.Node("/x")
		require.False(t, there)
		require.NoError(t, rs[1].Leave(t.Context()))
	})
}

// TestRoundStartingBetweenTwoReads: a member that is one too many reads that a round is inside, and
// then who is inside. Between the two reads that round ends and the next one begins.
func TestRoundStartingBetweenTwoReads(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := doubles(2, ms...)
		rs := enterAll(t, bs[:2]...)
		s := w.session(ms[2])
		read := make(chan struct{}, 1)
		defer w.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpGetData && r.Path == path {
				select {
				case read <- struct{}{}:
				default:
				}
			}
		})()
		ms[2].Link.Delay(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		third := enter(t, ctx, bs[2])
		<-read
		leaveAll(t, rs...)
		rs = enterAll(t, bs[:2]...)
		require.ErrorIs(t, third.failed(), context.DeadlineExceeded)
		leaveAll(t, rs...)
		w.nobody()
	})
}
