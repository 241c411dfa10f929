package framework

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestStoppedWatchWaiterIsForgotten: a waiter that gives up leaves nothing, whether a server knows
// of the watch or not.
func TestStoppedWatchWaiterIsForgotten(t *testing.T) {
	var ws sharedWatches
	ws.init(&caller{ns: "/"})
	key := watchKey{watchData, "/a"}
	first, second := ws.addWaiter(key, false), ws.addWaiter(key, false)
	e := ws.entries[key]
	first.Stop()
	require.Len(t, e.waiting, 1)
	second.Stop()
	require.Empty(t, ws.entries)

	again := ws.addWaiter(key, false)
	require.True(t, again.entry.armOnce())
	for range 1000 {
		ws.addWaiter(key, false).Stop()
	}
	require.Len(t, again.entry.waiting, 1)
	again.Stop()
	require.Empty(t, again.entry.waiting)
	require.Len(t, ws.entries, 1, "the server's watch stays")
	ws.onWatchEvent(wire.WatchEvent{Type: wire.EventNodeDataChanged, Path: "/a"})
	require.Empty(t, ws.entries)
	require.Empty(t, again.C(), "who has stopped hears nothing")
}
