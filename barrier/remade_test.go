package barrier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// remade is a barrier with a round inside that an operator has deleted, and that two others have
// made again and entered.
func remade(t *testing.T, w *world) (former, present []*barrier.Round, member *zktest.Member) {
	t.Helper()
	ms := w.members(4)
	former = enterAll(t, doubles(2, ms[:2]...)...)
	operator := w.member("operator")
	var ops []framework.Op
	tree := w.Tree(path)
	for i := range tree {
		ops = append(ops, framework.DeleteOp(tree[len(tree)-1-i].Path, framework.AnyVersion))
	}
	_, err := operator.Multi(t.Context(), ops...)
	require.NoError(t, err)
	return former, enterAll(t, doubles(2, ms[2:]...)...), ms[0]
}

// TestRoundOfARemadeBarrierEnds: its members hear that they are inside no more, and the servers
// refuse their guarded writes at once.
func TestRoundOfARemadeBarrierEnds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		former, present, member := remade(t, w)
		_, err := member.Multi(t.Context(), former[0].Guard(), framework.CreateOp("/late", nil, framework.Persistent))
		require.Error(t, err)
		time.Sleep(timeout)
		for i := range former {
			require.ErrorIs(t, former[i].Err(), framework.ErrNodeGone)
			require.NoError(t, present[i].Err())
		}
		leaveAll(t, present...)
		w.nobody()
	})
}

// TestLeavingARemadeBarrier deletes no other member's node, and ends no round of others, before the
// member knows that its own node is gone.
func TestLeavingARemadeBarrier(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		former, present, _ := remade(t, w)
		for _, r := range former {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = r.Leave(ctx) // the round that it waits for is over
			cancel()
		}
		time.Sleep(timeout)
		for _, r := range present {
			require.NoError(t, r.Err())
		}
		require.Len(t, w.Children(w.in()), 2)
		leaveAll(t, present...)
		w.nobody()
	})
}

// TestNodesThatAreNoMembersAreRefused: a node that was written by hand has a member's name, and
// does not end with any session.
func TestNodesThatAreNoMembersAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		leaveAll(t, enterAll(t, barrier.NewDoubleBarrier(m.Client, path, 1))...)
		fake := w.in() + "/m-0000000001"
		require.NoError(t, m.Create(t.Context(), fake, nil, framework.Persistent))
		err := enter(t, t.Context(), barrier.NewDoubleBarrier(w.member("b").Client, path, 1)).failed()
		require.ErrorIs(t, err, framework.ErrForeign)
		require.ErrorContains(t, err, fake+" is persistent")
		require.NoError(t, m.Delete(t.Context(), fake, framework.AnyVersion))
		leaveAll(t, enterAll(t, barrier.NewDoubleBarrier(m.Client, path, 1))...)
		w.nobody()
	})
}

// TestRoundsThatCannotBeAreRefused: the record of a round was written by hand.
func TestRoundsThatCannotBeAreRefused(t *testing.T) {
	for _, numbers := range []string{`[0]`, `[1,0]`, `[0,0]`, `[0,1,2]`, `[0,7]`} {
		in(t, func(t *testing.T, w *world) {
			ms := w.members(3)
			rs := enterAll(t, doubles(2, ms[:2]...)...)
			record := `{"v":1,"kind":"round","phase":1,"base":2,"numbers":` + numbers + `}`
			_, err := ms[2].Set(t.Context(), path+"/round", []byte(record), framework.AnyVersion)
			require.NoError(t, err)
			_, err = barrier.NewDoubleBarrier(ms[2].Client, path, 2).Enter(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign, numbers)
			require.ErrorContains(t, err, path+"/round")
			leaveAll(t, rs...)
		})
	}
}

// TestCopiedBarrierIsRefused: a tool has copied the nodes of a barrier. The version of the copied
// node begins at 0, so the record of the round seems to be from the future.
func TestCopiedBarrierIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		leaveAll(t, enterAll(t, doubles(2, ms...)...)...)
		const copied = "/barriers/b"
		for _, n := range w.Tree(path) {
			require.NoError(t, ms[0].Create(t.Context(), copied+strings.TrimPrefix(n.Path, path), n.Data,
				framework.Persistent))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reads := 0
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpGetData {
				if reads++; reads == 100 {
					cancel()
				}
			}
		})()
		_, err := barrier.NewDoubleBarrier(ms[0].Client, copied, 2).Enter(ctx)
		require.ErrorIs(t, err, framework.ErrForeign)
		require.ErrorContains(t, err, copied+"/round belongs to a later phase")
	})
}

// TestACountIsNotRepeatedInARemadeLatch: a reply is lost, and the latch is deleted and made again
// before the caller looks.
func TestACountIsNotRepeatedInARemadeLatch(t *testing.T) {
	for _, others := range []int{0, 1} {
		in(t, func(t *testing.T, w *world) {
			m, n := w.member("a"), w.member("b")
			mine, theirs := barrier.NewLatch(m.Client, path, 2), barrier.NewLatch(n.Client, path, 2)
			require.Equal(t, 2, remaining(t, mine))
			count := zktest.Match{Op: zktest.OpMulti, Session: w.session(m).ID(), Func: zktest.Request.Writes}
			lost := w.DropReply(1, count)
			_, counted := async(func() error { return mine.CountDown(context.Background(), "x") })
			<-lost.Hit()
			m.Link.Cut()
			require.Equal(t, 1, remaining(t, theirs))
			tree := w.Tree(path)
			for i := range tree {
				require.NoError(t, n.Delete(t.Context(), tree[len(tree)-1-i].Path, framework.AnyVersion))
			}
			require.Equal(t, 2, remaining(t, theirs), "a new latch")
			for range others {
				require.NoError(t, theirs.CountDown(t.Context(), "y"))
			}
			m.Link.Heal()
			require.ErrorIs(t, counted(), framework.ErrOutcomeUnknown)
			require.Equal(t, 2-others, remaining(t, theirs))
		})
	}
}
