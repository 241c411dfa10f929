package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestEventsHaveTheClientsPaths: an event names the node as the call that watches it does, below
// the client's root.
func TestEventsHaveTheClientsPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		below := config
		below.Root = "/app"
		m := zk.Member(t, "a", below)
		s := session(t, m)
		require.NoError(t, m.MakeDirs(t.Context(), "/"))
		require.NoError(t, m.Create(t.Context(), "/x", nil, framework.Persistent))
		watch := func() *framework.Watch {
			_, _, w, err := s.WatchData(t.Context(), "/x")
			require.NoError(t, err)
			return w
		}
		w := watch()
		m.Link.Reset()
		require.Equal(t, framework.Event{Kind: framework.Reconnected, Path: "/x"}, <-w.C())
		w = watch()
		require.NoError(t, m.Delete(t.Context(), "/x", framework.AnyVersion))
		require.Equal(t, framework.Event{Kind: framework.NodeDeleted, Path: "/x"}, <-w.C())
		require.Equal(t, framework.Event{Kind: framework.NodeDeleted, Path: "/x"}, <-s.WatchNodes("/x")[0].C())
	})
}
