package framework_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMultiIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		rs, err := s.Multi(ctx, framework.CreateOp("/a", []byte("1"), framework.Persistent),
			framework.SetOp("/a", []byte("2"), 0), framework.CheckOp("/a", 1))
		require.NoError(t, err)
		require.Equal(t, "/a", rs[0].Path)
		require.Equal(t, int32(1), rs[1].Stat.Version)

		_, err = s.Multi(ctx, framework.CheckOp("/a", 1), framework.SetOp("/a", nil, 7), framework.DeleteOp("/a", 1))
		var refused *framework.TxError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 1, refused.Index)
		require.ErrorIs(t, err, framework.ErrBadVersion)

		f := zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: "/a"})
		_, err = s.Multi(ctx, framework.DeleteOp("/a", framework.AnyVersion))
		require.ErrorIs(t, err, framework.ErrSuspended)
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		require.True(t, failure.IsTransient(err))
		<-f.Hit()
		_, there := zk.Node("/a")
		require.False(t, there)
	})
}

func TestAConditionRefusesBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		before := zk.Requests()[zktest.OpMulti]
		_, err := s.Multi(t.Context(), primitives.When(framework.CreateOp("/a", nil, framework.Persistent),
			func() error { return framework.ErrNodeGone }))
		require.ErrorIs(t, err, framework.ErrNodeGone)
		require.Equal(t, before, zk.Requests()[zktest.OpMulti])
	})
}

func TestRootIsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		cfg := config
		cfg.Root = "/teams/blue"
		m := zk.Member(t, "a", cfg)
		s := session(t, m)
		c, err := createProtected(ctx, s, "/locks/x", "lock-", nil)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(c.Path, "/locks/x/_c_"))
		require.Len(t, zk.Children("/teams/blue/locks/x"), 1)
		require.NoError(t, m.Create(ctx, "/p", nil, framework.Persistent))
		names, _, err := m.Children(ctx, "/")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"locks", "p"}, names)
		rs, err := m.Multi(ctx, framework.CreateOp("/q", nil, framework.Persistent))
		require.NoError(t, err)
		require.Equal(t, "/q", rs[0].Path)
	})
}

func TestBadInputIsRefusedBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		for _, path := range []string{"", "relative", "/trailing/", "//", "/a//b", "/a/../b", "/a/./b", "/nul\x00"} {
			_, _, err := s.Get(ctx, path)
			require.ErrorIs(t, err, framework.ErrInvalid, "%q", path)
			require.ErrorIs(t, s.Create(ctx, path, nil, framework.Persistent), framework.ErrInvalid, "%q", path)
			_, err = createProtected(ctx, s, path, "lock-", nil)
			require.ErrorIs(t, err, framework.ErrInvalid, "%q", path)
			_, err = s.Multi(ctx, framework.DeleteOp(path, 0))
			require.ErrorIs(t, err, framework.ErrInvalid, "%q", path)
		}
		big := make([]byte, 1<<20)
		err := s.Create(ctx, "/big", big, framework.Persistent)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.ErrorContains(t, err, "1048580 bytes")
		_, err = createProtected(ctx, s, "/big", "lock-", big)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		_, err = s.Multi(ctx, framework.CreateOp("/big", big, framework.Persistent))
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.Error(t, s.Create(ctx, "/seq-", nil, framework.EphemeralSequential))
		require.Empty(t, zk.Children("/big"))
		require.NoError(t, s.Err(), "an oversize request must not kill the connection")
	})
}
