package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/internal/lifetime"
)

// hold implements primitives.Hold.
type hold struct {
	s     *Session
	nodes []heldNode
	one   [1]heldNode // of most holds
	life  lifetime.Lifetime
}

func (h *hold) Context() context.Context { return h.life.Context() }

func (h *hold) Lifetime() *lifetime.Lifetime { return &h.life }

func (h *hold) Err() error { return h.life.Err() }

func (h *hold) End(cause error) {
	stood := h.s.holds.removeHold(h)
	h.life.End(cause)
	if stood {
		h.s.endHolding()
	}
}

// heldNode is one node of a hold.
type heldNode struct {
	hold *hold
	path string
	full string

	// Guarded by heldNodes.mu.
	in    *nodeRotation // nil while the node is not held
	place int           // index in the rotation
	added int           // heartbeats that had ended when the node was added, or -1 if it must not wait for its watch
}

// heldNodes are the nodes that a session's holds name. Heartbeats check those that are not watched.
type heldNodes struct {
	mu         sync.Mutex
	unwatched  nodeRotation
	watched    nodeRotation
	heartbeats int // how many have ended
}

// nodeRotation is a list of nodes that heartbeats go through in turn.
type nodeRotation struct {
	list []*heldNode
	next int
}

func (hs *heldNodes) addHold(h *hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		h.nodes[i].added = hs.heartbeats
		hs.unwatched.addNode(&h.nodes[i])
	}
}

// removeHold removes a hold's nodes, and reports whether they were held.
func (hs *heldNodes) removeHold(h *hold) (removed bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		if n := &h.nodes[i]; n.in != nil {
			removed = true
			n.in.removeNode(n)
		}
	}
	return removed
}

// nodesToCheck returns up to n nodes that a heartbeat is to check: the unwatched nodes in turn, and one watched node.
func (hs *heldNodes) nodesToCheck(n int) []*heldNode {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	nodes := hs.unwatched.nextNodes(n)
	return append(nodes, hs.watched.nextNodes(min(1, n-len(nodes)))...)
}

// nodesToWatch takes in the end of a heartbeat. It returns up to n unwatched nodes that have been held for a heartbeat's interval, and counts them as watched
// from now on.
func (hs *heldNodes) nodesToWatch(n int) (nodes []*heldNode) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.heartbeats++
	for _, node := range hs.unwatched.list {
		if len(nodes) < n && node.added < hs.heartbeats-1 {
			nodes = append(nodes, node)
		}
	}
	for _, node := range nodes {
		hs.unwatched.removeNode(node)
		hs.watched.addNode(node)
	}
	return nodes
}

// watchSoon makes the end of this heartbeat watch nodes however young they are.
func (hs *heldNodes) watchSoon(nodes []*heldNode) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, n := range nodes {
		n.added = -1
	}
}

// markUnwatched makes heartbeats check a node again, since its watch has ended.
func (hs *heldNodes) markUnwatched(n *heldNode) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if n.in == &hs.watched {
		hs.watched.removeNode(n)
		hs.unwatched.addNode(n)
	}
}

func (r *nodeRotation) addNode(n *heldNode) {
	n.in, n.place = r, len(r.list)
	r.list = append(r.list, n)
}

// removeNode moves the list's last node to the place of a removed node.
func (r *nodeRotation) removeNode(n *heldNode) {
	end := len(r.list) - 1
	last := r.list[end]
	r.list[n.place], last.place = last, n.place
	r.list[end] = nil
	r.list = r.list[:end]
	n.in = nil
}

// nextNodes returns the next n nodes.
func (r *nodeRotation) nextNodes(n int) []*heldNode {
	n = min(n, len(r.list))
	out := make([]*heldNode, 0, n+1)
	for range n {
		r.next = (r.next + 1) % len(r.list)
		out = append(out, r.list[r.next])
	}
	return out
}

// maxWatchesAtOnce bounds the watches that are asked for after one heartbeat.
const maxWatchesAtOnce = 1000

// watchHeldNodes watches nodes that have been held for a while, so that their deletion is noticed at once and heartbeats need not check them. If a watch ends for
// another reason, the node is watched again after the next heartbeat. The end of a hold does not remove its watches: the code that ends a hold deletes its nodes.
func (s *Session) watchHeldNodes() {
	nodes := s.holds.nodesToWatch(maxWatchesAtOnce)
	if len(nodes) == 0 {
		return
	}
	listeners := make([]*Watch, len(nodes))
	keys := make([]watchKey, len(nodes))
	for i, n := range nodes {
		keys[i], listeners[i] = watchKey{watchData, n.full}, &Watch{tell: n.watchEnded}
	}
	s.watches.armWatches(keys, listeners)
}

// watchEnded takes in the event of a node's watch. It must not block, and holds the mutex of the watches.
func (n *heldNode) watchEnded(ev Event) {
	if ev.Kind == NodeDeleted {
		go n.endHold(ErrNoNode)
		return
	}
	n.hold.s.holds.markUnwatched(n)
}

// endHold ends the hold because the servers have told or answered something about its node: ErrNoNode if the node was deleted. If the session has ended before,
// as when the client is closed or its process was stopped, the cause is the session's error: the end of the session deletes the node, too.
func (n *heldNode) endHold(err error) {
	if errors.Is(err, ErrNoNode) {
		err = fmt.Errorf("%w: %s", ErrNodeGone, n.path)
	}
	n.hold.End(err)
}
