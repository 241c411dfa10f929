package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
)

// parallelOrder claims items by tickets: ticket k of a segment claims item k, in the lanes and in
// the base chain alike (docs/adr/0038-one-claim-mechanism-for-all-lines.md). A claim begins with a
// draw of its ticket (drawTickets), waits for the ticket's item (redeemTicket), and ends with a
// delivery, or without an item (endClaims).
type parallelOrder struct {
	cs     *consumerSession // gets the items, and ends with an error
	s      *framework.Session
	nodes  *queuelayout.Layout
	claims *sessionClaims
	reads  *batchReader
	views  *segmentViews
}

func newParallelOrder(cs *consumerSession) *parallelOrder {
	return &parallelOrder{cs, cs.s, cs.store.nodes, cs.claims, cs.reads,
		newSegmentViews(cs.store.nodes, cs.s, cs.id, cs.claims.size, cs.segmentPassed)}
}

// claimItems draws as many tickets as are wanted.
func (p *parallelOrder) claimItems() error {
	defer p.views.stopWatch()
	if err := p.cs.standInLine(p.recoverItems); err != nil {
		return err
	}
	return p.cs.claimLoop(func() {
		ctx := p.claims.waitContext()
		if n := p.claims.reserveClaims(p.claims.size, false); n > 0 {
			p.cs.tasks.Start(func() { p.drawTickets(ctx, n) })
		}
	}, func() { p.cs.releaseAhead(p.cs.settings.idleTimeout) })
}

// recoverItems makes the first consumer in line the recoverer, and the mover of delayed items,
// until the lease ends.
func (p *parallelOrder) recoverItems(lease *locks.Lease, ready func()) {
	cs := p.cs
	ctx, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(cs.ctx, func() { cancel(context.Cause(cs.ctx)) })()
	for _, task := range newHousekeeping(cs) {
		cs.tasks.Start(func() { cs.endOnError(task(ctx)) })
	}
	r := &recoverer{store: cs.store, writer: cs.writer, s: p.s, views: p.views, lease: lease, ctx: ctx,
		tasks: &cs.tasks, removeIfDone: cs.removeIfDone, sweepRequested: make(chan struct{}, 1),
		stopWatches: func() {}}
	err := r.recoverUntilEnd(ready)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cs.endOnError(err)
}

// drawTickets draws tickets for n claims, after a read of the lanes if they are stale. The claims
// continue in the background.
func (p *parallelOrder) drawTickets(ctx context.Context, n int) {
	for n > 0 {
		if err := p.views.refreshIfStale(ctx); err != nil {
			p.endClaims(ctx, n, err)
			return
		}
		var requests []*writeRequest
		requests, n = p.drawRequests(ctx, n)
		p.cs.writer.addRequests(requests...)
	}
}

// nextAfterAcks expects a call of Take after each acknowledgement, and draws the tickets that are
// wanted then, unless the lanes are stale.
func (p *parallelOrder) nextAfterAcks(acks int) []*writeRequest {
	p.claims.expectTakes(acks)
	if p.views.isStale() {
		return nil
	}
	ctx := p.claims.waitContext()
	n := p.claims.reserveClaims(p.claims.size, false)
	if n == 0 {
		return nil
	}
	requests, rest := p.drawRequests(ctx, n)
	if rest > 0 && !p.cs.tasks.Start(func() { p.drawTickets(ctx, rest) }) {
		p.endClaims(ctx, rest, context.Cause(p.cs.ctx))
	}
	return requests
}

// drawRequests returns requests that draw tickets for n claims, except for the rest, which needs
// another read of the lanes.
func (p *parallelOrder) drawRequests(ctx context.Context, n int) (requests []*writeRequest, rest int) {
	draws, rest := p.views.planDraws(n)
	for _, d := range draws {
		if !p.cs.tasks.Begin() {
			p.endClaims(ctx, len(d.names), context.Cause(p.cs.ctx))
			continue
		}
		requests = append(requests, &writeRequest{session: p.s, ops: d.drawOps(p.cs.store),
			then: func(results []framework.OpResult, err error) { p.drawAnswered(ctx, d, results, err) }})
	}
	return requests, rest
}

// drawAnswered continues the claims of a draw in the background, since the writer, which calls it,
// must not block.
func (p *parallelOrder) drawAnswered(ctx context.Context, d *ticketDraw, results []framework.OpResult, err error) {
	if err != nil {
		p.views.invalidate() // before a later draw is answered
	}
	go func() {
		defer p.cs.tasks.End()
		p.claimDrawn(ctx, d, results, err)
	}()
}

// claimDrawn continues the claims of a draw. A draw that was refused is repeated.
func (p *parallelOrder) claimDrawn(ctx context.Context, d *ticketDraw, results []framework.OpResult, err error) {
	var drawn []primitives.Created
	var refused *framework.TxError
	switch {
	case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth):
		if errors.Is(err, framework.ErrNoNode) {
			p.views.skipSegment(d.segment)
		}
		p.drawTickets(ctx, len(d.names))
		return
	case err == nil && results == nil: // the reply was lost
		drawn, err = p.findTickets(d)
	case err == nil:
		for _, r := range results[len(results)-len(d.names):] {
			drawn = append(drawn, primitives.Created{Path: r.Path, Zxid: r.Zxid})
		}
	}
	missing := len(d.names)
	for _, node := range drawn {
		t, wrong := d.ticketOf(node)
		if err = cmp.Or(err, wrong); wrong != nil {
			continue
		}
		missing--
		p.cs.refs.addClaim(t.item.Segment)
		p.views.ticketDrawn(t)
		p.cs.tasks.Start(func() { p.redeemTicket(ctx, t) })
	}
	if missing > 0 {
		p.endClaims(ctx, missing, err)
	}
}

// findTickets finds a draw's tickets after its reply was lost. It continues until the servers have
// answered or the session has ended: a ticket that its consumer does not know would keep its item
// from all consumers.
func (p *parallelOrder) findTickets(d *ticketDraw) (found []primitives.Created, err error) {
	ctx, back := p.s.Context(), recipe.NewBackoff(p.cs.store.client)
	for {
		if err = p.s.Sync(ctx, d.segment.TicketDir()); err == nil {
			found, err = d.segment.FindTickets(ctx, p.s, d.names)
		}
		if !failure.IsTransient(err) || back.Pause(ctx) != nil {
			return found, err
		}
	}
}

// endClaims ends n claims without items. If the consumer session continues, and the lanes may have
// items for other consumers, it tells the recoverer.
func (p *parallelOrder) endClaims(ctx context.Context, n int, err error) {
	p.claims.claimsFailed(n)
	if ctx.Err() == nil {
		p.cs.endOnError(err)
	} else if p.cs.ctx.Err() == nil && p.views.mayHaveUnclaimed() {
		p.write(p.nodes.SignalRecoverer())
	}
}

// write writes a request of which nobody waits for the outcome.
func (p *parallelOrder) write(op framework.Op) {
	p.cs.writeRequests(&writeRequest{session: p.s, ops: []framework.Op{op}})
}

// redeemTicket waits for a ticket's item and delivers it. It replaces a void ticket by another one.
// An item that comes as the wait ends goes back without an attempt.
func (p *parallelOrder) redeemTicket(ctx context.Context, t *segmentTicket) {
	n, err := p.waitForItem(ctx, t)
	if errors.Is(err, errVoidTicket) {
		p.replaceTicket(ctx, t)
		return
	}
	if err != nil {
		var missing error
		if n.Data, n.Stat, missing = p.s.Get(p.s.Context(), t.itemNode); missing != nil {
			p.deleteTicket(t)
			p.endClaims(ctx, 1, err)
			return
		}
	}
	c := &claimedItem{session: p.cs, id: t.item, node: t.itemNode, version: n.Stat.Version, ticket: t.node.Path}
	c.readItem(n.Data, n.Stat)
	hold, lost := primitives.Of(p.s).Hold(context.Background(), t.node)
	if lost != nil {
		p.endClaims(ctx, 1, cmp.Or(err, lost))
		return
	}
	c.hold = hold
	if err == nil {
		err = p.cs.gate.waitUntilOpen(ctx)
	}
	if err != nil {
		if c.markSettled(errReturned) == nil {
			c.unseen = true
			c.hold.End(err)
			p.returnUnsettled(c, c.attempt-1, func(error) {})
		}
		p.endClaims(ctx, 1, err)
		return
	}
	p.cs.deliverItem(c)
	if t.withReturn {
		p.returnUnlessTaken(c)
	}
}

// errVoidTicket says that no item will come with the ticket's number.
var errVoidTicket = errors.New("void ticket")

// replaceTicket deletes a void ticket and draws another one.
func (p *parallelOrder) replaceTicket(ctx context.Context, t *segmentTicket) {
	err := p.views.refreshIfStale(ctx)
	if err != nil || t.item.Segment.Chain != p.nodes.Base { // the recoverer has to know
		p.deleteTicket(t)
	} else {
		p.cs.writeRequests(&writeRequest{session: p.s,
			ops:  []framework.Op{framework.DeleteOp(t.node.Path, framework.AnyVersion)},
			then: func([]framework.OpResult, error) { p.cs.itemSettled(t.item.Segment) }})
	}
	if err != nil {
		p.endClaims(ctx, 1, err)
		return
	}
	p.drawTickets(ctx, 1)
}

// waitForItem waits for a ticket's item, or returns errVoidTicket. In a lane it does not wait,
// since tickets are drawn there for items that exist.
func (p *parallelOrder) waitForItem(ctx context.Context, t *segmentTicket) (framework.Node, error) {
	inBase := t.item.Segment.Chain == p.nodes.Base
	passed := p.views.hasPassed(t.item.Segment) // before the item is read
	n := p.reads.readAndWait(ctx, t.itemNode)
	if inBase {
		p.views.waited.Store(errors.Is(n.Err, framework.ErrNoNode))
	}
	for signalled := false; errors.Is(n.Err, framework.ErrNoNode); signalled = true {
		if passed {
			return n, errVoidTicket
		}
		if !inBase { // other consumers have drawn more tickets than there are items, or the item was purged
			p.views.skipSegment(t.item.Segment)
			return n, errVoidTicket
		}
		if !signalled && p.views.mayHaveUnclaimed() { // the recoverer may have looked before this ticket existed
			p.write(p.nodes.SignalLanes())
		}
		p.claims.setAwaited(t.itemNode, true)
		err := p.watchItem(ctx, t)
		p.claims.setAwaited(t.itemNode, false)
		if err != nil {
			return n, err
		}
		n = p.reads.readAndWait(ctx, t.itemNode)
	}
	return n, n.Err
}

// watchItem waits until the item exists or its segment has changed. It returns errVoidTicket if the
// item cannot come any more.
func (p *parallelOrder) watchItem(ctx context.Context, t *segmentTicket) error {
	segment := t.item.Segment
	_, created, err := p.s.WatchExists(ctx, t.itemNode)
	if err == nil {
		created.Stop()
		return nil
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	defer created.Stop()
	_, stat, changed, err := p.s.WatchData(ctx, segment.Dir())
	if errors.Is(err, framework.ErrNoNode) {
		p.views.skipSegment(segment)
		return errVoidTicket
	}
	if err != nil {
		return err
	}
	defer changed.Stop()
	if stat.Version > 0 || queuelayout.ChildrenEver(stat) > t.item.Number {
		if _, err = p.s.Exists(ctx, t.itemNode); errors.Is(err, framework.ErrNoNode) {
			if stat.Version > 0 {
				p.views.skipSegment(segment)
			}
			err = errVoidTicket // the number was given to another node, or is closed
		}
		return err
	}
	select {
	case <-created.C():
	case <-changed.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// deleteTicket deletes a ticket that still waits for its item, and tells the recoverer. If the item
// comes in between, its header is made to say that this claim was no attempt.
func (p *parallelOrder) deleteTicket(t *segmentTicket) {
	_, err := p.cs.writer.writeAndWait(context.Background(),
		&writeRequest{session: p.s, ops: []framework.Op{framework.DeleteOp(t.node.Path, framework.AnyVersion)}})
	p.cs.itemSettled(t.item.Segment)
	if err == nil {
		if data, stat, err := p.s.Get(p.s.Context(), t.itemNode); err == nil {
			c := &claimedItem{session: p.cs, id: t.item, node: t.itemNode, version: stat.Version}
			if c.readItem(data, stat); c.decodeErr == nil {
				if r := c.uncountRequest(); r != nil {
					_, _ = p.cs.writer.writeAndWait(context.Background(), r) // refused if the recoverer was faster
				}
			}
		}
	}
	p.write(p.nodes.SignalRecoverer())
}

// returnItem moves an item to the lane redo, where it is claimed next, or to the delayed items.
func (p *parallelOrder) returnItem(c *claimedItem, attempts int, after time.Duration, reason error,
	then func(error)) {
	data, err := c.env.AfterFailure(attempts, reason).Encode()
	if err != nil {
		c.endDelivery(err)
		then(err)
		return
	}
	if after > 0 {
		ops := append(c.removeOps(), p.nodes.SignalDelayed())
		c.writeLast(c.newRequest(ops, newItem{delay: after, data: data}), then)
		return
	}
	r := c.newRequest(c.removeOps(), newItem{chain: p.nodes.Redo, data: data})
	c.endWith(r, then)
	if c.unseen || !p.addDraw(r) {
		ended := r.then
		r.ops = append(r.ops, p.nodes.SignalLanes())
		r.then = func(results []framework.OpResult, err error) {
			p.views.invalidate() // this consumer's own signal may come after its next draw
			ended(results, err)
		}
	}
	p.cs.writeRequests(r)
}

// returnUnsettled gives an item back at once. An item that cannot be read stays; the recoverer
// returns it.
func (p *parallelOrder) returnUnsettled(c *claimedItem, attempts int, then func(error)) {
	if c.decodeErr != nil {
		c.endDelivery(errClosed)
		then(errClosed)
		return
	}
	p.returnItem(c, attempts, 0, c.formerReason(), then)
}

// addDraw adds the draw of a ticket to a request that returns an item to the lane redo, and reports
// whether it has: if the consumer wants another item. The ticket is of that lane, so the number of
// unclaimed items stays the same, and no consumer has to be told
// (docs/adr/0117-a-consumer-that-returns-an-item-draws-another.md).
func (p *parallelOrder) addDraw(r *writeRequest) bool {
	ctx := p.claims.waitContext()
	d := p.views.planReturned()
	if d == nil || p.cs.ctx.Err() != nil {
		return false
	}
	p.claims.expectTakes(1)
	if p.claims.reserveClaims(1, false) == 0 {
		p.claims.expectTakes(-1)
		return false
	}
	if !p.cs.tasks.Begin() {
		p.endClaims(ctx, 1, context.Cause(p.cs.ctx))
		return false
	}
	removal, ended := slices.Clip(r.ops), r.then
	r.ops = append(removal, d.drawOps(p.cs.store)...)
	ticket := primitives.Path(r.ops[len(removal)])
	r.then = func(results []framework.OpResult, err error) {
		var refused *framework.TxError
		if errors.As(err, &refused) && refused.Path == ticket && errors.Is(err, framework.ErrNoNode) {
			alone := r.retryCopy() // the segment of the ticket was removed: the draw follows the item
			alone.ops = append(removal, p.nodes.SignalLanes())
			alone.then = func(results []framework.OpResult, lost error) {
				ended(results, lost)
				p.drawAnswered(ctx, d, nil, err)
			}
			p.cs.writeRequests(alone)
			return
		}
		ended(results, err)
		if err == nil && results != nil {
			results = results[len(removal):]
		}
		if err == nil {
			p.views.countReturned(d.segment)
		}
		p.drawAnswered(ctx, d, results, err)
	}
	return true
}

// keepReturnedFor is how long a consumer keeps an item for its next call of Take, if it has drawn
// the ticket while it returned another item.
const keepReturnedFor = 10 * time.Millisecond

// returnUnlessTaken returns an item to the queue after a moment, unless a call of Take gets it
// before: other consumers may wait.
func (p *parallelOrder) returnUnlessTaken(c *claimedItem) {
	select {
	case <-time.After(keepReturnedFor):
	case <-p.cs.ctx.Done():
		return // all items go back
	}
	if p.claims.releaseIfReady(c) {
		p.claims.expectTakes(-1)
		c.endAndReturn(c.attempt-1, func(error) {})
	}
}

func (p *parallelOrder) hasPassed(segment queuelayout.Segment) bool {
	return p.views.hasPassed(segment)
}

// countClaimable counts the items without tickets. Claims on their way are undecided, unless their
// tickets wait for items that have not come.
func (p *parallelOrder) countClaimable(state queueState, _ bool) (n int, undecided bool) {
	return state.countUnclaimed(), state.arrived > 0 || p.claims.mayDeliver(state.asked)
}
