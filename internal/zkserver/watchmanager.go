package zkserver

import (
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// WatchMode is how long a watch lasts and which nodes it covers.
type WatchMode uint8

// The modes of watches.
const (
	OneShot         WatchMode = iota // ends with its first event
	PersistentWatch                  // lasts until it is removed; for one node
	// lasts until it is removed; for a node and all nodes below it, without events of lists of
	// children
	PersistentRecursive
)

var watchModeNames = [...]string{OneShot: "one-shot", PersistentWatch: "persistent",
	PersistentRecursive: "persistent-recursive"}

// String returns the mode's name in lower case.
func (m WatchMode) String() string { return watchModeNames[m] }

// watcher is a connection with watches.
type watcher interface {
	connectionID() int64  // the events of a change are sent in the order of these ids
	sessionID() int64     // the id of the connection's session
	processEvent(e event) // sends an event to the client
}

// watchManager has the watches of one kind: on data and existence, or on children. A connection has
// at most one watch on a path: a later watch replaces the mode of an earlier one, as in ZooKeeper
// 3.8. (Since 3.9 a connection can have watches of several modes on a path.)
type watchManager struct {
	byPath    map[string]map[watcher]WatchMode
	byWatcher map[watcher]map[string]struct{}
	recursive int // how many watches are recursive; if none, triggerWatches need not look at the paths above
	total     int
}

func newWatchManager() *watchManager {
	return &watchManager{byPath: map[string]map[watcher]WatchMode{}, byWatcher: map[watcher]map[string]struct{}{}}
}

func (m *watchManager) addWatch(path string, w watcher, mode WatchMode) {
	m.removeWatch(path, w)
	if m.byPath[path] == nil {
		m.byPath[path] = map[watcher]WatchMode{}
	}
	if m.byWatcher[w] == nil {
		m.byWatcher[w] = map[string]struct{}{}
	}
	m.byPath[path][w] = mode
	m.byWatcher[w][path] = struct{}{}
	m.adjustCounts(mode, 1)
}

// removeWatch removes a watch. It returns false if there is none.
func (m *watchManager) removeWatch(path string, w watcher) bool {
	mode, found := m.byPath[path][w]
	if !found {
		return false
	}
	if delete(m.byPath[path], w); len(m.byPath[path]) == 0 {
		delete(m.byPath, path)
	}
	if delete(m.byWatcher[w], path); len(m.byWatcher[w]) == 0 {
		delete(m.byWatcher, w)
	}
	m.adjustCounts(mode, -1)
	return true
}

func (m *watchManager) adjustCounts(mode WatchMode, sign int) {
	m.total += sign
	if mode == PersistentRecursive {
		m.recursive += sign
	}
}

// removeWatcher removes every watch of a connection.
func (m *watchManager) removeWatcher(w watcher) {
	for path := range m.byWatcher[w] {
		m.removeWatch(path, w)
	}
}

// triggerWatches appends the watchers of an event to triggered, and removes their one-shot watches.
func (m *watchManager) triggerWatches(e event, triggered []watcher) []watcher {
	for w, mode := range m.byPath[e.path] {
		if mode == PersistentRecursive && e.typ == wire.EventNodeChildrenChanged {
			continue
		}
		if mode == OneShot {
			m.removeWatch(e.path, w)
		}
		triggered = append(triggered, w)
	}
	if m.recursive == 0 || e.typ == wire.EventNodeChildrenChanged {
		return triggered
	}
	for path := e.path; path != "/" && path != ""; {
		path, _ = wire.SplitPath(path)
		for w, mode := range m.byPath[path] {
			if mode == PersistentRecursive {
				triggered = append(triggered, w)
			}
		}
	}
	return triggered
}

// checkPath returns OK if any connection watches the path. ZooKeeper searches from the path towards
// the root if there are recursive watches, and otherwise only at the path. So it finds no watch on
// an empty path, and fails for a path without a slash.
func (m *watchManager) checkPath(path string) wire.Code {
	switch {
	case path == "":
		return wire.NoWatcher
	case !strings.Contains(path, "/"):
		return wire.MarshallingError
	case len(m.byPath[path]) > 0:
		return wire.OK
	case path[0] != '/' && m.recursive > 0:
		return wire.MarshallingError
	}
	return wire.NoWatcher
}
