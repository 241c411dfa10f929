package framework

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/internal/lifetime"
)

// Hold is what a session was granted: nodes of its own and a context that is done when one of them or
// the session is gone.
type Hold struct {
	s     *Session
	nodes []heldNode
	one   [1]heldNode // of most holds
	life  lifetime.Lifetime
}

// heldNode is one node of a hold.
type heldNode struct {
	hold  *Hold
	path  string
	full  string
	place int // in the rotation
}

// Context is done when the hold has ended; its cause says why.
func (h *Hold) Context() context.Context { return h.life.Context() }

// Lifetime is how long the hold stands, for what lies within it. End the hold itself.
func (h *Hold) Lifetime() *lifetime.Lifetime { return &h.life }

// Session is the session that holds.
func (h *Hold) Session() *Session { return h.s }

// Err is nil while the hold stands, else why it ended. It reads the clock.
func (h *Hold) Err() error { return h.life.Err() }

// End ends the hold with a cause; only the first call counts. The nodes stay.
func (h *Hold) End(cause error) {
	h.s.holds.remove(h)
	h.life.End(cause)
}

// heldNodes are the nodes that a session's holds name, in the rotation in which beats check them.
type heldNodes struct {
	mu   sync.Mutex
	list []*heldNode
	next int
}

const notInRotation = -1

func (hs *heldNodes) add(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		h.nodes[i].place = len(hs.list)
		hs.list = append(hs.list, &h.nodes[i])
	}
}

func (hs *heldNodes) remove(h *Hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for i := range h.nodes {
		hs.swapRemove(&h.nodes[i])
	}
}

// swapRemove puts the last of the list into a node's place.
func (hs *heldNodes) swapRemove(n *heldNode) {
	if n.place == notInRotation {
		return
	}
	end := len(hs.list) - 1
	last := hs.list[end]
	hs.list[n.place], last.place = last, n.place
	hs.list[end] = nil
	hs.list = hs.list[:end]
	n.place = notInRotation
}

// nextNodes returns the next n nodes of the rotation.
func (hs *heldNodes) nextNodes(n int) []*heldNode {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	n = min(n, len(hs.list))
	out := make([]*heldNode, 0, n)
	for range n {
		hs.next = (hs.next + 1) % len(hs.list)
		out = append(out, hs.list[hs.next])
	}
	return out
}
