package locks

import (
	"container/list"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// localHandoff passes one node's lease among goroutines, one turn after the other
// (WithLocalHandoff). The turns that share a node are a slice.
//
// Between two calls it is in one of three states. It is idle: no goroutine waits or has the turn.
// It acquires the node for the goroutines that wait. Or one goroutine has the turn; its node may
// have been lost since.
type localHandoff struct {
	lock *commonLock

	mu            sync.Mutex   // taken behind a turn's own and before the node's
	waiting       list.List    // of *handoffWaiter, in the order of their calls
	acquiring     bool         // the node is being acquired
	stopAcquiring func()       // ends the acquisition when no goroutine waits any more; nil during a try
	acquiringNode *waitingNode // of the acquisition
	node          *Lease       // nil while there is none
	until         time.Time    // the end of the slice
	turns         int64        // of the slice so far
	current       *Lease       // the lease of the turn that a goroutine has, or nil
}

// handoffWaiter is one goroutine that waits for its turn.
type handoffWaiter struct {
	ctx     context.Context
	outcome chan handoffOutcome // has room for the only one
}

// handoffOutcome is the result of a wait: a lease, an error, or the abort of the goroutine that
// acquired the node for all.
type handoffOutcome struct {
	lease *Lease
	err   error
	abort func()
}

// waitForTurn waits for the goroutine's turn. It has the node acquired if there is no slice.
func (h *localHandoff) waitForTurn(ctx context.Context) (lease *Lease, err error) {
	if ctx.Err() != nil {
		return nil, failure.Wrap("acquire", h.lock.path, failure.Ended(ctx))
	}
	w := &handoffWaiter{ctx, make(chan handoffOutcome, 1)}
	if q := h.lock.newRequest(ctx, 0); q != nil {
		q.Waits = h.lineNode
		ctx = q.Begin(ctx)
		defer func() { err = failure.Wrap("acquire", h.lock.path, q.End(lease != nil, err)) }()
	}
	h.mu.Lock()
	element := h.waiting.PushBack(w)
	h.acquireNodeIfNeeded()
	h.mu.Unlock()
	select {
	case o := <-w.outcome:
		if o.abort != nil {
			o.abort()
		}
		return o.lease, o.err
	case <-ctx.Done():
		h.giveUp(w, element)
		return nil, failure.Wrap("acquire", h.lock.path, failure.Ended(ctx))
	}
}

// tryTurn takes the turn unless another goroutine has or wants a turn.
func (h *localHandoff) tryTurn(ctx context.Context) (*Lease, error) {
	h.mu.Lock()
	if h.current != nil || h.acquiring || h.waiting.Len() > 0 {
		h.mu.Unlock()
		return nil, failure.Wrap("try", h.lock.path, ErrNotAcquired)
	}
	h.acquiring = true
	h.mu.Unlock()
	node, err := h.lock.tryAcquire(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acquiring = false
	if err != nil {
		h.acquireNodeIfNeeded() // for goroutines that have begun to wait meanwhile
		return nil, err
	}
	h.startSlice(node)
	return h.newTurn(ctx), nil
}

// acquireNodeIfNeeded has the node acquired if a goroutine waits for it, on behalf of all that
// wait: the place in the line is kept while one of them waits.
func (h *localHandoff) acquireNodeIfNeeded() {
	if h.current != nil || h.acquiring || h.waiting.Len() == 0 {
		return
	}
	first := h.waiting.Front().Value.(*handoffWaiter)
	// each goroutine tells itself what it holds
	ctx, cancel := context.WithCancel(withoutHeldLocks(context.WithoutCancel(first.ctx)))
	own := &waitingNode{}
	h.acquiringNode = own
	h.acquiring, h.stopAcquiring = true, cancel
	go func() {
		defer cancel()
		o := handoffOutcome{abort: runtime.Goexit}
		defer func() { // the function of WithOnWait may panic, or end its goroutine
			if p := recover(); p != nil {
				o = handoffOutcome{abort: func() { panic(p) }}
			}
			h.nodeAcquired(ctx, o)
		}()
		node, err := h.lock.acquire(ctx, "acquire", 0,
			func(ctx context.Context, s *framework.Session, w *waitline.Wait) (*Lease, error) {
				w.Queued = own.set
				return h.lock.waitOnSession(ctx, s, w)
			})
		o = handoffOutcome{lease: node, err: err}
	}()
}

// nodeAcquired handles the outcome of an acquisition: the first goroutine that waits gets the first
// turn, or all get the error. It releases a node that nobody waits for.
func (h *localHandoff) nodeAcquired(acquired context.Context, o handoffOutcome) {
	if !h.passOutcome(acquired, o) {
		o.lease.endLease(ErrReleased, false)
	}
}

// passOutcome passes the outcome of an acquisition on. It reports false for a node that nobody
// waits for.
func (h *localHandoff) passOutcome(acquired context.Context, o handoffOutcome) (passed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acquiring, h.stopAcquiring = false, nil
	switch {
	case o.abort != nil:
		h.sendToFirst(o)
		h.acquireNodeIfNeeded()
	case o.err != nil && acquired.Err() != nil: // all had given up; others may have begun to wait since
		h.acquireNodeIfNeeded()
	case o.err != nil:
		for h.waiting.Len() > 0 {
			h.sendToFirst(o)
		}
	case h.waiting.Len() == 0:
		return false
	default:
		h.startSlice(o.lease)
		h.passTurn()
	}
	return true
}

// startSlice starts a slice on a node. When the node's lease ends, the current turn ends too, so
// that waiters need not wait for its release.
func (h *localHandoff) startSlice(node *Lease) {
	h.node, h.until, h.turns = node, time.Now().Add(h.lock.opts.handoff), 0
	context.AfterFunc(node.Context(), func() {
		h.mu.Lock()
		current := h.current
		if current == nil || current.outer != node {
			h.mu.Unlock()
			return
		}
		h.node = nil
		h.mu.Unlock()
		current.endLease(nil, false)
	})
}

// passTurn gives the turn to the first goroutine that waits.
func (h *localHandoff) passTurn() {
	h.sendToFirst(handoffOutcome{lease: h.newTurn(h.waiting.Front().Value.(*handoffWaiter).ctx)})
}

// newTurn returns the lease of a turn, within the node's.
func (h *localHandoff) newTurn(ctx context.Context) *Lease {
	h.turns++
	t := &Lease{client: h.lock.client, path: h.lock.path, kind: h.lock.kind, node: h.node.node, token: h.node.token,
		turn: h.turns, session: h.node.session,
		key: h.node.key, grant: h.node.grant, passer: h}
	t.standWithin(ctx, h.node)
	h.current = t
	return t
}

// sendToFirst gives the outcome to the first goroutine that waits, if there is one.
func (h *localHandoff) sendToFirst(o handoffOutcome) {
	if first := h.waiting.Front(); first != nil {
		h.waiting.Remove(first).(*handoffWaiter).outcome <- o
	}
}

// endTurn passes a turn that has ended on. It ends the slice instead if its time is over, if no
// goroutine waits, or if the turn has called Guard: the node is deleted then, so that the servers
// refuse the turn's late transactions. Then it returns the release of the node's lease, and that
// lease if its hold has ended with this call; see Lease.endUnmeasured.
func (h *localHandoff) endTurn(turn *Lease, tellQueued bool) (release leaseRelease, ended *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = nil
	if h.node != nil && h.node.Err() == nil && !turn.grant.IsGuarded() && h.waiting.Len() > 0 &&
		time.Now().Before(h.until) {
		h.passTurn()
		return leaseRelease{deletion: noDeletion{}}, nil
	}
	h.node = nil
	own := turn.outer
	ended = own.endUnmeasured(ErrReleased, tellQueued) // also of a node that was lost: its release tells so
	h.acquireNodeIfNeeded()
	return own.release, ended
}

// giveUp ends the wait of one goroutine whose context has ended.
func (h *localHandoff) giveUp(w *handoffWaiter, element *list.Element) {
	h.mu.Lock()
	h.waiting.Remove(element) // does nothing if the waiter has got its outcome meanwhile
	if h.waiting.Len() == 0 && h.stopAcquiring != nil {
		h.stopAcquiring()
	}
	h.mu.Unlock()
	select {
	case o := <-w.outcome:
		switch {
		case o.lease != nil:
			o.lease.endLease(ErrReleased, false)
		case o.abort != nil: // no other goroutine learns of the panic
			o.abort()
		}
	default:
	}
}

// lineNode returns the node with which all goroutines wait that wait for a turn: the node of the
// slice, or the acquisition's node in line.
func (h *localHandoff) lineNode() (waitgraph.LineNode, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	root := h.lock.client.Config().Root
	switch {
	case h.node != nil:
		return waitgraph.LineNode{Node: waitgraph.WithRoot(root, h.node.node), Zxid: h.node.grant.Node().Zxid,
			Slice: true}, true
	case h.acquiringNode != nil:
		node, ok := h.acquiringNode.lineNode(root)
		node.Slice = true
		return node, ok
	}
	return waitgraph.LineNode{}, false
}
