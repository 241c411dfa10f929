package zktest_test

import (
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestReapRemovesContainersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m := srv.Member(t, "a", framework.Config{})
		require.NoError(t, m.MakeDirs(t.Context(), "/fresh"))
		require.NoError(t, m.MakeDirs(t.Context(), "/used"))
		require.NoError(t, m.Create(t.Context(), "/used/child", nil, framework.Ephemeral))
		srv.Reap()
		require.Equal(t, []string{"child"}, srv.Children("/used"))

		require.NoError(t, m.Delete(t.Context(), "/used/child", framework.AnyVersion))
		srv.Freeze()
		srv.Reap()
		require.Equal(t, []string{"fresh", "used", "zookeeper"}, srv.Children("/"), "a frozen server does nothing")
		srv.Thaw()
		require.Equal(t, []string{"fresh", "zookeeper"}, srv.Children("/"), "what has had no child is spared")
	})
}

func TestNumbersWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m := srv.Member(t, "a", framework.Config{})
		require.NoError(t, m.MakeDirs(t.Context(), "/line"))
		require.NoError(t, srv.Number("/line", math.MaxInt32))
		for range 2 {
			_, err := m.Multi(t.Context(), framework.CreateOp("/line/n-", nil, framework.EphemeralSequential))
			require.NoError(t, err)
		}
		require.Equal(t, []string{"n--2147483648", "n-2147483647"}, srv.Children("/line"))
		require.Error(t, srv.Number("/nothing", 1))
	})
}
