package zkserver

import "github.com/lockstep-go/lockstep/internal/wire"

// txn is one transaction: all of it happens under one zxid or none of it does.
// Its events are sent when it commits.
type txn struct {
	s       *Server
	session *session        // who asks; nil for the server itself
	ids     []wire.Identity // what the asker's connection has authenticated as
	zxid    int64
	now     int64

	events []event
	atomic bool // several operations: remember how to undo them
	undo   []func()
}

type event struct {
	typ  wire.EventType
	path string
	grew int64 // bytes of data, of an event about a node itself
}

// begin starts a transaction. Its zxid is used up even if it fails.
func (s *Server) begin(c *conn) *txn {
	s.zxid++
	t := &s.txn
	*t = txn{s: s, zxid: s.zxid, now: s.clock().UnixMilli(), events: t.events[:0], undo: t.undo[:0]}
	if c != nil {
		t.session, t.ids = c.session, c.ids
	}
	return t
}

func (t *txn) commit() {
	t.s.tree.countUsage(t.events)
	for _, e := range t.events {
		t.s.fire(e)
	}
	clear(t.undo)
}

func (t *txn) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	clear(t.undo)
}

// insert adds a node under its parent.
func (t *txn) insert(n *node) {
	parent := n.parent
	if t.atomic {
		creates, pzxid := parent.creates, parent.pzxid
		t.undo = append(t.undo, func() {
			t.s.tree.unlink(n)
			parent.creates, parent.pzxid = creates, pzxid
		})
	}
	t.s.tree.link(n)
	parent.creates++
	parent.pzxid = t.zxid
	t.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data))}, event{wire.EventNodeChildrenChanged, parent.path, 0})
}

// remove takes a node out of the tree.
func (t *txn) remove(n *node) {
	parent := n.parent
	if t.atomic {
		pzxid := parent.pzxid
		t.undo = append(t.undo, func() {
			t.s.tree.link(n)
			parent.pzxid = pzxid
		})
	}
	t.s.tree.unlink(n)
	parent.pzxid = t.zxid
	t.events = append(t.events, event{wire.EventNodeDeleted, n.path, -int64(len(n.data))}, event{wire.EventNodeChildrenChanged, parent.path, 0})
}

// replace changes a node's data.
func (t *txn) replace(n *node, data []byte) {
	if t.atomic {
		old, mzxid, mtime, version := n.data, n.mzxid, n.mtime, n.version
		t.undo = append(t.undo, func() {
			t.s.tree.dataBytes += int64(len(old) - len(n.data))
			n.data, n.mzxid, n.mtime, n.version = old, mzxid, mtime, version
		})
	}
	grew := int64(len(data) - len(n.data))
	t.s.tree.dataBytes += grew
	n.data, n.mzxid, n.mtime = data, t.zxid, t.now
	n.version++
	t.events = append(t.events, event{wire.EventNodeDataChanged, n.path, grew})
}
