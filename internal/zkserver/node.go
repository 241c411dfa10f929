package zkserver

import (
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Kind is the kind of a node. It says when the server deletes the node by itself.
type Kind uint8

// The kinds of nodes.
const (
	Persistent Kind = iota // not deleted by the server
	Ephemeral              // deleted with its session
	Container              // deleted some time after its last child
	TTL                    // deleted after a time without changes and children
)

var kindNames = [...]string{Persistent: "persistent", Ephemeral: "ephemeral", Container: "container", TTL: "ttl"}

// String returns the kind's name in lower case.
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
	childrenCreated     int32 // how many children were created; also the next sequence number

	kind  Kind
	owner int64 // the session of an ephemeral node, or the TTL in milliseconds

	children  nodeSet
	positions [2]int // the node's indices in its two sets, by setRole
}

// stat returns the node's metadata for clients. ZooKeeper does not show them which nodes are
// containers or TTL nodes. Cversion counts the creates and deletes of children: there are as many
// deletes as creates, minus the children that exist.
func (n *node) stat() wire.Stat {
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		DataLength: int32(len(n.data)), NumChildren: int32(len(n.children.nodes)),
	}
	s.Cversion = 2*n.childrenCreated - s.NumChildren
	if n.kind == Ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

func (n *node) name() string {
	_, name := wire.SplitPath(n.path)
	return name
}

// walkSubtree calls visit with n and every node below it, parents first.
func (n *node) walkSubtree(visit func(*node)) {
	visit(n)
	for _, child := range n.children.nodes {
		child.walkSubtree(visit)
	}
}

// countDescendants returns the number of nodes below n.
func (n *node) countDescendants() int {
	total := len(n.children.nodes)
	for _, child := range n.children.nodes {
		total += child.countDescendants()
	}
	return total
}

// encodeChildren appends the children's names as a vector. Until a child is deleted, the newest
// comes first, so that tests notice a client that relies on a sorted list.
func (n *node) encodeChildren(e *wire.Encoder) {
	nodes := n.children.nodes
	e.Int(int32(len(nodes)))
	for i := len(nodes) - 1; i >= 0; i-- {
		e.String(nodes[i].name())
	}
}

func (n *node) encodeStat(e *wire.Encoder) {
	stat := n.stat()
	stat.Encode(e)
}

func (n *node) encodeData(e *wire.Encoder) {
	e.Buffer(n.data)
	n.encodeStat(e)
}

// setRole is one of the two sets that a node may be in.
type setRole int

const (
	asChild    setRole = iota // in its parent's children
	byLifetime                // in its session's ephemeral nodes, or in the containers and TTL nodes
)

// nodeSet is a set of nodes. Its order depends only on the additions and removals. Each node has
// its index in the set, so that additions and removals take constant time.
type nodeSet struct{ nodes []*node }

func (m *nodeSet) addNode(n *node, role setRole) {
	n.positions[role] = len(m.nodes)
	m.nodes = append(m.nodes, n)
}

func (m *nodeSet) removeNode(n *node, role setRole) {
	last := len(m.nodes) - 1
	moved := m.nodes[last]
	m.nodes[n.positions[role]] = moved
	moved.positions[role] = n.positions[role]
	m.nodes[last] = nil
	m.nodes = m.nodes[:last]
}
