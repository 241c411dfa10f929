package zkserver

import (
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// setWatches compares with the zxid that the client has seen: what has changed
// since is an event now, before the reply; the rest is a watch again.
func (s *Server) setWatches(r *request) wire.Code {
	body := wire.SetWatchesRequest{Two: r.head.Op == wire.OpSetWatches2}
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	for _, path := range body.Data {
		s.rewatch(r.conn, &s.dataWatches, path, wire.EventNodeDataChanged, func(n *node) bool { return n.mzxid > body.RelativeZxid })
	}
	for _, path := range body.Exist {
		if s.tree.get(path) != nil {
			s.notify(r.conn, event{typ: wire.EventNodeCreated, path: path})
		} else {
			s.dataWatches.add(path, r.conn, OneShot)
		}
	}
	for _, path := range body.Child {
		s.rewatch(r.conn, &s.childWatches, path, wire.EventNodeChildrenChanged, func(n *node) bool { return n.pzxid > body.RelativeZxid })
	}
	for _, path := range body.Persistent {
		s.watchBoth(r.conn, path, PersistentWatch)
	}
	for _, path := range body.Recurse {
		s.watchBoth(r.conn, path, PersistentRecursive)
	}
	return wire.OK
}

func (s *Server) rewatch(c *conn, watches *watchTable, path string, changed wire.EventType, since func(*node) bool) {
	switch n := s.tree.get(path); {
	case n == nil:
		s.notify(c, event{typ: wire.EventNodeDeleted, path: path})
	case since(n):
		s.notify(c, event{typ: changed, path: path})
	default:
		watches.add(path, c, OneShot)
	}
}

func (s *Server) watchBoth(c *conn, path string, mode WatchMode) {
	s.childWatches.add(path, c, mode)
	s.dataWatches.add(path, c, mode)
}

func (s *Server) addWatch(r *request) wire.Code {
	var body wire.NumberRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	switch body.Number {
	case wire.AddWatchPersistent:
		s.watchBoth(r.conn, body.Path, PersistentWatch)
	case wire.AddWatchPersistentRecursive:
		s.watchBoth(r.conn, body.Path, PersistentRecursive)
	default:
		return wire.MarshallingError
	}
	r.reply.Int(0)
	return wire.OK
}

// checkWatches is satisfied by anybody's watch on the path, as in ZooKeeper 3.8.
func (s *Server) checkWatches(r *request) wire.Code { return s.onWatches(r, (*watchTable).check) }

// check goes by how ZooKeeper looks for a watch: from slash to slash towards the
// root if there are recursive watches, or else one step. It finds nothing on an
// empty path and stumbles where there is no slash.
func (w *watchTable) check(path string) wire.Code {
	switch {
	case path == "":
		return wire.NoWatcher
	case !strings.Contains(path, "/"):
		return wire.MarshallingError
	case len(w.byPath[path]) > 0:
		return wire.OK
	case path[0] != '/' && w.recursive > 0:
		return wire.MarshallingError
	}
	return wire.NoWatcher
}

// removeWatches sends no event: clients tell their own watchers.
func (s *Server) removeWatches(r *request) wire.Code {
	return s.onWatches(r, func(w *watchTable, path string) wire.Code {
		if !w.remove(path, r.conn) {
			return wire.NoWatcher
		}
		return wire.OK
	})
}

// onWatches applies do to the tables that the request's type names; one of them
// is enough to find a watch.
func (s *Server) onWatches(r *request, do func(*watchTable, string) wire.Code) wire.Code {
	var body wire.NumberRequest
	if !r.decode(&body) || body.Number < wire.WatcherChildren || body.Number > wire.WatcherAny {
		return wire.MarshallingError
	}
	r.path = body.Path
	switch body.Number {
	case wire.WatcherChildren:
		return do(&s.childWatches, body.Path)
	case wire.WatcherData:
		return do(&s.dataWatches, body.Path)
	}
	children, data := do(&s.childWatches, body.Path), do(&s.dataWatches, body.Path)
	switch {
	case children == wire.MarshallingError, data == wire.NoWatcher:
		return children
	default:
		return data
	}
}
