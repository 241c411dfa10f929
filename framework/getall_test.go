package framework_test

import (
	"errors"
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
		require.Equal(t, before+3, zk.Requests()[zktest.OpMultiRead],
			"in two requests after the reply was lost, the first with one node")
		require.Len(t, nodes, 3)
		require.Equal(t, "2", string(nodes[0].Data))
		require.Equal(t, int32(1), nodes[0].Stat.Version)
		require.ErrorIs(t, nodes[1].Err, framework.ErrNoNode)
		require.NoError(t, nodes[2].Err)
		require.Equal(t, s.ID(), nodes[2].Stat.EphemeralOwner)
	})
}

func TestGetAllRefusesInvalidPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		none, err := s.GetAll(ctx)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = s.GetAll(ctx, "/a", "b")
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, `"b"`)
		require.Zero(t, zk.Requests()[zktest.OpMultiRead])
	})
}

// TestAnyNumberOfNodesIsRead reads paths that do not fit into one request. The first session reads
// small nodes in requests that grow; then a thousand nodes fit into one.
func TestAnyNumberOfNodesIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		requests := func(paths []string) int64 {
			t.Helper()
			before := zk.Requests()[zktest.OpMultiRead]
			nodes, err := s.GetAll(ctx, paths...)
			require.NoError(t, err)
			require.Len(t, nodes, len(paths))
			for i, n := range nodes {
				require.Equal(t, i != 7, errors.Is(n.Err, framework.ErrNoNode), i)
			}
			return zk.Requests()[zktest.OpMultiRead] - before
		}
		var short, long []string
		for i := range 2000 {
			short = append(short, fmt.Sprintf("/%d", i))
			long = append(long, fmt.Sprintf("/%s%d", strings.Repeat("x", 1000), i))
		}
		require.NoError(t, s.Create(ctx, short[7], nil, framework.Persistent))
		require.NoError(t, s.Create(ctx, long[7], nil, framework.Persistent))
		require.EqualValues(t, 4, requests(short), "4, 256, 1000 and 740 nodes")
		require.EqualValues(t, 2, requests(short))
		require.EqualValues(t, 6, requests(long), "400 kB of paths in each")
	})
}
