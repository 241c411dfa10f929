package zkserver

import "github.com/lockstep-go/lockstep/internal/wire"

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
			s.notify(r.conn, event{wire.EventNodeCreated, path})
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
		s.notify(c, event{wire.EventNodeDeleted, path})
	case since(n):
		s.notify(c, event{changed, path})
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
func (s *Server) checkWatches(r *request) wire.Code {
	return s.onWatches(r, func(w *watchTable, path string) bool { return len(w.byPath[path]) > 0 })
}

// removeWatches sends no event: clients tell their own watchers.
func (s *Server) removeWatches(r *request) wire.Code {
	return s.onWatches(r, func(w *watchTable, path string) bool { return w.remove(path, r.conn) })
}

// onWatches applies do to the tables that the request's type names.
func (s *Server) onWatches(r *request, do func(*watchTable, string) bool) wire.Code {
	var body wire.NumberRequest
	if !r.decode(&body) || body.Number < wire.WatcherChildren || body.Number > wire.WatcherAny {
		return wire.MarshallingError
	}
	r.path = body.Path
	found := false
	if body.Number != wire.WatcherData {
		found = do(&s.childWatches, body.Path)
	}
	if body.Number != wire.WatcherChildren {
		found = do(&s.dataWatches, body.Path) || found
	}
	if !found {
		return wire.NoWatcher
	}
	return wire.OK
}
