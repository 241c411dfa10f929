package zkserver

import (
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// dataTree has all nodes and counts the usage of quotas. It uses neither sessions nor connections.
// Transactions change it and collect events.
type dataTree struct {
	ttlNodes      bool // TTL nodes may be created
	enforceQuotas bool

	nodes             map[string]*node
	ephemerals        map[int64]*nodeSet // by session
	containersAndTTLs nodeSet
	quotas            map[string]struct{} // the paths with a limit
	dataBytes         int64
}

// event is a change of one node, or of its list of children.
type event struct {
	typ    wire.EventType
	path   string
	growth int64 // how many bytes the node's data have grown; 0 for a change of the children
	// acl is the node's ACL at the time of the change. Watchers that it forbids to read get no
	// event.
	acl []wire.ACL
}

// specialPaths are the paths of the nodes that always exist and cannot be deleted.
var specialPaths = []string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}

func isSpecialPath(path string) bool { return path == "" || slices.Contains(specialPaths, path) }

var openACL = wire.WorldACL(wire.PermAll)

func newDataTree() *dataTree {
	t := &dataTree{nodes: map[string]*node{}, ephemerals: map[int64]*nodeSet{}, quotas: map[string]struct{}{}}
	for _, path := range specialPaths {
		n := &node{path: path, acl: openACL, data: []byte{}}
		if path == "/" {
			t.nodes[path] = n
			continue
		}
		parent, _ := wire.SplitPath(path)
		n.parent = t.nodes[parent] // its childrenCreated stays 0, as on a real server
		t.linkNode(n)
	}
	config := t.nodes["/zookeeper/config"] // the real server makes this node and then sets its ACL
	config.acl, config.aversion = wire.WorldACL(wire.PermRead), -1
	return t
}

// findNode returns the node at path, or nil. The empty path is the root's other name.
func (t *dataTree) findNode(path string) *node {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// linkNode adds a node below its parent and to its lifetime set.
func (t *dataTree) linkNode(n *node) {
	t.nodes[n.path] = n
	n.parent.children.addNode(n, asChild)
	if set := t.lifetimeSet(n); set != nil {
		set.addNode(n, byLifetime)
	}
	t.dataBytes += nodeBytes(n)
}

// unlinkNode undoes linkNode.
func (t *dataTree) unlinkNode(n *node) {
	delete(t.nodes, n.path)
	n.parent.children.removeNode(n, asChild)
	if set := t.lifetimeSet(n); set != nil {
		set.removeNode(n, byLifetime)
	}
	t.dataBytes -= nodeBytes(n)
}

func nodeBytes(n *node) int64 { return int64(len(n.path) + len(n.data)) }

// lifetimeSet returns the set of nodes that end for the same reason as n, or nil for a persistent
// node.
func (t *dataTree) lifetimeSet(n *node) *nodeSet {
	switch n.kind {
	case Ephemeral:
		set := t.ephemerals[n.owner]
		if set == nil {
			set = &nodeSet{}
			t.ephemerals[n.owner] = set
		}
		return set
	case Container, TTL:
		return &t.containersAndTTLs
	}
	return nil
}

// ephemeralsOf returns the ephemeral nodes of a session. The slice changes with the tree.
func (t *dataTree) ephemeralsOf(session int64) []*node {
	if set := t.ephemerals[session]; set != nil {
		return set.nodes
	}
	return nil
}

// ephemeralPaths returns the sorted paths of a session's ephemeral nodes.
func (t *dataTree) ephemeralPaths(session int64) []string {
	var paths []string
	for _, n := range t.ephemeralsOf(session) {
		paths = append(paths, n.path)
	}
	slices.Sort(paths)
	return paths
}

func (t *dataTree) countEphemerals() int {
	total := 0
	for _, set := range t.ephemerals {
		total += len(set.nodes)
	}
	return total
}

// expiredNodes returns the containers and TTL nodes that have expired at that time.
func (t *dataTree) expiredNodes(now time.Time) (expired []*node) {
	for _, n := range t.containersAndTTLs.nodes {
		if n.hasExpired(now) {
			expired = append(expired, n)
		}
	}
	return expired
}

// hasExpired reports whether a container or TTL node has expired. A container that has had no child
// yet has not expired, since its creator is about to create one.
func (n *node) hasExpired(now time.Time) bool {
	switch {
	case len(n.children.nodes) > 0:
		return false
	case n.kind == Container:
		return n.childrenCreated > 0
	default:
		return now.UnixMilli()-n.mtime > n.owner
	}
}
