package framework_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAClientNeedsLittleMemory: the buffers that go-zookeeper has by default are 3 MiB for each
// client.
func TestAClientNeedsLittleMemory(t *testing.T) {
	const clients = 50
	zk := zktest.Start(t)
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	for i := range clients {
		session(t, zk.Member(t, fmt.Sprint(i), framework.Config{}))
	}
	require.Less(t, (heap()-before)/clients, int64(256<<10), "bytes for each client, with the server's part")
}

// TestAnEventWithALongPath: the path is longer than go-zookeeper's buffer.
func TestAnEventWithALongPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", framework.Config{})
		s := session(t, m)
		path := "/" + strings.Repeat("x", 100_000)
		require.NoError(t, s.CreateIfMissing(t.Context(), path, nil, framework.Persistent))
		w := s.WatchNodes(path)[0]
		require.NoError(t, s.Delete(t.Context(), path, framework.AnyVersion))
		require.Equal(t, framework.Event{Kind: framework.NodeDeleted, Path: path}, <-w.C())
		require.Equal(t, 1, m.Link.Dials())
	})
}
