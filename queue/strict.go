package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/locks"
)

// strictOrder claims items one behind the other, while its consumer holds the queue's lock.
type strictOrder struct {
	cs     *consumerSession
	holder atomic.Pointer[lockHolder] // nil before the lock was granted
}

// claimItems claims items when the consumer has the queue's lock.
func (o *strictOrder) claimItems() error {
	if err := o.cs.standInLine(o.holdLock); err != nil {
		return err
	}
	return o.cs.claimLoop(func() { o.cs.writer.addRequests(o.nextAfterAcks(0)...) }, func() {})
}

// holdLock reads and claims until the lease or the consumer session has ended, and then ends what
// is open, before the lock is released.
func (o *strictOrder) holdLock(lease *locks.Lease, ready func()) {
	ready()
	cs := o.cs
	ctx, cancel := context.WithCancelCause(lease.Context())
	context.AfterFunc(cs.ctx, func() { cancel(context.Cause(cs.ctx)) })
	h := &lockHolder{cs: cs, lease: lease, ctx: ctx, heads: map[*strictReader]*fetchedItem{}}
	o.holder.Store(h)
	defer h.tasks.Wait()
	if err := h.loadProgress(); err != nil {
		cs.endOnError(err)
		return
	}
	for _, task := range newHousekeeping(cs) {
		h.tasks.Go(func() { cs.endOnError(task(ctx)) })
	}
	cs.endOnError(h.readChains())
	<-ctx.Done()
	h.finishClaims()
	h.uncountUnseen()
	cs.returnAll()
}

// nextAfterAcks claims the next items. A claim counts an attempt, so it expects no further calls of
// Take.
func (o *strictOrder) nextAfterAcks(int) []*writeRequest {
	if h := o.holder.Load(); h != nil {
		return h.nextClaims()
	}
	return nil
}

// returnItem makes the item the first again, after a time. It stays where it is in the queue.
func (o *strictOrder) returnItem(c *claimedItem, _ int, after time.Duration, _ error, then func(error)) {
	o.holder.Load().returnFirst(c, after)
	c.endDelivery(nil)
	then(nil)
}

// returnUnsettled ends the delivery. Its item is where it was in the queue.
func (o *strictOrder) returnUnsettled(c *claimedItem, _ int, then func(error)) {
	c.endDelivery(errClosed)
	then(errClosed)
}

// hasPassed reports whether the reader of a chain has left a segment behind.
func (o *strictOrder) hasPassed(segment queuelayout.Segment) bool {
	h := o.holder.Load()
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.readers,
		func(r *strictReader) bool { return r.chain == segment.Chain && r.segment.Load() > segment.Number })
}

// countClaimable counts the items that the holder of the lock may claim now. It leaves out items
// with an open delivery, and items behind a returned one that waits for its time. An item that was
// claimed before goes alone.
func (o *strictOrder) countClaimable(state queueState, first bool) (n int, undecided bool) {
	h := o.holder.Load()
	switch {
	case !first:
		return 0, false
	case h == nil:
		return state.countItems(), false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.firstItem()
	alone := h.solo || next.item != nil && next.item.claimed
	above := int64(-1) // the rank of the chain of an item that waits
	if len(h.returned) > 0 && time.Until(h.returned[0].when) > 0 {
		above = h.returned[0].item.id.Segment.Chain.Rank()
	}
	open, undecided := o.cs.claims.openItems()
	if undecided || len(open) > 0 && alone {
		return 0, undecided
	}
	for _, counted := range state.chains {
		if counted.chain.Rank() > above {
			n += counted.items
		}
	}
	for _, c := range open {
		if c.id.Segment.Chain.Rank() > above {
			n--
		}
	}
	return max(0, n), false
}

// lockHolder is the consumer that has the lock of a strict queue: only it claims items, in order.
type lockHolder struct {
	cs    *consumerSession
	lease *locks.Lease
	ctx   context.Context // done when the lease or the consumer session has ended
	tasks sync.WaitGroup

	before queuelayout.Progress // how far the holders before this one have claimed
	purges int32                // the version of the items' directory, before the items were read; a purge raises it

	claiming sync.Mutex     // held while claims are made, so that they are made in order
	finished bool           // no more claims are made; guarded by claiming
	pending  sync.WaitGroup // claims on their way

	mu       sync.Mutex
	readers  []*strictReader                // in the order in which their items go
	heads    map[*strictReader]*fetchedItem // the first item of each
	missing  []queuelayout.Segment          // of heads that were passed over: there is no such item
	reached  queuelayout.Progress
	returned []returnedItem // in order
	timerAt  time.Time      // the time that a timer is set to
	solo     bool           // the item that was claimed last had been claimed before: no other is claimed beside it
}

// returnedItem is an item that was given back. It goes first once its time has come.
type returnedItem struct {
	item *fetchedItem
	when time.Time
}

// loadProgress reads how far the queue was claimed, and the number of purges. The last holder has
// made its last claim before: this server has seen that holder's node in the line go.
func (h *lockHolder) loadProgress() error {
	nodes, s := h.cs.store.nodes, h.cs.s
	for {
		read, err := s.GetAll(h.ctx, nodes.ItemsDir, nodes.ClaimedNode)
		if err != nil {
			return err
		}
		items, claimed := read[0], read[1]
		if items.Err == nil && errors.Is(claimed.Err, framework.ErrNoNode) {
			_, err := s.Multi(h.ctx, nodes.CheckExists(),
				framework.CreateOp(nodes.ClaimedNode, nil, framework.Persistent))
			if err != nil && !errors.Is(err, framework.ErrNodeExists) {
				return err
			}
			continue
		}
		if err := cmp.Or(items.Err, claimed.Err); err != nil {
			return err
		}
		if h.before, err = queuelayout.DecodeProgress(claimed.Data); err != nil {
			return err
		}
		h.reached, h.purges = h.before.Clone(), items.Stat.Version
		return nil
	}
}

// readChains starts a reader for the base chain and for each lane, as they appear.
func (h *lockHolder) readChains() error {
	nodes, s := h.cs.store.nodes, h.cs.s
	for {
		_, _, signal, err := s.WatchData(h.ctx, nodes.LanesDir)
		if err != nil {
			return err
		}
		chains, err := nodes.ListChains(h.ctx, s)
		if err != nil {
			signal.Stop()
			return err
		}
		h.startReaders(chains)
		if err := waitForWatch(h.ctx, signal); err != nil {
			return err
		}
	}
}

func (h *lockHolder) startReaders(chains []queuelayout.Chain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, chain := range chains {
		if slices.ContainsFunc(h.readers, func(r *strictReader) bool { return r.chain == chain }) {
			continue
		}
		r := newStrictReader(h.cs, chain, h.before)
		h.readers = append(h.readers, r)
		h.tasks.Go(func() { h.cs.endOnError(r.readChain(h.ctx)) })
	}
	slices.SortFunc(h.readers, func(a, b *strictReader) int { return cmp.Compare(b.chain.Rank(), a.chain.Rank()) })
}

// nextClaims returns requests that claim the items that are wanted, in order.
func (h *lockHolder) nextClaims() (requests []*writeRequest) {
	h.claiming.Lock()
	defer h.claiming.Unlock()
	for !h.finished && h.cs.gate.isOpen() {
		item := h.nextItem()
		if item == nil {
			break
		}
		h.pending.Add(1)
		requests = append(requests, h.claimRequest(item))
	}
	return requests
}

// nextItem takes the next item, if it was read and is wanted. An item that was claimed before goes
// alone, and only when a call of Take waits: if it makes its consumers crash, no other item counts
// an attempt.
func (h *lockHolder) nextItem() *fetchedItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	busy := h.cs.claims.isBusy()
	if h.solo && busy {
		return nil
	}
	first := h.firstItem()
	for _, segment := range h.missing {
		h.cs.tasks.Start(func() { h.cs.itemSettled(segment) })
	}
	h.missing = nil
	h.wakeAt(first.due)
	h.cs.endOnError(first.err)
	item := first.item
	if item == nil || item.claimed && busy || h.cs.claims.reserveClaims(1, item.claimed) == 0 {
		return nil
	}
	if first.from == nil {
		h.returned = h.returned[1:]
	} else {
		delete(h.heads, first.from)
		first.from.itemTaken(item)
	}
	if h.solo = item.claimed; !item.claimed {
		h.reached.SetClaimed(item.id)
	}
	return item
}

// nextInOrder is the item that is to be claimed next, or why there is none at present.
type nextInOrder struct {
	item *fetchedItem
	from *strictReader // whose head it is; nil if it was given back
	due  time.Time     // of a returned item that all others wait for
	err  error         // of the read of an item
}

// firstItem finds the next item. A returned item that waits for its time holds up its chain and
// those of lower rank; h.mu is held.
func (h *lockHolder) firstItem() nextInOrder {
	for _, r := range h.readers {
		if len(h.returned) > 0 && h.returned[0].item.id.Segment.Chain.Rank() >= r.chain.Rank() {
			first := h.returned[0]
			if time.Until(first.when) > 0 {
				return nextInOrder{due: first.when}
			}
			return nextInOrder{item: first.item}
		}
		idle := r.idle.Load() // before its items are looked at
		switch f := h.headOf(r); {
		case f != nil && f.node.Err != nil:
			return nextInOrder{err: f.node.Err}
		case f != nil:
			return nextInOrder{item: f, from: r}
		case !idle || h.heads[r] != nil:
			return nextInOrder{} // it may have an item soon
		}
	}
	return nextInOrder{}
}

// wakeAt wakes the claim loop at a time, if there is one; h.mu is held.
func (h *lockHolder) wakeAt(due time.Time) {
	if !due.IsZero() && !due.Equal(h.timerAt) {
		h.timerAt = due
		time.AfterFunc(time.Until(due), h.cs.claims.takes.wakeClaimLoop)
	}
}

// headOf is a reader's first item whose read has ended, or nil. It passes over items that do not
// exist: another program's node had the number, or the item was purged; h.mu is held.
func (h *lockHolder) headOf(r *strictReader) *fetchedItem {
	for {
		f := h.heads[r]
		if f == nil {
			select {
			case f = <-r.out:
				h.heads[r] = f
			default:
				return nil
			}
		}
		select {
		case <-f.done:
		default:
			return nil
		}
		if !errors.Is(f.node.Err, framework.ErrNoNode) {
			return f
		}
		delete(h.heads, r)
		h.missing = append(h.missing, f.id.Segment)
	}
}

// claimRequest is the request that claims an item and delivers it. The first claim of an item is
// written as the progress of its chain. Each further claim raises the item's version.
func (h *lockHolder) claimRequest(f *fetchedItem) *writeRequest {
	version := f.node.Stat.Version
	r := &writeRequest{session: h.cs.s}
	if f.claimed {
		r.requires = []precondition{leaseHeld{h.lease}}
		r.ops = []framework.Op{framework.SetOp(f.path, f.node.Data, version)}
		version++
	} else {
		r.requires = []precondition{leaseHeld{h.lease}, firstClaims{h}}
	}
	r.then = func(_ []framework.OpResult, err error) {
		defer h.pending.Done()
		if err != nil {
			h.cs.itemSettled(f.id.Segment)
			h.cs.claims.claimsFailed(1)
			h.claimFailed(f, err)
			return
		}
		leaseCtx := h.lease.Context()
		c := &claimedItem{session: h.cs, id: f.id, node: f.path, version: version, lease: h.lease, data: f.node.Data,
			hold: lifetime.Of(leaseCtx).Child(leaseCtx)}
		c.readItem(f.node.Data, f.node.Stat)
		if h.isBehindReturned(f) {
			h.cs.claims.claimsFailed(1)
			h.returnUnseen(c)
			return
		}
		h.cs.deliverItem(c)
	}
	return r
}

// firstClaims is the precondition of first claims: no purge has removed items since they were read.
// It writes how far the claims go.
type firstClaims struct{ h *lockHolder }

func (f firstClaims) ops() []framework.Op {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	nodes := f.h.cs.store.nodes
	return []framework.Op{framework.CheckOp(nodes.ItemsDir, f.h.purges),
		framework.SetOp(nodes.ClaimedNode, f.h.reached.Encode(), framework.AnyVersion)}
}

// claimFailed handles a claim that has failed: the item was purged, or the lock was lost, which
// ends the consumer session. A first claim that was refused counts no attempt for the next holder.
func (h *lockHolder) claimFailed(f *fetchedItem, err error) {
	var tx *framework.TxError
	if !f.claimed && errors.As(err, &tx) {
		h.mu.Lock()
		h.reached.SetUnclaimed(f.id)
		h.mu.Unlock()
	}
	switch {
	case errors.Is(err, framework.ErrNoAuth):
	case f.claimed:
		return
	default:
		err = fmt.Errorf("%w: %w", errLineLeft, err)
	}
	h.cs.endOnError(err)
}

// returnFirst makes an item the first again, after a time. It also returns the claimed items that
// have not reached a call of Take; they stay behind this one.
func (h *lockHolder) returnFirst(c *claimedItem, after time.Duration) {
	unseen := h.cs.claims.releaseReady()
	h.addReturned(c, true, after)
	for _, other := range unseen {
		h.returnUnseen(other)
	}
}

// returnUnseen ends a delivery that no call of Take has got. If it was the item's first claim, the
// next claim is the first again.
func (h *lockHolder) returnUnseen(c *claimedItem) {
	if c.markSettled(errReturned) == nil {
		h.addReturned(c, c.version > 0, 0)
		c.endDelivery(nil)
	}
}

func (h *lockHolder) addReturned(c *claimedItem, claimed bool, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stat := c.stat
	stat.Version = c.version
	f := &fetchedItem{id: c.id, path: c.node, claimed: claimed, node: framework.Node{Data: c.data, Stat: stat}}
	h.returned = append(h.returned, returnedItem{f, time.Now().Add(after)})
	h.cs.refs.addClaim(f.id.Segment)
	slices.SortFunc(h.returned, func(a, b returnedItem) int { return queuelayout.CompareItems(a.item.id, b.item.id) })
}

// isBehindReturned reports whether an item that was given back goes before this one.
func (h *lockHolder) isBehindReturned(f *fetchedItem) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.returned) > 0 && queuelayout.CompareItems(h.returned[0].item.id, f.id) < 0
}

// finishClaims waits for the claims on their way, and lets no others begin.
func (h *lockHolder) finishClaims() {
	h.claiming.Lock()
	h.finished = true
	h.claiming.Unlock()
	h.pending.Wait()
}

// uncountUnseen takes back the claims of items that no call of Take has got: the next holder does
// not count them as attempts. In each chain these items are the last that were claimed.
func (h *lockHolder) uncountUnseen() {
	ready := h.cs.claims.readyItems()
	h.mu.Lock()
	changed := len(ready)+len(h.returned) > 0
	for _, c := range ready {
		if c.version == 0 {
			h.reached.SetUnclaimed(c.id)
		} else if r := c.uncountRequest(); r != nil {
			h.cs.writeRequests(r)
		}
	}
	for _, r := range h.returned {
		if !r.item.claimed {
			h.reached.SetUnclaimed(r.item.id)
		}
	}
	data := h.reached.Encode()
	h.mu.Unlock()
	if changed {
		h.cs.writeRequests(&writeRequest{session: h.cs.s, requires: []precondition{leaseHeld{h.lease}},
			ops: []framework.Op{framework.SetOp(h.cs.store.nodes.ClaimedNode, data, framework.AnyVersion)}})
	}
}
