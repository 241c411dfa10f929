package conformance

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientWatch = []behaviour{
	{"data, existence and children are watched", allKindsAreWatched},
	{"a watch outlives a lost connection", watchOutlivesConnection},
	{"a change that was missed is reported on reconnect", missedChangeIsReported},
	{"nothing is reported if nothing was missed", nothingMissedNothingReported},
}

func allKindsAreWatched(t *testing.T, s *fixture) {
	watcher, actor := s.client(t), s.client(t)
	_, _, made, err := watcher.ExistsW(s.path("a"))
	require.NoError(t, err)
	_, _, listed, err := watcher.ChildrenW(s.root)
	require.NoError(t, err)
	actor.create(s.path("a"), "", 0)
	wantEvent(t, made, zk.EventNodeCreated, s.path("a"))
	wantEvent(t, listed, zk.EventNodeChildrenChanged, s.root)

	_, _, set, err := watcher.GetW(s.path("a"))
	require.NoError(t, err)
	actor.set(s.path("a"), "x")
	wantEvent(t, set, zk.EventNodeDataChanged, s.path("a"))

	_, _, gone, err := watcher.GetW(s.path("a"))
	require.NoError(t, err)
	_, _, listed, err = watcher.ChildrenW(s.path("a"))
	require.NoError(t, err)
	actor.delete(s.path("a"))
	wantEvent(t, gone, zk.EventNodeDeleted, s.path("a"))
	wantEvent(t, listed, zk.EventNodeDeleted, s.path("a"))
}

// reconnect cuts the client's network, calls meanwhile, and heals the network.
func (c *client) reconnect(meanwhile func()) {
	c.t.Helper()
	session := c.SessionID()
	c.network.cut()
	c.wantState(zk.StateDisconnected)
	meanwhile()
	c.network.heal()
	c.wantState(zk.StateHasSession)
	require.Equal(c.t, session, c.SessionID())
}

// rewatch reconnects a client that watches. It waits until go-zookeeper has set its watches again.
// That request has the newest zxid that the client has seen. An answer to another request before it
// would have a newer zxid, and the server would report no missed changes.
func (c *client) rewatch(meanwhile func()) {
	c.t.Helper()
	c.reconnect(meanwhile)
	select {
	case <-c.network.rewatched:
	case <-time.After(patience):
		c.t.Fatalf("no setWatches within %v", patience)
	}
}

func watchOutlivesConnection(t *testing.T, s *fixture) {
	watcher, actor := s.client(t), s.client(t)
	watcher.create(s.path("a"), "", 0)
	actor.sync(s.root)
	_, _, set, err := watcher.GetW(s.path("a"))
	require.NoError(t, err)
	_, _, made, err := watcher.ExistsW(s.path("b"))
	require.NoError(t, err)
	_, _, listed, err := watcher.ChildrenW(s.path("a"))
	require.NoError(t, err)
	watcher.rewatch(func() {})
	actor.set(s.path("a"), "x")
	actor.create(s.path("b"), "", 0)
	actor.create(s.path("a", "kid"), "", 0)
	wantEvent(t, set, zk.EventNodeDataChanged, s.path("a"))
	wantEvent(t, made, zk.EventNodeCreated, s.path("b"))
	wantEvent(t, listed, zk.EventNodeChildrenChanged, s.path("a"))
}

func missedChangeIsReported(t *testing.T, s *fixture) {
	watcher, actor := s.client(t), s.client(t)
	watcher.create(s.path("a"), "", 0)
	watcher.create(s.path("gone"), "", 0)
	actor.sync(s.root)
	_, _, set, err := watcher.GetW(s.path("a"))
	require.NoError(t, err)
	_, _, gone, err := watcher.GetW(s.path("gone"))
	require.NoError(t, err)
	_, _, made, err := watcher.ExistsW(s.path("b"))
	require.NoError(t, err)
	_, _, listed, err := watcher.ChildrenW(s.path("a"))
	require.NoError(t, err)
	watcher.rewatch(func() {
		actor.set(s.path("a"), "x")
		actor.delete(s.path("gone"))
		actor.create(s.path("b"), "", 0)
		actor.create(s.path("a", "kid"), "", 0)
	})
	wantEvent(t, set, zk.EventNodeDataChanged, s.path("a"))
	wantEvent(t, gone, zk.EventNodeDeleted, s.path("gone"))
	wantEvent(t, made, zk.EventNodeCreated, s.path("b"))
	wantEvent(t, listed, zk.EventNodeChildrenChanged, s.path("a"))
}

func nothingMissedNothingReported(t *testing.T, s *fixture) {
	watcher := s.client(t)
	watcher.create(s.path("a"), "", 0)
	_, _, set, err := watcher.GetW(s.path("a"))
	require.NoError(t, err)
	_, _, listed, err := watcher.ChildrenW(s.path("a"))
	require.NoError(t, err)
	watcher.rewatch(func() {})
	wantQuiet(t, watcher, set)
	wantQuiet(t, watcher, listed)
}
