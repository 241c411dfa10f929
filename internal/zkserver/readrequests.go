package zkserver

import (
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// findReadable returns a node that the client may read.
func (p *requestProcessor) findReadable(r *request, path string) (*node, wire.Code) {
	n := p.treeFor(r.connection).findNode(path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !isAllowed(n.acl, wire.PermRead, r.connection.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

// exists needs no permission. It is the only operation that sets a watch on a missing node.
func (p *requestProcessor) exists(r *request) wire.Code {
	var body wire.WatchRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	if strings.IndexByte(body.Path, 0) >= 0 {
		return wire.BadArguments
	}
	if view := r.connection.view; body.Watch && (view == nil || !view.addMissedData(body.Path, p.db.tree)) {
		p.db.dataWatches.addWatch(body.Path, r.connection, OneShot)
	}
	n := p.treeFor(r.connection).findNode(body.Path)
	if n == nil {
		return wire.NoNode
	}
	n.encodeStat(r.reply)
	return wire.OK
}

func (p *requestProcessor) getData(r *request) wire.Code {
	return p.readAndWatch(r, p.db.dataWatches, (*laggingView).addMissedData, func(n *node) { n.encodeData(r.reply) })
}

func (p *requestProcessor) getChildren(r *request) wire.Code {
	return p.readAndWatch(r, p.db.childWatches, (*laggingView).addMissedChildren,
		func(n *node) { n.encodeChildren(r.reply) })
}

func (p *requestProcessor) getChildren2(r *request) wire.Code {
	return p.readAndWatch(r, p.db.childWatches, (*laggingView).addMissedChildren, func(n *node) {
		n.encodeChildren(r.reply)
		n.encodeStat(r.reply)
	})
}

// readAndWatch answers a read, and sets its watch. On a server that lags behind, it first calls
// addMissed: see addMissedData.
func (p *requestProcessor) readAndWatch(r *request, watches *watchManager,
	addMissed func(*laggingView, string, *dataTree) bool, encode func(*node)) wire.Code {
	var body wire.WatchRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	n, code := p.findReadable(r, body.Path)
	if code != wire.OK {
		return code
	}
	if view := r.connection.view; body.Watch && (view == nil || !addMissed(view, body.Path, p.db.tree)) {
		watches.addWatch(body.Path, r.connection, OneShot)
	}
	encode(n)
	return wire.OK
}

// getACL requires READ or ADMIN. For a client without ADMIN it hides the digests.
func (p *requestProcessor) getACL(r *request) wire.Code {
	n, code := p.findByRequest(r, wire.PermRead|wire.PermAdmin)
	if code != wire.OK {
		return code
	}
	acl := n.acl
	if !isAllowed(acl, wire.PermAdmin, r.connection.ids) {
		acl = redactDigests(acl)
	}
	r.reply.ACLs(acl)
	n.encodeStat(r.reply)
	return wire.OK
}

func (p *requestProcessor) getAllChildrenNumber(r *request) wire.Code {
	n, code := p.findByRequest(r, wire.PermRead)
	if code != wire.OK {
		return code
	}
	number := n.countDescendants()
	if r.path == "" { // the real server counts the root itself for an empty path
		number++
	}
	r.reply.Int(int32(number))
	return wire.OK
}

func (p *requestProcessor) findByRequest(r *request, perms int32) (*node, wire.Code) {
	var body wire.PathRequest
	if !r.decode(&body) {
		return nil, wire.MarshallingError
	}
	r.path = body.Path
	n := p.treeFor(r.connection).findNode(body.Path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !isAllowed(n.acl, perms, r.connection.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func (p *requestProcessor) getEphemerals(r *request) wire.Code {
	var body wire.PathRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	prefix := body.Path
	if p := strings.TrimSpace(prefix); p == "" || p == "/" {
		prefix = "/"
	}
	var paths []string
	for _, n := range p.treeFor(r.connection).ephemeralsOf(r.connection.session.id) {
		if strings.HasPrefix(n.path, prefix) {
			paths = append(paths, n.path)
		}
	}
	r.reply.Strings(paths)
	return wire.OK
}

// whoAmI returns the client's identities, without the hashes of passwords.
func (p *requestProcessor) whoAmI(r *request) wire.Code {
	r.reply.Int(int32(len(r.connection.ids)))
	for _, id := range r.connection.ids {
		user := id.ID
		if id.Scheme == schemeDigest {
			user, _, _ = strings.Cut(user, ":")
		}
		r.reply.String(id.Scheme)
		r.reply.String(user)
	}
	return wire.OK
}

// setWatches restores the watches of a client that reconnects. If a node has changed after the zxid
// that the client has seen, it sends the event before the reply and does not set the watch.
func (p *requestProcessor) setWatches(r *request) wire.Code {
	body := wire.SetWatchesRequest{Two: r.header.Op == wire.OpSetWatches2}
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	for _, path := range body.Data {
		p.restoreWatch(r.connection, p.db.dataWatches, path, wire.EventNodeDataChanged,
			func(n *node) bool { return n.mzxid > body.RelativeZxid })
	}
	for _, path := range body.Exist {
		if p.db.tree.findNode(path) != nil {
			r.connection.processEvent(event{typ: wire.EventNodeCreated, path: path})
		} else {
			p.db.dataWatches.addWatch(path, r.connection, OneShot)
		}
	}
	for _, path := range body.Child {
		p.restoreWatch(r.connection, p.db.childWatches, path, wire.EventNodeChildrenChanged,
			func(n *node) bool { return n.pzxid > body.RelativeZxid })
	}
	for _, path := range body.Persistent {
		p.addPersistentWatch(r.connection, path, PersistentWatch)
	}
	for _, path := range body.Recurse {
		p.addPersistentWatch(r.connection, path, PersistentRecursive)
	}
	return wire.OK
}

func (p *requestProcessor) restoreWatch(c *connection, watches *watchManager, path string, eventType wire.EventType,
	changed func(*node) bool) {
	switch n := p.db.tree.findNode(path); {
	case n == nil:
		c.processEvent(event{typ: wire.EventNodeDeleted, path: path})
	case changed(n):
		c.processEvent(event{typ: eventType, path: path})
	default:
		watches.addWatch(path, c, OneShot)
	}
}

func (p *requestProcessor) addPersistentWatch(c *connection, path string, mode WatchMode) {
	p.db.childWatches.addWatch(path, c, mode)
	p.db.dataWatches.addWatch(path, c, mode)
}

func (p *requestProcessor) addWatch(r *request) wire.Code {
	var body wire.NumberRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	switch body.Number {
	case wire.AddWatchPersistent:
		p.addPersistentWatch(r.connection, body.Path, PersistentWatch)
	case wire.AddWatchPersistentRecursive:
		p.addPersistentWatch(r.connection, body.Path, PersistentRecursive)
	default:
		return wire.MarshallingError
	}
	r.reply.Int(0)
	return wire.OK
}

// checkWatches also finds a watch of another connection on the path, as ZooKeeper 3.8 does.
func (p *requestProcessor) checkWatches(r *request) wire.Code {
	return p.forWatchManagers(r, (*watchManager).checkPath)
}

// removeWatches sends no event, since clients notify their own watchers.
func (p *requestProcessor) removeWatches(r *request) wire.Code {
	return p.forWatchManagers(r, func(w *watchManager, path string) wire.Code {
		if !w.removeWatch(path, r.connection) {
			return wire.NoWatcher
		}
		return wire.OK
	})
}

// forWatchManagers calls do for the watch managers of the request's watcher type. It returns OK if
// one of them finds a watch.
func (p *requestProcessor) forWatchManagers(r *request, do func(*watchManager, string) wire.Code) wire.Code {
	var body wire.NumberRequest
	if !r.decode(&body) || body.Number < wire.WatcherChildren || body.Number > wire.WatcherAny {
		return wire.MarshallingError
	}
	r.path = body.Path
	switch body.Number {
	case wire.WatcherChildren:
		return do(p.db.childWatches, body.Path)
	case wire.WatcherData:
		return do(p.db.dataWatches, body.Path)
	}
	children, data := do(p.db.childWatches, body.Path), do(p.db.dataWatches, body.Path)
	switch {
	case children == wire.MarshallingError, data == wire.NoWatcher:
		return children
	default:
		return data
	}
}
