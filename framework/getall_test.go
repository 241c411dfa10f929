package framework_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestManyNodesAreReadByOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		_, err := s.Multi(ctx, framework.CreateOp("/a", []byte("1"), framework.Persistent),
			framework.CreateOp("/b", nil, framework.Ephemeral), framework.SetOp("/a", []byte("2"), 0))
		require.NoError(t, err)

		zk.DropReply(1, zktest.Match{Op: zktest.OpMultiRead})
		before := zk.Requests()[zktest.OpMultiRead]
		nodes, err := s.GetAll(ctx, "/a", "/none", "/b")
		require.NoError(t, err)
		require.Equal(t, before+2, zk.Requests()[zktest.OpMultiRead], "once more after the reply was lost")
		require.Len(t, nodes, 3)
		require.Equal(t, "2", string(nodes[0].Data))
		require.Equal(t, int32(1), nodes[0].Stat.Version)
		require.ErrorIs(t, nodes[1].Err, framework.ErrNoNode)
		require.NoError(t, nodes[2].Err)
		require.Equal(t, s.ID(), nodes[2].Stat.EphemeralOwner)
	})
}

func TestGetAllRefusesInvalidAndTooLongPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		none, err := s.GetAll(ctx)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = s.GetAll(ctx, "/a", "b")
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		require.ErrorContains(t, err, `"b"`)
		var paths []string
		for i := range 1000 {
			paths = append(paths, fmt.Sprintf("/%s%d", strings.Repeat("x", 1000), i))
		}
		_, err = s.GetAll(ctx, paths...)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.Zero(t, zk.Requests()[zktest.OpMultiRead])
	})
}
