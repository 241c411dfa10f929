package zkserver

import "github.com/lockstep-go/lockstep/internal/wire"

// transaction is a list of changes with one zxid. Either all of them are applied or none. Its
// events are sent after the commit.
type transaction struct {
	tree    *dataTree
	session int64           // of the client; 0 for the server itself
	ids     []wire.Identity // the identities that the client's connection has authenticated
	zxid    int64
	now     int64 // milliseconds since 1970

	events []event
	atomic bool     // it has several operations, so that undo is needed
	undo   []func() // functions that undo the changes
}

// commit counts the usage of quotas and returns the events.
func (t *transaction) commit() []event {
	t.tree.countUsage(t.events)
	clear(t.undo)
	return t.events
}

func (t *transaction) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	clear(t.undo)
}

// insertNode adds a node below its parent.
func (t *transaction) insertNode(n *node) {
	parent := n.parent
	if t.atomic {
		created, pzxid := parent.childrenCreated, parent.pzxid
		t.undo = append(t.undo, func() {
			t.tree.unlinkNode(n)
			parent.childrenCreated, parent.pzxid = created, pzxid
		})
	}
	t.tree.linkNode(n)
	parent.childrenCreated++
	parent.pzxid = t.zxid
	t.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data)), n.acl},
		event{wire.EventNodeChildrenChanged, parent.path, 0, parent.acl})
}

// removeNode removes a node from the tree.
func (t *transaction) removeNode(n *node) {
	parent := n.parent
	if t.atomic {
		pzxid := parent.pzxid
		t.undo = append(t.undo, func() {
			t.tree.linkNode(n)
			parent.pzxid = pzxid
		})
	}
	t.tree.unlinkNode(n)
	parent.pzxid = t.zxid
	t.events = append(t.events, event{wire.EventNodeDeleted, n.path, -int64(len(n.data)), n.acl},
		event{wire.EventNodeChildrenChanged, parent.path, 0, parent.acl})
}

// replaceData changes a node's data.
func (t *transaction) replaceData(n *node, data []byte) {
	if t.atomic {
		old, mzxid, mtime, version := n.data, n.mzxid, n.mtime, n.version
		t.undo = append(t.undo, func() {
			t.tree.dataBytes += int64(len(old) - len(n.data))
			n.data, n.mzxid, n.mtime, n.version = old, mzxid, mtime, version
		})
	}
	growth := int64(len(data) - len(n.data))
	t.tree.dataBytes += growth
	n.data, n.mzxid, n.mtime = data, t.zxid, t.now
	n.version++
	t.events = append(t.events, event{wire.EventNodeDataChanged, n.path, growth, n.acl})
}
