package zkserver

import (
	"github.com/lockstep-go/lockstep/internal/wire"
)

// tree is every node, by path.
type tree struct {
	nodes      map[string]*node
	reapable   members             // containers and TTL nodes
	quotas     map[string]struct{} // the paths with a limit
	ephemerals int
	dataBytes  int64
}

// The nodes that exist from the start and cannot be deleted.
var specialPaths = []string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}

func isSpecial(path string) bool {
	for _, p := range specialPaths {
		if p == path {
			return true
		}
	}
	return path == ""
}

var openACL = wire.WorldACL(wire.PermAll)

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, quotas: map[string]struct{}{}}
	for _, path := range specialPaths {
		n := &node{path: path, acl: openACL, data: []byte{}}
		if path == "/" {
			t.nodes[path] = n
			continue
		}
		parent, _ := wire.SplitPath(path)
		n.parent = t.nodes[parent] // which counts it as nobody's creation
		t.link(n)
	}
	config := t.nodes["/zookeeper/config"] // closed off by a setting of its ACL
	config.acl, config.aversion = wire.WorldACL(wire.PermRead), -1
	return t
}

// get finds a node; the empty path is the root's other name.
func (t *tree) get(path string) *node {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// link puts a node under its parent and into its home.
func (t *tree) link(n *node) {
	t.nodes[n.path] = n
	n.parent.children.add(n, asChild)
	if n.home != nil {
		n.home.add(n, asOwned)
	}
	t.count(n, 1)
}

// unlink undoes link.
func (t *tree) unlink(n *node) {
	delete(t.nodes, n.path)
	n.parent.children.remove(n, asChild)
	if n.home != nil {
		n.home.remove(n, asOwned)
	}
	t.count(n, -1)
}

func (t *tree) count(n *node, sign int) {
	if n.kind == Ephemeral {
		t.ephemerals += sign
	}
	t.dataBytes += int64(sign) * int64(len(n.path)+len(n.data))
}

// descendants counts the nodes below n.
func (n *node) descendants() int {
	total := len(n.children.nodes)
	for _, child := range n.children.nodes {
		total += child.descendants()
	}
	return total
}
