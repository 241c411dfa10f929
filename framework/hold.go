package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/link"
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
	zxid int64 // that has created it: another node may get the same name

	// Guarded by heldNodes.mu.
	in    *nodeRotation // nil while the node is not held
	index int           // index in the rotation
	due   time.Duration // when it has been held for a heartbeat's interval and may be watched; 0 if it must not wait
	after int           // so many heartbeats, and one more, must have ended before it may be watched
}

// heldNodes are the nodes that a session's holds name. Heartbeats check those that are not watched.
type heldNodes struct {
	mu         sync.Mutex
	unwatched  nodeRotation
	watched    nodeRotation
	heartbeats int              // how many have ended
	arming     *link.Connection // on which watches are being asked for; nil if none are
}

// nodeRotation is a list of nodes that heartbeats go through in turn.
type nodeRotation struct {
	list []*heldNode
	next int
}

// addHold adds a hold's nodes, which may be watched from a time on.
func (hs *heldNodes) addHold(h *hold, due time.Duration) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		h.nodes[i].due, h.nodes[i].after = due, -1
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

// nodesToCheck returns up to n nodes that a heartbeat is to check: the unwatched nodes in turn, and
// one watched node.
func (hs *heldNodes) nodesToCheck(n int) []*heldNode {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	nodes := hs.unwatched.nextNodes(n)
	return append(nodes, hs.watched.nextNodes(min(1, n-len(nodes)))...)
}

// beginArming counts the end of a heartbeat. It reports whether to ask for watches now: it does
// not if they are being asked for on this connection already.
func (hs *heldNodes) beginArming(conn *link.Connection) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.heartbeats++
	if hs.arming == conn {
		return false
	}
	hs.arming = conn
	return true
}

// nodesToWatch returns up to n unwatched nodes that have been held for a heartbeat's interval, and
// counts them as watched from now on. If there are none, no more are asked for on this connection
// until the end of the next heartbeat.
func (hs *heldNodes) nodesToWatch(n int, conn *link.Connection, now time.Duration) (nodes []*heldNode) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.arming != conn {
		return nil
	}
	for _, node := range hs.unwatched.list {
		if len(nodes) < n && node.due <= now && node.after < hs.heartbeats {
			nodes = append(nodes, node)
		}
	}
	for _, node := range nodes {
		hs.unwatched.removeNode(node)
		hs.watched.addNode(node)
	}
	if len(nodes) == 0 {
		hs.arming = nil
	}
	return nodes
}

// watchSoon makes the end of this heartbeat watch nodes however young they are.
func (hs *heldNodes) watchSoon(nodes []*heldNode) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, n := range nodes {
		n.due = 0
	}
}

// endArming records that a connection was lost while watches were asked for on it.
func (hs *heldNodes) endArming(conn *link.Connection) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.arming == conn {
		hs.arming = nil
	}
}

// markUnwatched makes heartbeats check a node again, since its watch has ended. It is watched again
// when watches are asked for the next time: at once on a new connection, but behind another
// heartbeat if a change of the node or a refusal has ended the watch, since that may happen again
// and again.
func (hs *heldNodes) markUnwatched(n *heldNode, ev Event) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if n.in != &hs.watched {
		return
	}
	hs.watched.removeNode(n)
	hs.unwatched.addNode(n)
	if ev.Kind != Reconnected {
		n.after = hs.heartbeats
	}
}

func (r *nodeRotation) addNode(n *heldNode) {
	n.in, n.index = r, len(r.list)
	r.list = append(r.list, n)
}

// removeNode moves the list's last node to the index of a removed node.
func (r *nodeRotation) removeNode(n *heldNode) {
	end := len(r.list) - 1
	last := r.list[end]
	r.list[n.index], last.index = last, n.index
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

// maxWatchesAtOnce bounds the watches that are asked for before one of them is answered, so that a
// heartbeat's answer does not wait long behind theirs.
const maxWatchesAtOnce = 1000

// watchHeldNodes is called on each new connection and after each heartbeat. It watches nodes that
// have been held for a while, so that their deletion is noticed at once and heartbeats need not
// check them. It asks for the watches in batches, one behind the answers to the other. The end of a
// hold does not remove its watches: the code that ends a hold deletes its nodes.
func (s *Session) watchHeldNodes(conn *link.Connection) {
	if s.holds.beginArming(conn) {
		s.watchNextNodes(conn)
	}
}

// watchNextNodes asks for one batch of watches, and for the next one when that is answered. Each
// request reads whose node it is, also if another waiter has armed the watch.
func (s *Session) watchNextNodes(conn *link.Connection) {
	nodes := s.holds.nodesToWatch(maxWatchesAtOnce, conn, s.setup.clock.Now())
	if len(nodes) == 0 {
		return
	}
	calls := make([]*link.Call, len(nodes))
	s.watches.asking.Lock()
	defer s.watches.asking.Unlock()
	for i, n := range nodes {
		w := &Watch{tell: n.watchEnded}
		s.watches.joinEntry(watchKey{watchExists, n.full}, w)
		calls[i] = w.entry.prepareRead(w.entry.armOnce(), func(r link.Reply) {
			n.watchAnswered(w, decodeAnswer(r, decodeStatOnly))
			switch {
			case i < len(nodes)-1:
			case r.Err != nil:
				s.holds.endArming(conn)
			default:
				go s.watchNextNodes(conn)
			}
		})
	}
	s.transport.Send(calls...)
}

// watchAnswered handles the answer to the request for a node's watch. It must not block. If the
// node is gone, or another one has its name, the hold ends, and the watch of a missing node is
// removed. If the servers have not answered whose node it is, they are asked again, also if another
// waiter has armed the watch.
func (n *heldNode) watchAnswered(w *Watch, o outcome[readResult]) {
	switch {
	case errors.Is(o.err, ErrNoNode) || o.err == nil && o.v.stat.Czxid != n.zxid:
		go func() {
			w.Stop()
			n.endHold(ErrNoNode)
		}()
	case o.err != nil && !errors.Is(o.err, ErrSuspended): // else the next connection asks
		n.hold.s.holds.markUnwatched(n, Event{Err: o.err})
		go w.Stop()
	}
}

// watchEnded handles the event of a node's watch. It must not block, and holds the mutex of the
// watches.
func (n *heldNode) watchEnded(ev Event) {
	if ev.Kind == NodeDeleted {
		go n.endHold(ErrNoNode)
		return
	}
	n.hold.s.holds.markUnwatched(n, ev)
}

// endHold ends the hold because the servers have told or answered something about its node:
// ErrNoNode if the node was deleted. If the session has ended before, as when the client is closed
// or its process was stopped, the cause is the session's error: the end of the session deletes the
// node, too.
func (n *heldNode) endHold(err error) {
	if errors.Is(err, ErrNoNode) {
		err = fmt.Errorf("%w: %s", ErrNodeGone, n.path)
	}
	n.hold.End(err)
}
