package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireWatch = []behaviour{
	{"a watch fires once", watchFiresOnce},
	{"a delete fires a node's watch once, then the parent's", deleteFiresOnce},
	{"only exists leaves a watch on a missing node", onlyExistsWatchesMissing},
	{"children do not fire a data watch, nor data a child watch", watchesFireForTheirKind},
	{"a multi's events come in the order of its parts", multiEventsInOrder},
	{"a persistent watch remains", persistentWatchRemains},
	{"a recursive watch reports descendants and no child lists", recursiveWatchReportsDescendants},
	{"removeWatches ends a watch", removeWatchesEnds},
	{"checkWatches finds a watch by kind", checkWatchesFinds},
	{"watches end with their connection", watchesEndWithConnection},
	{"no events of nodes that the client may not read", unreadableNodesHaveNoEvents},
}

// pair returns a peer that watches and a peer that writes, on two servers if the target has
// several.
func (s *fixture) pair(t *testing.T) (watcher, actor *peer) {
	t.Helper()
	return s.peer(t, 0), s.peer(t, 1)
}

func watchFiresOnce(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	watcher.doOK(wire.OpExists, watch(s.path("a")))
	actor.sync(s.root)
	actor.set(s.path("a"), "1")
	actor.set(s.path("a"), "2")
	watcher.wantEvents(changed(s.path("a")))
	watcher.wantNoEvents()
}

func deleteFiresOnce(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren2, watch(s.root))
	actor.sync(s.root)
	actor.delete(s.path("a"))
	watcher.wantEvents(deleted(s.path("a")), children(s.root))
	watcher.wantNoEvents()
}

func onlyExistsWatchesMissing(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	require.Equal(t, wire.NoNode, watcher.code(wire.OpGetData, watch(s.path("a"))))
	require.Equal(t, wire.NoNode, watcher.code(wire.OpGetChildren, watch(s.path("b"))))
	require.Equal(t, wire.NoNode, watcher.code(wire.OpGetChildren2, watch(s.path("c"))))
	require.Equal(t, wire.NoNode, watcher.code(wire.OpExists, watch(s.path("d"))))
	for _, name := range []string{"a", "b", "c", "d"} {
		actor.create(s.path(name), "", 0)
	}
	watcher.wantEvents(created(s.path("d")))
	watcher.wantNoEvents()
}

func watchesFireForTheirKind(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	actor.sync(s.root)
	actor.create(s.path("a", "kid"), "", 0)
	watcher.wantNoEvents()
	watcher.doOK(wire.OpGetChildren, watch(s.path("a")))
	actor.set(s.path("a"), "x")
	watcher.wantEvents(changed(s.path("a")))
	watcher.wantNoEvents()
	actor.delete(s.path("a", "kid"))
	watcher.wantEvents(children(s.path("a")))
}

func multiEventsInOrder(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	require.Equal(t, wire.NoNode, watcher.code(wire.OpExists, watch(s.path("b"))))
	watcher.doOK(wire.OpGetChildren, watch(s.root))
	actor.sync(s.root)
	actor.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("b"), "", 0)),
		part(wire.OpSetData, setting(s.path("a"), "x", 0)),
		part(wire.OpDelete, anyVersion(s.path("b"))),
	))
	watcher.wantEvents(created(s.path("b")), children(s.root), changed(s.path("a")))
	watcher.wantNoEvents()
}

func persistentWatchRemains(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpAddWatch, num(s.path("a"), wire.AddWatchPersistent))
	actor.sync(s.root)
	actor.set(s.path("a"), "1")
	actor.set(s.path("a"), "2")
	actor.create(s.path("a", "kid"), "", 0)
	actor.set(s.path("a", "kid"), "x")
	actor.delete(s.path("a", "kid"))
	actor.delete(s.path("a"))
	actor.create(s.path("a"), "", 0)
	a := s.path("a")
	watcher.wantEvents(changed(a), changed(a), children(a), children(a), deleted(a), created(a))
	watcher.wantNoEvents()
}

func recursiveWatchReportsDescendants(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.doOK(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
	a, deep := s.path("a"), s.path("a", "deep")
	actor.create(a, "", 0)
	actor.create(deep, "", 0)
	actor.set(deep, "x")
	actor.set(s.root, "x")
	actor.delete(deep)
	actor.delete(a)
	watcher.wantEvents(created(a), created(deep), changed(deep), changed(s.root), deleted(deep), deleted(a))
	watcher.wantNoEvents()
}

func removeWatchesEnds(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	actor.sync(s.root)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren, watch(s.path("a")))
	watcher.doOK(wire.OpRemoveWatches, num(s.path("a"), wire.WatcherData))
	require.Equal(t, wire.NoWatcher, watcher.code(wire.OpRemoveWatches, num(s.path("a"), wire.WatcherData)))
	actor.set(s.path("a"), "x")
	watcher.wantNoEvents()
	actor.create(s.path("a", "kid"), "", 0)
	watcher.wantEvents(children(s.path("a")))

	watcher.doOK(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
	watcher.doOK(wire.OpRemoveWatches, num(s.root, wire.WatcherAny))
	actor.set(s.path("a"), "y")
	watcher.wantNoEvents()
	require.Equal(t, wire.NoWatcher, watcher.code(wire.OpRemoveWatches, num(s.path("none"), wire.WatcherAny)))
}

func checkWatchesFinds(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("a"), "", 0)
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)))
	p.doOK(wire.OpGetChildren, watch(s.path("a")))
	p.doOK(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny))
	p.doOK(wire.OpCheckWatches, num(s.path("a"), wire.WatcherChildren))
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherData)))
	p.set(s.path("a"), "x")
	p.create(s.path("a", "kid"), "", 0)
	p.wantEvents(children(s.path("a")))
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)), "it has fired")
}

func watchesEndWithConnection(t *testing.T, s *fixture) {
	old, actor := s.pair(t)
	old.create(s.path("a"), "", 0)
	old.doOK(wire.OpGetData, watch(s.path("a")))
	old.doOK(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
	anew := s.resume(t, 0, old.again())
	actor.sync(s.root)
	actor.set(s.path("a"), "x")
	anew.wantNoEvents()
	require.Equal(t, wire.NoWatcher, anew.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)))
}

// unreadableNodesHaveNoEvents: servers since 3.8.4 behave so (CVE-2024-23944). The watch of an
// event that was not sent has ended.
func unreadableNodesHaveNoEvents(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	require.Equal(t, wire.OK, actor.auth("digest", ownerCredentials))
	secret := &wire.CreateRequest{Path: s.path("a"), ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}}
	require.Equal(t, wire.NoNode, watcher.code(wire.OpExists, watch(s.path("a"))))
	watcher.doOK(wire.OpGetChildren, watch(s.root))
	actor.doOK(wire.OpCreate, secret)
	watcher.wantEvents(children(s.root))
	watcher.doOK(wire.OpExists, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren, watch(s.root))
	actor.set(s.path("a"), "x")
	actor.doOK(wire.OpSetACL,
		&wire.SetACLRequest{Path: s.path("a"), ACL: wire.WorldACL(wire.PermAll), Version: wire.AnyVersion})
	actor.set(s.path("a"), "y")
	actor.create(s.path("b"), "", 0)
	watcher.wantEvents(children(s.root)) // and so all changes before are known
	watcher.doOK(wire.OpExists, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren, watch(s.root))
	actor.delete(s.path("a"))
	watcher.wantEvents(deleted(s.path("a")), children(s.root))
}
