package barrier_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

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

// TestALostSessionIsNotCountedTwice: the client gives its session up before the servers do. The
// node in it must not take a place beside the one in the next session.
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

// backBeforeExpiry reports whether a member was back in a new session before the servers knew that
// it had lost the old one.
func backBeforeExpiry(t *testing.T, w *world) (early bool) {
	ms := []*zktest.Member{w.awakeMember("a"), w.member("b")}
	bs := doubles(2, ms...)
	a := enter(t, t.Context(), bs[0])
	first := w.session(ms[0])
	ms[0].Link.BlackHole(true, true)
	<-first.Done()
	ms[0].Link.Heal()
	second := w.session(ms[0])
	early = slices.ContainsFunc(w.Sessions(), func(s zktest.Session) bool { return s.ID == first.ID() })
	time.Sleep(100 * time.Millisecond)
	there := w.Children(w.in())
	require.Len(t, there, 1)
	n, _ := w.Node(w.in() + "/" + there[0])
	require.Equal(t, second.ID(), n.Stat.EphemeralOwner)
	require.False(t, a.over())
	b := enter(t, t.Context(), bs[1])
	leaveAll(t, a.round(), b.round())
	return early
}

// TestRoundStartingWithLostSession is an error for the one, who has died inside to the other.
func TestRoundStartingWithLostSession(t *testing.T) {
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
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSetData, zktest.OpGetData, zktest.OpGetChildren2,
		zktest.OpExists} {
		for nth := 1; nth < 9; nth++ {
			in(t, func(t *testing.T, w *world) {
				bs := doubles(3, w.members(3)...)
				w.DropReply(nth, zktest.Match{Op: op, Path: "/barriers", Func: isNoSync})
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

// TestAnEventFromBeforeIsNoBeginning: a watch may have been armed before by somebody else in the
// session. The end of the former round, of which it tells, must not be taken for the beginning of
// the next.
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
			_, err = b.Multi(t.Context(), framework.DeleteOp(rs[1].Node(), framework.AnyVersion),
				framework.SetOp(path, data, 1))
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.False(t, next.over(), "at %d: it is alone", at)
			other := enter(t, t.Context(), doubles(2, b)[0])
			leaveAll(t, next.round(), other.round())
		})
	}
}

// TestCreateLostWithItsSession: its node must not take a place beside the next session's.
func TestCreateLostWithItsSession(t *testing.T) {
	early := 0
	for range 20 {
		in(t, func(t *testing.T, w *world) {
			m, b := w.awakeMember("a"), w.member("b")
			bs := doubles(2, m, b)
			leaveAll(t, enterAll(t, bs...)...)
			first := w.session(m)
			f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: first.ID(),
				Func: zktest.Request.Writes})
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
			there := w.Children(w.in())
			require.Len(t, there, 1)
			n, _ := w.Node(w.in() + "/" + there[0])
			require.Equal(t, second.ID(), n.Stat.EphemeralOwner)
			leaveAll(t, a.roundWith(bs[1])...)
		})
	}
	require.Positive(t, early, "the servers have known of the loss each time")
}

// roundWith waits for the round that begins when another member enters.
func (e *entrance) roundWith(other *barrier.DoubleBarrier) []*barrier.Round {
	e.t.Helper()
	require.False(e.t, e.over())
	b := enter(e.t, e.t.Context(), other)
	return []*barrier.Round{e.round(), b.round()}
}
