package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMembersEnterAndLeaveTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		bs := doubles(3, w.members(3)...)
		for round := range int64(4) {
			a := enter(t, t.Context(), bs[0])
			b := enter(t, t.Context(), bs[1])
			require.False(t, a.over() || b.over())
			c := enter(t, t.Context(), bs[2])
			rs := []*barrier.Round{a.round(), b.round(), c.round()}
			for _, r := range rs {
				require.Equal(t, round+1, r.Number())
			}
			x, y := leave(t.Context(), rs[0]), leave(t.Context(), rs[2])
			time.Sleep(time.Minute)
			require.False(t, x.over() || y.over())
			require.ErrorIs(t, rs[0].Err(), locks.ErrReleased)
			require.ErrorIs(t, context.Cause(rs[0].Context()), locks.ErrReleased)
			require.NoError(t, rs[1].Err())
			z := leave(t.Context(), rs[1])
			for _, e := range []*exit{x, y, z} {
				require.True(t, e.over())
				require.NoError(t, e.err)
			}
			require.NoError(t, rs[1].Leave(t.Context()), "leaving again is harmless")
			w.nobody()
		}
	})
}

// TestManyRoundsAtFullSpeed counts who is inside, and what a round costs.
func TestManyRoundsAtFullSpeed(t *testing.T) {
	for _, n := range []int{1, 2, 8, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				const warm, rounds = 2, 50
				bs := doubles(n, w.members(n)...)
				var entered, left, before atomic.Int64
				var all sync.WaitGroup
				for i, b := range bs {
					all.Go(func() {
						for round := range int64(warm + rounds) {
							if i == 0 && round == warm {
								before.Store(w.total())
							}
							entered.Add(1)
							r, err := b.Enter(t.Context())
							if err != nil || entered.Load() < (round+1)*int64(n) || r.Number() != round+1 {
								t.Errorf("%v, or too early", err)
								return
							}
							left.Add(1)
							if err := r.Leave(t.Context()); err != nil || left.Load() < (round+1)*int64(n) {
								t.Errorf("%v, or too early", err)
								return
							}
						}
					})
				}
				all.Wait()
				w.nobody()
				requests := float64(w.total()-before.Load()) / rounds
				t.Logf("%d members: %.2f requests a round", n, requests)
				require.LessOrEqual(t, requests, 4*float64(n)+0.5)
			})
		})
	}
}

// total counts the requests that the recipe makes.
func (w *world) total() (n int64) {
	for op, count := range w.Requests() {
		switch op {
		case zktest.OpMulti, zktest.OpSetData, zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2,
			zktest.OpExists, zktest.OpCreate:
			n += count
		}
	}
	return n
}

func TestMemberDyingWhileWaitingFreesItsPlace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(4)
		bs := doubles(3, ms...)
		a := enter(t, t.Context(), bs[0])
		dead := enter(t, t.Context(), bs[1])
		ms[1].Link.Cut()
		time.Sleep(2 * timeout)
		c := enter(t, t.Context(), bs[2])
		require.False(t, a.over() || c.over(), "two of three are there")
		d := enter(t, t.Context(), bs[3])
		leaveAll(t, a.round(), c.round(), d.round())
		require.False(t, dead.over())
		require.NoError(t, ms[1].Close(context.Background()))
		require.ErrorIs(t, dead.failed(), framework.ErrClosed)
		w.nobody()
	})
}

func TestMemberDyingInsideLetsOthersLeave(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(4)
		bs := doubles(3, ms...)
		rs := enterAll(t, bs[:3]...)
		ms[1].Link.BlackHole(true, true)
		began := time.Now()
		x, y := leave(t.Context(), rs[0]), leave(t.Context(), rs[2])
		<-x.done
		<-y.done
		require.NoError(t, errors.Join(x.err, y.err))
		require.ErrorIs(t, rs[1].Err(), framework.ErrSessionLost, "the dead knew it before the others left")
		require.Less(t, time.Since(began), 2*timeout)
		require.ErrorIs(t, rs[1].Leave(t.Context()), framework.ErrSessionLost)

		again := enterAll(t, bs[0], bs[2], bs[3])
		require.Equal(t, int64(2), again[0].Number())
		leaveAll(t, again...)
		ms[1].Link.Heal()
	})
}

func TestNextRoundStartsAfterAllDieInside(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(6)
		bs := doubles(3, ms...)
		enterAll(t, bs[:3]...)
		for _, m := range ms[:3] {
			m.Link.Cut()
		}
		a := enter(t, t.Context(), bs[3])
		b := enter(t, t.Context(), bs[4])
		time.Sleep(timeout / 2)
		c := enter(t, t.Context(), bs[5])
		require.False(t, a.over() || b.over() || c.over(), "the former round may not be over")
		for _, r := range []*barrier.Round{a.round(), b.round(), c.round()} {
			require.Equal(t, int64(2), r.Number())
			defer leave(t.Context(), r)
		}
	})
}

func TestEndedWaitLeavesNoNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		bs := doubles(3, w.members(3)...)
		a := enter(t, t.Context(), bs[0])
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		err := enter(t, ctx, bs[1]).failed()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, framework.ErrSuspended)
		require.ErrorContains(t, err, "enter "+path)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Len(t, w.Children(w.in()), 1)
		c := enter(t, t.Context(), bs[2])
		require.False(t, a.over() || c.over())
		b := enter(t, t.Context(), bs[1])
		leaveAll(t, a.round(), b.round(), c.round())
	})
}

// TestContextEndAtAnyStepLeavesNoNode ends contexts at many moments, with replies lost on the way.
// All members of a round get the same outcome.
func TestContextEndAtAnyStepLeavesNoNode(t *testing.T) {
	for at := range 80 {
		in(t, func(t *testing.T, w *world) {
			ms := w.members(2)
			bs := doubles(2, ms...)
			if at%2 == 0 {
				leaveAll(t, enterAll(t, bs...)...)
			}
			ms[0].Link.Delay(7 * time.Millisecond)
			if at%3 == 1 {
				w.DropReply(1+at%4, zktest.Match{Op: zktest.OpMulti, Session: w.session(ms[0]).ID(), Path: "/",
					Func: zktest.Request.Writes})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*2*time.Millisecond)
			defer cancel()
			first := enter(t, ctx, bs[0])
			time.Sleep(20 * time.Millisecond)
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			second := enter(t, ctx, bs[1])
			<-first.done
			<-second.done
			require.Equal(t, first.err == nil, second.err == nil, "at %d: %v, %v", at, first.err, second.err)
			if first.err == nil {
				leaveAll(t, first.r, second.r)
			}
			time.Sleep(time.Second)
			w.nobody()
			leaveAll(t, enterAll(t, bs...)...)
		})
	}
}

// TestWaitEndedWhileDisconnectedHasUnknownOutcome, and frees the place in the background.
func TestWaitEndedWhileDisconnectedHasUnknownOutcome(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		a := enter(t, ctx, bs[0])
		ms[0].Link.Cut()
		began := time.Now()
		err := a.failed()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrSuspended)
		require.LessOrEqual(t, time.Since(began), 1100*time.Millisecond)
		first := w.session(ms[0])
		ms[0].Link.Heal()
		time.Sleep(timeout / 2)
		w.nobody()
		require.NoError(t, first.Err(), "it was not the end of the session that has freed the place")
	})
}

func TestLeaveEndedByContextHasLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rs := enterAll(t, doubles(2, w.members(2)...)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rs[0].Leave(ctx), context.DeadlineExceeded)
		require.Len(t, w.Children(w.in()), 1)
		again := leave(t.Context(), rs[0])
		require.False(t, again.over())
		ended, end := context.WithCancel(t.Context())
		end()
		require.NoError(t, rs[1].Leave(ended), "it was the last, and has ended the round")
		<-again.done
		require.NoError(t, again.err)
		w.nobody()
	})
}
