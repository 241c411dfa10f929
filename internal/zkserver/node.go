package zkserver

import (
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Kind says what ends a node's life.
type Kind uint8

// The kinds of nodes.
const (
	Persistent Kind = iota // a delete only
	Ephemeral              // its session's end
	Container              // its last child's deletion, some time after
	TTL                    // a time without change and children
)

var kindNames = [...]string{Persistent: "persistent", Ephemeral: "ephemeral", Container: "container", TTL: "ttl"}

// String is the kind's name in lower case.
func (k Kind) String() string { return kindNames[k] }

// node is one znode.
type node struct {
	path   string
	data   []byte
	acl    []wire.ACL
	parent *node

	czxid, mzxid, pzxid int64
	ctime, mtime        int64 // milliseconds since 1970
	version, aversion   int32
	creates             int32 // children ever created: the next sequence number

	kind  Kind
	owner int64    // an ephemeral's session, or a TTL in milliseconds
	home  *members // its session's ephemerals, or the reapable nodes

	children members
	slots    [2]int // where it stands in its parent's children and in its home
}

// stat is what clients see of a node. They are not told of containers and TTLs.
// The cversion counts changes: for every create there was a delete, except for
// the children still there.
func (n *node) stat() wire.Stat {
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		DataLength: int32(len(n.data)), NumChildren: int32(len(n.children.nodes)),
	}
	s.Cversion = 2*n.creates - s.NumChildren
	if n.kind == Ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

func (n *node) name() string {
	_, name := wire.SplitPath(n.path)
	return name
}

// encodeChildren appends the children's names as a vector, newest first for as
// long as none is deleted: an order that nobody takes for a sorted one.
func (n *node) encodeChildren(e *wire.Encoder) {
	nodes := n.children.nodes
	e.Int(int32(len(nodes)))
	for i := len(nodes) - 1; i >= 0; i-- {
		e.String(nodes[i].name())
	}
}

// The two lists a node stands in.
const (
	asChild = 0
	asOwned = 1
)

// members is a set of nodes with an order that depends only on what was added
// and removed. Each node remembers its place, so both take constant time.
type members struct{ nodes []*node }

func (m *members) add(n *node, role int) {
	n.slots[role] = len(m.nodes)
	m.nodes = append(m.nodes, n)
}

func (m *members) remove(n *node, role int) {
	last := len(m.nodes) - 1
	moved := m.nodes[last]
	m.nodes[n.slots[role]] = moved
	moved.slots[role] = n.slots[role]
	m.nodes[last] = nil
	m.nodes = m.nodes[:last]
}
