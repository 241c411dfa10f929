package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireWatch = []behaviour{
	{"a watch fires once", watchFiresOnce},
	{"a delete tells a node's watcher once, then the parent's", deleteTellsOnce},
	{"only exists leaves a watch on a missing node", onlyExistsWatchesMissing},
	{"a data watch hears no children and a child watch no data", watchesHearTheirOwn},
	{"a multi's events come in the order of its parts", multiEventsInOrder},
	{"a persistent watch stays", persistentWatchStays},
	{"a recursive watch hears descendants and no child lists", recursiveWatchHearsDescendants},
	{"removeWatches ends a watch", removeWatchesEnds},
	{"checkWatches finds a watch by kind", checkWatchesFinds},
	{"watches end with their connection", watchesEndWithConnection},
}

// pair is a peer that watches and one that acts, on two servers where there are two.
func (s *site) pair(t *testing.T) (watcher, actor *peer) {
	t.Helper()
	return s.peer(t, 0), s.peer(t, 1)
}

func watchFiresOnce(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.must(wire.OpGetData, watch(s.path("a")))
	watcher.must(wire.OpExists, watch(s.path("a")))
	actor.sync(s.root)
	actor.set(s.path("a"), "1")
	actor.set(s.path("a"), "2")
	watcher.wantEvents(changed(s.path("a")))
	watcher.wantNoEvents()
}

func deleteTellsOnce(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.must(wire.OpGetData, watch(s.path("a")))
	watcher.must(wire.OpGetChildren, watch(s.path("a")))
	watcher.must(wire.OpGetChildren2, watch(s.root))
	actor.sync(s.root)
	actor.delete(s.path("a"))
	watcher.wantEvents(deleted(s.path("a")), children(s.root))
	watcher.wantNoEvents()
}

func onlyExistsWatchesMissing(t *testing.T, s *site) {
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

func watchesHearTheirOwn(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.must(wire.OpGetData, watch(s.path("a")))
	actor.sync(s.root)
	actor.create(s.path("a", "kid"), "", 0)
	watcher.wantNoEvents()
	watcher.must(wire.OpGetChildren, watch(s.path("a")))
	actor.set(s.path("a"), "x")
	watcher.wantEvents(changed(s.path("a")))
	watcher.wantNoEvents()
	actor.delete(s.path("a", "kid"))
	watcher.wantEvents(children(s.path("a")))
}

func multiEventsInOrder(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.must(wire.OpGetData, watch(s.path("a")))
	require.Equal(t, wire.NoNode, watcher.code(wire.OpExists, watch(s.path("b"))))
	watcher.must(wire.OpGetChildren, watch(s.root))
	actor.sync(s.root)
	actor.must(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("b"), "", 0)),
		part(wire.OpSetData, setting(s.path("a"), "x", 0)),
		part(wire.OpDelete, anyVersion(s.path("b"))),
	))
	watcher.wantEvents(created(s.path("b")), children(s.root), changed(s.path("a")))
	watcher.wantNoEvents()
}

func persistentWatchStays(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.must(wire.OpAddWatch, num(s.path("a"), wire.AddWatchPersistent))
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

func recursiveWatchHearsDescendants(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.must(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
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

func removeWatchesEnds(t *testing.T, s *site) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	actor.sync(s.root)
	watcher.must(wire.OpGetData, watch(s.path("a")))
	watcher.must(wire.OpGetChildren, watch(s.path("a")))
	watcher.must(wire.OpRemoveWatches, num(s.path("a"), wire.WatcherData))
	require.Equal(t, wire.NoWatcher, watcher.code(wire.OpRemoveWatches, num(s.path("a"), wire.WatcherData)))
	actor.set(s.path("a"), "x")
	watcher.wantNoEvents()
	actor.create(s.path("a", "kid"), "", 0)
	watcher.wantEvents(children(s.path("a")))

	watcher.must(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
	watcher.must(wire.OpRemoveWatches, num(s.root, wire.WatcherAny))
	actor.set(s.path("a"), "y")
	watcher.wantNoEvents()
	require.Equal(t, wire.NoWatcher, watcher.code(wire.OpRemoveWatches, num(s.path("none"), wire.WatcherAny)))
}

func checkWatchesFinds(t *testing.T, s *site) {
	p := s.peer(t, 0)
	p.create(s.path("a"), "", 0)
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)))
	p.must(wire.OpGetChildren, watch(s.path("a")))
	p.must(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny))
	p.must(wire.OpCheckWatches, num(s.path("a"), wire.WatcherChildren))
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherData)))
	p.set(s.path("a"), "x")
	p.create(s.path("a", "kid"), "", 0)
	p.wantEvents(children(s.path("a")))
	require.Equal(t, wire.NoWatcher, p.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)), "it has fired")
}

func watchesEndWithConnection(t *testing.T, s *site) {
	old, actor := s.pair(t)
	old.create(s.path("a"), "", 0)
	old.must(wire.OpGetData, watch(s.path("a")))
	old.must(wire.OpAddWatch, num(s.root, wire.AddWatchPersistentRecursive))
	anew := s.resume(t, 0, old.again())
	actor.sync(s.root)
	actor.set(s.path("a"), "x")
	anew.wantNoEvents()
	require.Equal(t, wire.NoWatcher, anew.code(wire.OpCheckWatches, num(s.path("a"), wire.WatcherAny)))
}
