package barrier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// curators makes a barrier in Curator's layout for each member.
func curators(path string, n int, ms ...*zktest.Member) []*barrier.DoubleBarrier {
	bs := make([]*barrier.DoubleBarrier, len(ms))
	for i, m := range ms {
		bs[i] = barrier.NewDoubleBarrier(m.Client, path, n, barrier.WithCuratorLayout())
	}
	return bs
}

func TestCuratorsLayout(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		for round := range 3 {
			path := fmt.Sprint("/phase/", round)
			bs := curators(path, 3, ms...)
			a, b := enter(t, t.Context(), bs[0]), enter(t, t.Context(), bs[1])
			require.False(t, a.over() || b.over())
			require.Len(t, w.Children(path), 2)
			require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, w.Children(path)[0])
			c := enter(t, t.Context(), bs[2])
			rs := []*barrier.Round{a.round(), b.round(), c.round()}
			n, _ := w.Node(path + "/ready")
			require.Equal(t, zktest.Persistent, n.Mode)
			x, y := leave(t.Context(), rs[0]), leave(t.Context(), rs[1])
			time.Sleep(time.Hour)
			require.False(t, x.over() || y.over())
			require.NoError(t, rs[2].Err())
			require.NoError(t, rs[2].Leave(t.Context()))
			<-x.done
			<-y.done
			require.NoError(t, x.err)
			require.NoError(t, y.err)
			require.Empty(t, w.Children(path))
		}
	})
}

func TestCuratorsLayoutSurvives(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(3)
		bs := curators(path, 3, ms...)
		a, b := enter(t, t.Context(), bs[0]), enter(t, t.Context(), bs[1])
		ms[0].Link.Cut()
		time.Sleep(time.Second)
		ms[0].Link.Heal()
		w.Restart()
		require.NoError(t, w.Expire(w.session(ms[1]).ID()))
		time.Sleep(timeout)
		require.False(t, a.over() || b.over())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		four := barrier.NewDoubleBarrier(ms[2].Client, path, 4, barrier.WithCuratorLayout())
		require.ErrorIs(t, enter(t, ctx, four).failed(), context.DeadlineExceeded)
		require.Len(t, w.Children(path), 2, "it leaves no node")
		c := enter(t, t.Context(), bs[2])
		rs := []*barrier.Round{a.round(), b.round(), c.round()}
		ms[1].Link.BlackHole(true, true)
		x, y := leave(t.Context(), rs[0]), leave(t.Context(), rs[2])
		<-x.done
		<-y.done
		require.NoError(t, x.err)
		require.NoError(t, y.err)
		require.ErrorIs(t, rs[1].Err(), framework.ErrSessionLost)
		ms[1].Link.Heal()
	})
}

// TestCuratorsLostReplies loses the reply of each of the first requests.
func TestCuratorsLostReplies(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreate, zktest.OpExists, zktest.OpGetChildren2,
		zktest.OpDelete} {
		in(t, func(t *testing.T, w *world) {
			w.DropReply(1, zktest.Match{Op: op, Path: "/barriers"})
			leaveAll(t, enterAll(t, curators(path, 2, w.members(2)...)...)...)
			for _, name := range w.Children(path) {
				require.True(t, strings.HasPrefix(name, "ready"), name)
			}
			w.nobody()
		})
	}
}

// TestCuratorsEnterDoesNotWaitForARefusedDeletion: the member may create its node, but neither list
// the others nor delete it.
func TestCuratorsEnterDoesNotWaitForARefusedDeletion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		owner := config
		owner.ParentACL = []framework.ACL{{Perms: framework.PermCreate, Scheme: "world", ID: "anyone"}}
		require.NoError(t, w.Member(t, "owner", owner).MakeDirs(t.Context(), path))
		m := w.member("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, enter(t, ctx, curators(path, 2, m)[0]).failed(), framework.ErrNoAuth)
		require.NoError(t, ctx.Err())
	})
}

// TestCuratorsEnterGivenUpWhileSuspended says that its node may remain for a while.
func TestCuratorsEnterGivenUpWhileSuspended(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(1)
		ctx, cancel := context.WithCancel(t.Context())
		e := enter(t, ctx, curators(path, 2, ms...)[0])
		ms[0].Link.BlackHole(true, true)
		cancel()
		err := e.failed()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, framework.ErrSuspended)
		ms[0].Link.Heal()
		await(func() bool { return len(w.Children(path)) == 0 })
	})
}
