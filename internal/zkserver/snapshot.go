package zkserver

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Node is a copy of a node.
type Node struct {
	Path string
	Data []byte
	ACL  []wire.ACL
	Stat wire.Stat
	Kind Kind
	TTL  time.Duration // 0 unless it is a TTL node
}

// Session is a copy of a session's state.
type Session struct {
	ID         int64
	Timeout    time.Duration
	Expires    time.Time // when it expires if no packet arrives
	Connected  bool
	Remote     string   // the address of the client, if it is connected
	Ephemerals []string // sorted paths
}

// Watch is one connection's watch on one path.
type Watch struct {
	Path     string
	Session  int64
	Children bool // a watch on children; otherwise one on existence and data
	Mode     WatchMode
}

// Tree returns the node at path and all nodes below it, sorted by path. If there is no such
// node, the result is empty.
func (s *Server) Tree(path string) []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Node
	if n := s.db.tree.findNode(path); n != nil {
		n.walkSubtree(func(n *node) { out = append(out, copyNode(n)) })
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Node returns the node at path.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.db.tree.findNode(path)
	if n == nil {
		return Node{}, false
	}
	return copyNode(n), true
}

// Children returns the sorted names of a node's children. If there is no such node, the result
// is empty.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.db.tree.findNode(path)
	if n == nil {
		return nil
	}
	var names []string
	for _, child := range n.children.nodes {
		names = append(names, child.name())
	}
	slices.Sort(names)
	return names
}

func copyNode(n *node) Node {
	out := Node{Path: n.path, Data: bytes.Clone(n.data), ACL: slices.Clone(n.acl), Stat: n.stat(), Kind: n.kind}
	if n.kind == TTL {
		out.TTL = time.Duration(n.owner) * time.Millisecond
	}
	return out
}

// Sessions returns all sessions, the oldest first.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Session, 0, len(s.db.sessions.byID))
	for _, id := range slices.Sorted(maps.Keys(s.db.sessions.byID)) {
		sess := s.db.sessions.byID[id]
		copied := Session{ID: id, Timeout: sess.timeout, Expires: sess.expires,
			Ephemerals: s.db.tree.ephemeralPaths(id)}
		if c := s.connections.bySession[id]; c != nil {
			copied.Connected, copied.Remote = true, c.nc.RemoteAddr().String()
		}
		out = append(out, copied)
	}
	return out
}

// Watches returns all watches, sorted by path and session.
func (s *Server) Watches() []Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Watch
	for children, watches := range map[bool]*watchManager{false: s.db.dataWatches, true: s.db.childWatches} {
		for path, watchers := range watches.byPath {
			for w, mode := range watchers {
				out = append(out, Watch{Path: path, Session: w.sessionID(), Children: children, Mode: mode})
			}
		}
	}
	slices.SortFunc(out, compareWatches)
	return out
}

func compareWatches(a, b Watch) int {
	childrenLast := func(w Watch) int {
		if w.Children {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Session, b.Session), childrenLast(a)-childrenLast(b))
}

// WatchCount returns the number of watches. It does not list them.
func (s *Server) WatchCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.countWatches()
}

// Requests returns how many requests of each operation have arrived since the
// start.
func (s *Server) Requests() map[wire.Op]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.processor.counts)
}

// Zxid returns the number of the last transaction.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.zxid
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections.attached
}
