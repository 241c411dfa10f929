package zkserver

import (
	"maps"
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// laggingView is the state of a server that has not applied the ensemble's latest transactions.
type laggingView struct {
	tree   *dataTree
	zxid   int64
	leader bool    // it answers a sync from its own state
	events []event // the events of the connection's watches since then, which are sent when the server has caught up
}

// newLaggingView returns a view of the present state.
func newLaggingView(t *dataTree, zxid int64, leader bool) *laggingView {
	return &laggingView{tree: t.copyForReads(), zxid: zxid, leader: leader}
}

// answers reports whether the server answers an operation from its own state. It passes the others
// to the leader.
func (v *laggingView) answers(op wire.Op) bool {
	return answersFromView[op] || v.leader && op == wire.OpSync
}

// copyForReads returns a copy of the tree that is sufficient for reads.
func (t *dataTree) copyForReads() *dataTree {
	out := &dataTree{nodes: make(map[string]*node, len(t.nodes)), ephemerals: map[int64]*nodeSet{}}
	for path, n := range t.nodes {
		copied := *n
		out.nodes[path] = &copied
	}
	inCopy := func(set nodeSet) nodeSet {
		nodes := slices.Clone(set.nodes)
		for i, n := range nodes {
			nodes[i] = out.nodes[n.path]
		}
		return nodeSet{nodes: nodes}
	}
	for n := range maps.Values(out.nodes) {
		n.children = inCopy(n.children)
		if n.parent != nil {
			n.parent = out.nodes[n.parent.path]
		}
	}
	for session, set := range t.ephemerals {
		copied := inCopy(*set)
		out.ephemerals[session] = &copied
	}
	return out
}

// hasEvent reports whether the server will send an event of a node when it has caught up. That
// event ends all the connection's watches of its kinds on the node, also those that are set until
// then.
func (v *laggingView) hasEvent(path string, types ...wire.EventType) bool {
	return slices.ContainsFunc(v.events, func(e event) bool { return e.path == path && slices.Contains(types, e.typ) })
}

// addMissedData handles a new watch on data or existence. If the node has changed since the view,
// it adds the watch's event to the view, unless it is there, and returns true. Otherwise the caller
// sets the watch.
func (v *laggingView) addMissedData(path string, now *dataTree) bool {
	then, n := v.tree.findNode(path), now.findNode(path)
	switch {
	case v.hasEvent(path, wire.EventNodeCreated, wire.EventNodeDeleted, wire.EventNodeDataChanged):
	case then == nil && n == nil, then != nil && n != nil && then.mzxid == n.mzxid:
		return false
	case n == nil:
		v.events = append(v.events, event{typ: wire.EventNodeDeleted, path: path, acl: then.acl})
	case then == nil:
		v.events = append(v.events, event{typ: wire.EventNodeCreated, path: path, acl: n.acl})
	case then.czxid != n.czxid:
		v.events = append(v.events, event{typ: wire.EventNodeDeleted, path: path, acl: then.acl})
	default:
		v.events = append(v.events, event{typ: wire.EventNodeDataChanged, path: path, acl: n.acl})
	}
	return true
}

// addMissedChildren is addMissedData for a watch on children.
func (v *laggingView) addMissedChildren(path string, now *dataTree) bool {
	then, n := v.tree.findNode(path), now.findNode(path)
	switch {
	case v.hasEvent(path, wire.EventNodeChildrenChanged, wire.EventNodeDeleted):
	case then == nil, n != nil && then.pzxid == n.pzxid && then.czxid == n.czxid:
		return false
	case n == nil, then.czxid != n.czxid:
		v.events = append(v.events, event{typ: wire.EventNodeDeleted, path: path, acl: then.acl})
	default:
		v.events = append(v.events, event{typ: wire.EventNodeChildrenChanged, path: path, acl: n.acl})
	}
	return true
}

// answersFromView are the operations that each server answers from its own state. When it answers
// one of the others, it has applied all transactions that were committed before.
var answersFromView = map[wire.Op]bool{
	wire.OpExists: true, wire.OpGetData: true, wire.OpGetChildren: true, wire.OpGetChildren2: true, wire.OpGetACL: true,
	wire.OpGetAllChildrenNumber: true, wire.OpGetEphemerals: true, wire.OpMultiRead: true, wire.OpPing: true,
	wire.OpWhoAmI: true, wire.OpAddWatch: true, wire.OpCheckWatches: true, wire.OpRemoveWatches: true,
}
