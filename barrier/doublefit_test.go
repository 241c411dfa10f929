package barrier_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
)

func TestOneTooMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		bs := doubles(3, w.members(5)...)
		rs := enterAll(t, bs[:3]...)
		began := time.Now()
		err := enter(t, t.Context(), bs[3]).failed()
		require.ErrorIs(t, err, barrier.ErrTooMany)
		require.ErrorContains(t, err, "all 3 members are inside")
		require.LessOrEqual(t, time.Since(began), 2*timeout)
		require.Len(t, w.Children(w.in()), 3)
		late := enter(t, t.Context(), bs[4])
		require.False(t, late.over())
		leaveAll(t, rs...)
		err = late.failed()
		require.ErrorIs(t, err, barrier.ErrTooMany)
		require.ErrorContains(t, err, "taken place without this member")
		w.nobody()
	})
}

// TestOneTooManyAtOnce: of four that come at once to a barrier of three, three get in, and one is
// told.
func TestOneTooManyAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var inside, tooMany atomic.Int64
		var all sync.WaitGroup
		for _, b := range doubles(3, w.members(4)...) {
			all.Go(func() {
				r, err := b.Enter(t.Context())
				switch {
				case err == nil:
					inside.Add(1)
					time.Sleep(time.Second)
					_ = r.Leave(t.Context())
				case errors.Is(err, barrier.ErrTooMany):
					tooMany.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Equal(t, int64(3), inside.Load())
		require.Equal(t, int64(1), tooMany.Load())
		w.nobody()
	})
}

// TestRestartedMemberIsNotTooMany: its former self is dead, but the servers do not know yet.
func TestRestartedMemberIsNotTooMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(4)
		bs := doubles(3, ms...)
		rs := enterAll(t, bs[:3]...)
		ms[0].Link.Cut()
		again := enter(t, t.Context(), bs[3])
		leaveAll(t, rs[1:]...)
		next := enterAll(t, bs[1:3]...)
		require.Equal(t, int64(2), next[0].Number())
		leaveAll(t, next[0], next[1], again.round())
	})
}

// TestUnseenRoundWithDeadMemberIsNotTooMany: who was cut off sees only afterwards that a round has
// passed beside it. One of the others was dead, perhaps its own former self.
func TestUnseenRoundWithDeadMemberIsNotTooMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := doubles(2, ms...)
		dead := w.session(ms[0]).ID()
		enter(t, t.Context(), bs[0])
		ms[0].Link.Cut()
		time.Sleep(time.Second)
		ms[1].Link.Delay(300 * time.Millisecond)
		slow := enter(t, t.Context(), bs[1])
		await(func() bool { return len(w.Children(w.in())) == 2 })
		ms[2].Link.Delay(10 * time.Millisecond)
		third := enter(t, t.Context(), bs[2])
		await(func() bool { n, _ := w.Node(path); return n.Stat.Version == 1 })
		ms[2].Link.Cut() // it has begun the round of the two before it, and was not told
		require.Len(t, w.Children(w.in()), 3)
		r := slow.round()
		ms[1].Link.Delay(0)
		require.NoError(t, w.Expire(dead))
		require.NoError(t, r.Leave(t.Context()))
		ms[2].Link.Heal()
		time.Sleep(timeout / 2)
		require.False(t, third.over(), "%v", third.err)
		leaveAll(t, third.roundWith(bs[1])...)
	})
}

// TestTooManyIsReportedAfterUnseenRound: the same, but all of the others have left alive.
func TestTooManyIsReportedAfterUnseenRound(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := doubles(2, ms...)
		first := enter(t, t.Context(), bs[0])
		ms[1].Link.Delay(300 * time.Millisecond)
		slow := enter(t, t.Context(), bs[1])
		await(func() bool { return len(w.Children(w.in())) == 2 })
		ms[2].Link.Delay(10 * time.Millisecond)
		third := enter(t, t.Context(), bs[2])
		await(func() bool { n, _ := w.Node(path); return n.Stat.Version == 1 })
		ms[2].Link.Cut()
		leaveAll(t, first.round(), slow.round())
		ms[2].Link.Heal()
		require.ErrorIs(t, third.failed(), barrier.ErrTooMany)
		w.nobody()
	})
}

// await looks each millisecond, for ten seconds at most.
func await(is func() bool) {
	for range 10000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAnotherNumber(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		three := enter(t, t.Context(), barrier.NewDoubleBarrier(ms[0].Client, path, 3))
		err := enter(t, t.Context(), barrier.NewDoubleBarrier(ms[1].Client, path, 2)).failed()
		var differs *barrier.MismatchError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, barrier.MismatchError{Path: path, Stored: 3, Given: 2}, *differs)
		require.ErrorIs(t, err, framework.ErrMismatch)
		require.ErrorContains(t, err, "has 3, 2 was given")
		require.Len(t, w.Children(w.in()), 1)
		require.False(t, three.over())
	})
}

// TestMemberCountMayChangeWhenEmpty, and those who were there with the former one are told.
func TestMemberCountMayChangeWhenEmpty(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		three := doubles(3, ms...)
		for range 3 {
			leaveAll(t, enterAll(t, three...)...)
		}
		began := time.Now()
		two := doubles(2, ms[:2]...)
		rs := enterAll(t, two...)
		require.Equal(t, timeout, time.Since(began))
		require.Equal(t, int64(5), rs[0].Number(), "rounds are never counted twice")
		leaveAll(t, rs...)
		leaveAll(t, enterAll(t, two...)...)

		late := enter(t, t.Context(), three[0])
		require.False(t, late.over(), "it waits whether anybody is there: %v", late.err)
		leaveAll(t, enterAll(t, two...)...)
		require.ErrorIs(t, late.failed(), framework.ErrMismatch)
		w.nobody()
	})
}

func TestMembersOfOneClient(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := barrier.NewDoubleBarrier(w.member("a").Client, path, 5)
		var inside atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				for range 30 {
					r, err := b.Enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					inside.Add(1)
					time.Sleep(time.Millisecond)
					if n := inside.Load(); n != 5 {
						t.Errorf("%d are inside", n)
					}
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					if err := r.Leave(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.nobody()
	})
}
