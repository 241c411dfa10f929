package zkserver

import (
	"cmp"
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// WatchMode says how long a watch lasts and how far it sees.
type WatchMode uint8

// The modes of watches.
const (
	OneShot             WatchMode = iota // one event
	PersistentWatch                      // until removed, this node
	PersistentRecursive                  // until removed, this node and all below; no child events
)

var modeNames = [...]string{OneShot: "one-shot", PersistentWatch: "persistent", PersistentRecursive: "persistent-recursive"}

// String is the mode's name in lower case.
func (m WatchMode) String() string { return modeNames[m] }

// watchTable is who watches what. A connection has at most one watch on a path
// in each table: a later one replaces an earlier one's mode, as in ZooKeeper
// 3.8 (since 3.9 modes add up).
type watchTable struct {
	byPath    map[string]map[*conn]WatchMode
	byConn    map[*conn]map[string]struct{}
	recursive int // watches that see below their node: while none, nobody looks up
	total     int
}

func newWatchTable() watchTable {
	return watchTable{byPath: map[string]map[*conn]WatchMode{}, byConn: map[*conn]map[string]struct{}{}}
}

func (w *watchTable) add(path string, c *conn, mode WatchMode) {
	w.remove(path, c)
	if w.byPath[path] == nil {
		w.byPath[path] = map[*conn]WatchMode{}
	}
	if w.byConn[c] == nil {
		w.byConn[c] = map[string]struct{}{}
	}
	w.byPath[path][c] = mode
	w.byConn[c][path] = struct{}{}
	w.adjust(mode, 1)
}

// remove reports whether there was a watch to remove.
func (w *watchTable) remove(path string, c *conn) bool {
	mode, found := w.byPath[path][c]
	if !found {
		return false
	}
	if delete(w.byPath[path], c); len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	if delete(w.byConn[c], path); len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
	w.adjust(mode, -1)
	return true
}

func (w *watchTable) adjust(mode WatchMode, sign int) {
	w.total += sign
	if mode == PersistentRecursive {
		w.recursive += sign
	}
}

// drop removes every watch of a connection.
func (w *watchTable) drop(c *conn) {
	for path := range w.byConn[c] {
		w.remove(path, c)
	}
}

// trigger appends the connections that an event concerns, and uses up their
// one-shot watches.
func (w *watchTable) trigger(e event, hit []*conn) []*conn {
	for c, mode := range w.byPath[e.path] {
		if mode == PersistentRecursive && e.typ == wire.EventNodeChildrenChanged {
			continue
		}
		if mode == OneShot {
			w.remove(e.path, c)
		}
		hit = append(hit, c)
	}
	if w.recursive == 0 || e.typ == wire.EventNodeChildrenChanged {
		return hit
	}
	for path := e.path; path != "/" && path != ""; {
		path, _ = wire.SplitPath(path)
		for c, mode := range w.byPath[path] {
			if mode == PersistentRecursive {
				hit = append(hit, c)
			}
		}
	}
	return hit
}

// fire sends an event to those who watch for it, each once and in order of
// connection. A deletion concerns those who watch the children too.
func (s *Server) fire(e event) {
	hit := s.hit[:0]
	if e.typ == wire.EventNodeChildrenChanged {
		hit = s.childWatches.trigger(e, hit)
	} else {
		hit = s.dataWatches.trigger(e, hit)
	}
	if e.typ == wire.EventNodeDeleted {
		hit = s.childWatches.trigger(e, hit)
	}
	slices.SortFunc(hit, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	for _, c := range slices.Compact(hit) {
		s.notify(c, e)
	}
	clear(hit)
	s.hit = hit[:0]
}

func (s *Server) notify(c *conn, e event) {
	s.scratch.Reset()
	mark := s.scratch.BeginFrame()
	wire.ReplyHeader{Xid: wire.XidNotify, Zxid: -1}.Encode(&s.scratch)
	wire.WatchEvent{Type: e.typ, State: wire.StateSyncConnected, Path: e.path}.Encode(&s.scratch)
	s.scratch.EndFrame(mark)
	s.send(c, s.scratch.Bytes(), 0)
}
