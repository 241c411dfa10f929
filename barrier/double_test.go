package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
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
			require.ErrorIs(t, rs[0].Err(), barrier.ErrLeft)
			require.ErrorIs(t, context.Cause(rs[0].Context()), barrier.ErrLeft)
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
		case zktest.OpMulti, zktest.OpSetData, zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2, zktest.OpExists, zktest.OpCreate:
			n += count
		}
	}
	return n
}

func TestAMemberThatDiesWhileItWaitsFreesItsPlace(t *testing.T) {
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

func TestAMemberThatDiesInsideLetsTheOthersLeave(t *testing.T) {
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

func TestAllDieInsideAndNothingIsLeftInTheWay(t *testing.T) {
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

func TestAWaitThatEndsLeavesNoNode(t *testing.T) {
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
		require.Len(t, w.Children(path+"/in"), 1)
		c := enter(t, t.Context(), bs[2])
		require.False(t, a.over() || c.over())
		b := enter(t, t.Context(), bs[1])
		leaveAll(t, a.round(), b.round(), c.round())
	})
}

// TestAContextThatEndsAnywhereLeavesNoNode ends contexts at many moments, with replies lost on the way. All
// members of a round get the same outcome.
func TestAContextThatEndsAnywhereLeavesNoNode(t *testing.T) {
	for at := range 80 {
		in(t, func(t *testing.T, w *world) {
			ms := w.members(2)
			bs := doubles(2, ms...)
			if at%2 == 0 {
				leaveAll(t, enterAll(t, bs...)...)
			}
			ms[0].Link.Delay(7 * time.Millisecond)
			if at%3 == 1 {
				w.DropReply(1+at%4, zktest.Match{Op: zktest.OpMulti, Session: w.session(ms[0]).ID(), Path: "/"})
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

// TestAWaitThatEndsWhileCutOffSaysThatItDoesNotKnow, and frees the place in the background.
func TestAWaitThatEndsWhileCutOffSaysThatItDoesNotKnow(t *testing.T) {
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

func TestLeaveThatEndsHasLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rs := enterAll(t, doubles(2, w.members(2)...)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rs[0].Leave(ctx), context.DeadlineExceeded)
		require.Len(t, w.Children(path+"/in"), 1)
		again := leave(t.Context(), rs[0])
		require.False(t, again.over())
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, rs[1].Leave(ended), context.Canceled)
		<-again.done
		require.NoError(t, again.err)
		w.nobody()
	})
}

func TestOneTooMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		bs := doubles(3, w.members(5)...)
		rs := enterAll(t, bs[:3]...)
		began := time.Now()
		err := enter(t, t.Context(), bs[3]).failed()
		require.ErrorIs(t, err, barrier.ErrTooMany)
		require.ErrorContains(t, err, "all 3 members are inside")
		require.LessOrEqual(t, time.Since(began), 2*timeout)
		require.Len(t, w.Children(path+"/in"), 3)
		late := enter(t, t.Context(), bs[4])
		require.False(t, late.over())
		leaveAll(t, rs...)
		err = late.failed()
		require.ErrorIs(t, err, barrier.ErrTooMany)
		require.ErrorContains(t, err, "passed beside this member")
		w.nobody()
	})
}

// TestOneTooManyAtOnce: of four that come at once to a barrier of three, three get in, and one is told.
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

// TestAMemberThatIsStartedAgainIsNotTooMany: its former self is dead, but the servers do not know yet.
func TestAMemberThatIsStartedAgainIsNotTooMany(t *testing.T) {
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

func TestAnotherNumber(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		three := enter(t, t.Context(), barrier.NewDouble(ms[0].Client, path, 3))
		err := enter(t, t.Context(), barrier.NewDouble(ms[1].Client, path, 2)).failed()
		var differs *barrier.MismatchError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, barrier.MismatchError{Path: path, Stored: 3, Given: 2}, *differs)
		require.ErrorIs(t, err, barrier.ErrMismatch)
		require.ErrorContains(t, err, "has 3, 2 was given")
		require.Len(t, w.Children(path+"/in"), 1)
		require.False(t, three.over())
	})
}

// TestTheNumberMayChangeOnceNobodyIsThere, and those who were there with the former one are told.
func TestTheNumberMayChangeOnceNobodyIsThere(t *testing.T) {
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
		require.ErrorIs(t, late.failed(), barrier.ErrMismatch)
		w.nobody()
	})
}

func TestMembersOfOneClient(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := barrier.NewDouble(w.member("a").Client, path, 5)
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

func TestWaitsSurviveSuspensionsAndRestarts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		for range 3 {
			a := enter(t, t.Context(), bs[0])
			ms[0].Link.Cut()
			time.Sleep(time.Second)
			b := enter(t, t.Context(), bs[1])
			ms[0].Link.Heal()
			ra, rb := a.round(), b.round()
			x := leave(t.Context(), ra)
			w.Restart()
			time.Sleep(time.Second)
			require.False(t, x.over())
			ms[0].Link.Cut()
			require.NoError(t, rb.Leave(t.Context()))
			ms[0].Link.Heal()
			<-x.done
			require.NoError(t, x.err)
		}
		w.nobody()
	})
}

func TestWaitsSurviveTheLossOfTheSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		for range 3 {
			a := enter(t, t.Context(), bs[0])
			require.NoError(t, w.Expire(w.session(ms[0]).ID()))
			time.Sleep(timeout)
			require.False(t, a.over())
			b := enter(t, t.Context(), bs[1])
			ra, rb := a.round(), b.round()
			x := leave(t.Context(), ra)
			require.NoError(t, w.Expire(w.session(ms[0]).ID()))
			time.Sleep(timeout)
			require.False(t, x.over())
			require.NoError(t, rb.Leave(t.Context()))
			<-x.done
			require.NoError(t, x.err)
		}
		w.nobody()
	})
}

// TestALostSessionIsNotCountedTwice: the client gives its session up before the servers do. The node in
// it must not take a place beside the one in the next session.
func TestALostSessionIsNotCountedTwice(t *testing.T) {
	early := 0
	for range 20 {
		in(t, func(t *testing.T, w *world) {
			if backBeforeExpiry(t, w) {
				early++
			}
		})
	}
	require.Positive(t, early, "the servers have known of the loss each time")
}

// backBeforeExpiry tells whether a member was back in a new session before the servers knew that it had lost
// the old one.
func backBeforeExpiry(t *testing.T, w *world) (early bool) {
	ms := w.members(2)
	bs := doubles(2, ms...)
	a := enter(t, t.Context(), bs[0])
	first := w.session(ms[0])
	ms[0].Link.BlackHole(true, true)
	<-first.Done()
	ms[0].Link.Heal()
	second := w.session(ms[0])
	early = slices.ContainsFunc(w.Sessions(), func(s zktest.Session) bool { return s.ID == first.ID() })
	time.Sleep(100 * time.Millisecond)
	there := w.Children(path + "/in")
	require.Len(t, there, 1)
	n, _ := w.Node(path + "/in/" + there[0])
	require.Equal(t, second.ID(), n.Stat.EphemeralOwner)
	require.False(t, a.over())
	b := enter(t, t.Context(), bs[1])
	leaveAll(t, a.round(), b.round())
	return early
}

// TestARoundThatBeginsWithALostSession is an error for the one, who has died inside to the other.
func TestARoundThatBeginsWithALostSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		a := enter(t, t.Context(), bs[0])
		ms[0].Link.BlackHole(true, true)
		b := enter(t, t.Context(), bs[1])
		rb := b.round()
		require.NoError(t, rb.Leave(t.Context()))
		ms[0].Link.Heal()
		require.ErrorIs(t, a.failed(), framework.ErrSessionLost)
		leaveAll(t, enterAll(t, bs...)...)
	})
}

func TestARoundEndsWithItsNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		rs := enterAll(t, doubles(2, ms...)...)
		_, err := ms[0].Multi(t.Context(), rs[0].Guard(), framework.CreateOp("/x", nil, framework.Persistent))
		require.NoError(t, err)
		require.NoError(t, ms[1].Delete(t.Context(), rs[0].Node(), framework.AnyVersion))
		<-rs[0].Context().Done()
		require.ErrorIs(t, rs[0].Err(), framework.ErrNodeGone)
		_, err = ms[0].Multi(t.Context(), rs[0].Guard(), framework.CreateOp("/y", nil, framework.Persistent))
		require.ErrorIs(t, err, framework.ErrNodeGone)
		require.ErrorIs(t, rs[0].Leave(t.Context()), framework.ErrNodeGone)
		require.NoError(t, rs[1].Leave(t.Context()))
	})
}

// TestALostReplyAnywhere loses the reply of each of the first transactions in turn.
func TestALostReplyAnywhere(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSetData, zktest.OpGetData, zktest.OpGetChildren2, zktest.OpExists, zktest.OpSync} {
		for nth := 1; nth < 9; nth++ {
			in(t, func(t *testing.T, w *world) {
				bs := doubles(3, w.members(3)...)
				w.DropReply(nth, zktest.Match{Op: op, Path: "/barriers"})
				for round := range int64(3) {
					rs := enterAll(t, bs...)
					for _, r := range rs {
						require.Equal(t, round+1, r.Number(), "%v %d", op, nth)
					}
					leaveAll(t, rs...)
					w.nobody()
				}
			})
		}
	}
}

// TestAnEventFromBeforeIsNoBeginning: a watch may have been armed before by somebody else in the session. The
// end of the former round, of which it tells, must not be taken for the beginning of the next.
func TestAnEventFromBeforeIsNoBeginning(t *testing.T) {
	for at := range 80 {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a"), w.member("b")
			rs := enterAll(t, doubles(2, a, b)...)
			ended, end := context.WithCancel(t.Context())
			end()
			require.Error(t, rs[0].Leave(ended))
			data, _, armed, err := w.session(a).WatchData(t.Context(), path)
			require.NoError(t, err)
			defer armed.Stop()
			a.Link.Delay(7 * time.Millisecond)
			next := enter(t, t.Context(), doubles(2, a)[0])
			time.Sleep(time.Duration(at) * time.Millisecond)
			_, err = b.Multi(t.Context(), framework.DeleteOp(rs[1].Node(), framework.AnyVersion), framework.SetOp(path, data, 1))
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.False(t, next.over(), "at %d: it is alone", at)
			other := enter(t, t.Context(), doubles(2, b)[0])
			leaveAll(t, next.round(), other.round())
		})
	}
}

// TestACreateThatIsLostWithItsSession: its node must not take a place beside the next session's.
func TestACreateThatIsLostWithItsSession(t *testing.T) {
	early := 0
	for range 20 {
		in(t, func(t *testing.T, w *world) {
			m, b := w.member("a"), w.member("b")
			bs := doubles(2, m, b)
			leaveAll(t, enterAll(t, bs...)...)
			first := w.session(m)
			f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: first.ID()})
			go func() {
				<-f.Hit()
				m.Link.BlackHole(true, true)
			}()
			a := enter(t, t.Context(), bs[0])
			<-first.Done()
			m.Link.Heal()
			second := w.session(m)
			if slices.ContainsFunc(w.Sessions(), func(s zktest.Session) bool { return s.ID == first.ID() }) {
				early++
			}
			time.Sleep(100 * time.Millisecond)
			there := w.Children(path + "/in")
			require.Len(t, there, 1)
			n, _ := w.Node(path + "/in/" + there[0])
			require.Equal(t, second.ID(), n.Stat.EphemeralOwner)
			leaveAll(t, a.roundWith(bs[1])...)
		})
	}
	require.Positive(t, early, "the servers have known of the loss each time")
}

// roundWith waits for the round that begins when another member enters.
func (e *entrance) roundWith(other *barrier.Double) []*barrier.Round {
	e.t.Helper()
	require.False(e.t, e.over())
	b := enter(e.t, e.t.Context(), other)
	return []*barrier.Round{e.round(), b.round()}
}
