package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// ticket owns the item with its number in its segment.
type ticket struct {
	at   segmentID
	k    int64
	node string

	brief bool // its item goes back unless a call of Take wants it soon
}

func (t *ticket) item() string { return t.at.line.item(t.at.seg, t.k) }

// claimInParallel claims as many items as are wanted, by tickets (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
func (sh *consumerSession) claimInParallel() error {
	if err := sh.standInLine(func(lease *locks.Lease, ready func()) { sh.end(sh.recoverItems(lease, ready)) }); err != nil {
		return err
	}
	return sh.claimLoop(func() {
		ctx := sh.patience()
		if n := sh.beginClaims(sh.q.windowSize(), false); n > 0 {
			sh.tasks.start(func() { sh.drawTickets(ctx, n) })
		}
	}, func() { sh.giveBackAhead(sh.q.idleTimeout) })
}

// drawTickets draws tickets for n claims, after a look at the lanes if that is needed. The claims go on in the background.
func (sh *consumerSession) drawTickets(ctx context.Context, n int) {
	for n > 0 {
		if err := sh.lines.refresh(ctx); err != nil {
			sh.endClaims(ctx, n, err)
			return
		}
		var parts []*writeRequest
		parts, n = sh.drawRequests(ctx, n)
		sh.q.writer.add(parts...)
	}
}

// nextDraws are the draws of what is wanted, to share a transaction with what makes room for it; none if the lanes have to be
// looked at first.
func (sh *consumerSession) nextDraws() []*writeRequest {
	if sh.lines.needLook() {
		return nil
	}
	ctx := sh.patience()
	n := sh.beginClaims(sh.q.windowSize(), false)
	if n == 0 {
		return nil
	}
	parts, rest := sh.drawRequests(ctx, n)
	if rest > 0 && !sh.tasks.start(func() { sh.drawTickets(ctx, rest) }) {
		sh.endClaims(ctx, rest, context.Cause(sh.ctx))
	}
	return parts
}

// drawRequests are the parts that draw tickets for n claims, or for all but the rest, for which there has to be another look.
func (sh *consumerSession) drawRequests(ctx context.Context, n int) (parts []*writeRequest, rest int) {
	draws, rest := sh.lines.planDraws(n)
	for _, d := range draws {
		if !sh.tasks.begin() {
			sh.endClaims(ctx, len(d.names), context.Cause(sh.ctx))
			continue
		}
		parts = append(parts, &writeRequest{session: sh.s, ops: sh.q.drawOps(d), then: func(results []framework.OpResult, err error) {
			sh.drawAnswered(ctx, d, results, err)
		}})
	}
	return parts, rest
}

// drawReturned lets the part that returns an item to the lane redo draw a ticket of that lane, if its consumer wants another
// item. Nobody has to be told then. Else the part rings. It is called once the part knows whom to tell of its outcome.
func (sh *consumerSession) drawReturned(p *writeRequest) {
	told, without := p.then, append(slices.Clone(p.ops), sh.q.signalLanesOp())
	ctx := sh.patience()
	d := sh.lines.planReturned()
	if d == nil || sh.ctx.Err() != nil {
		p.ops = without
		return
	}
	sh.expectTake()
	if sh.beginClaims(1, false) == 0 {
		sh.expectTakeLess()
		p.ops = without
		return
	}
	if !sh.tasks.begin() {
		sh.endClaims(ctx, 1, context.Cause(sh.ctx))
		p.ops = without
		return
	}
	returned := len(p.ops)
	p.ops = append(p.ops, sh.q.drawOps(d)...)
	p.then = func(results []framework.OpResult, err error) {
		var refused *framework.TxError
		if errors.As(err, &refused) && refused.Path == p.ops[returned].Path() && errors.Is(err, framework.ErrNoNode) {
			again := p.retryCopy() // the segment of the tickets was removed
			again.ops, again.then = without, told
			sh.writeTracked(again)
		} else {
			told(results, err)
		}
		if err == nil && results != nil {
			results = results[returned:]
		}
		sh.drawAnswered(ctx, d, results, err)
	}
}

// drawAnswered takes in the outcome of a draw. The writer calls it, so the claims go on beside it.
func (sh *consumerSession) drawAnswered(ctx context.Context, d *ticketDraw, results []framework.OpResult, err error) {
	if err != nil {
		sh.lines.invalidate() // before any later draw is answered
	}
	go func() {
		defer sh.tasks.finish()
		sh.claimDrawn(ctx, d, results, err)
	}()
}

// claimDrawn goes on with the claims of a draw. One that was refused is made again.
func (sh *consumerSession) claimDrawn(ctx context.Context, d *ticketDraw, results []framework.OpResult, err error) {
	tickets := make([]*ticket, 0, len(d.names))
	var refused *framework.TxError
	switch {
	case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth):
		if errors.Is(err, framework.ErrNoNode) {
			sh.lines.skipSegment(d.at)
		}
		sh.drawTickets(ctx, len(d.names))
		return
	case err == nil && results == nil: // the reply was lost
		tickets, err = sh.findTickets(d)
	case err == nil:
		for _, r := range results[len(results)-len(d.names):] {
			t, bad := sh.ticketOf(d, r.Path)
			if err = cmp.Or(err, bad); t != nil {
				tickets = append(tickets, t)
			}
		}
	}
	if missing := len(d.names) - len(tickets); missing > 0 {
		sh.endClaims(ctx, missing, err)
	}
	for _, t := range tickets {
		sh.tasks.start(func() { sh.redeemTicket(ctx, t) })
	}
}

func (sh *consumerSession) ticketOf(d *ticketDraw, node string) (*ticket, error) {
	_, name := framework.Split(node)
	k, ok := ticketNumber(name)
	if !ok {
		return nil, fmt.Errorf("queue: the server named a ticket %q", name)
	}
	t := &ticket{at: d.at, k: k, node: framework.Join(d.at.line.ticketsOf(d.at.seg), name), brief: d.brief}
	sh.stock.addRef(t.at)
	sh.lines.ticketDrawn(t)
	return t, nil
}

// findTickets finds the tickets of a draw whose reply was lost. It goes on until the servers have answered or the session has
// ended: a ticket that nobody knows would keep its item from everybody.
func (sh *consumerSession) findTickets(d *ticketDraw) (tickets []*ticket, err error) {
	ctx, back := sh.s.Context(), sh.q.client.Backoff()
	dir := d.at.line.ticketsOf(d.at.seg)
	for {
		var names []string
		if err = sh.s.Sync(ctx, dir); err == nil {
			names, _, err = sh.s.Children(ctx, dir)
		}
		if framework.IsTransient(err) && back.Pause(ctx) == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if slices.Contains(d.names, name[:max(0, len(name)-digits)]) {
				t, bad := sh.ticketOf(d, name)
				if err = cmp.Or(err, bad); t != nil {
					tickets = append(tickets, t)
				}
			}
		}
		return tickets, err
	}
}

// endClaims gives n claims up. If the consumer stays, and the lanes may have items for others, the recoverer is told.
func (sh *consumerSession) endClaims(ctx context.Context, n int, err error) {
	for range n {
		sh.claimFailed()
	}
	if ctx.Err() == nil {
		sh.end(err)
	} else if sh.ctx.Err() == nil && sh.lines.mayBeSpare() {
		sh.writeTracked(&writeRequest{session: sh.s, ops: []framework.Op{sh.q.signalRecovererOp()}})
	}
}

// redeemTicket waits for a ticket's item and hands it out. For a void ticket another one is drawn.
func (sh *consumerSession) redeemTicket(ctx context.Context, t *ticket) {
	d, err := sh.waitForTicketItem(ctx, t)
	if errors.Is(err, errVoidTicket) {
		sh.redrawTicket(ctx, t)
		return
	}
	if err == nil {
		err = sh.gate.waitUntilOpen(ctx)
	}
	if err == nil {
		sh.offerDelivery(d)
		if t.brief {
			sh.keepBriefly(d)
		}
		return
	}
	if d != nil && d.markSettled(errTakenBack) == nil {
		d.unseen = true
		d.tenure.End(err)
		d.putBack(d.attempt-1, func(error) {})
	}
	sh.endClaims(ctx, 1, err)
}

// keepReturnedFor is how long a consumer keeps a returned item that it has drawn while it returned one, for its next call of Take.
const keepReturnedFor = 10 * time.Millisecond

// keepBriefly gives a delivery back that no call of Take has wanted for a moment: others may wait.
func (sh *consumerSession) keepBriefly(d *delivery) {
	select {
	case <-time.After(keepReturnedFor):
	case <-sh.ctx.Done():
		return // all go back
	}
	sh.c.mu.Lock()
	i := slices.Index(sh.ready, d)
	if i >= 0 {
		sh.ready = slices.Delete(sh.ready, i, i+1)
		d.unseen = true
		sh.held[d] = true
	}
	sh.c.mu.Unlock()
	if i >= 0 {
		sh.expectTakeLess()
		var given sync.WaitGroup // nobody waits for it
		d.takeBack(d.attempt-1, &given)
	}
}

// redrawTicket gives a void ticket up and draws another one.
func (sh *consumerSession) redrawTicket(ctx context.Context, t *ticket) {
	err := sh.lines.refresh(ctx)
	if err != nil || t.at.line != sh.q.base { // the recoverer has to know
		sh.deleteTicket(t)
	} else {
		sh.writeTracked(&writeRequest{session: sh.s, ops: []framework.Op{framework.DeleteOp(t.node, framework.AnyVersion)},
			then: func([]framework.OpResult, error) { sh.itemSettled(t.at) }})
	}
	if err != nil {
		sh.endClaims(ctx, 1, err)
		return
	}
	sh.drawTickets(ctx, 1)
}

// waitForTicketItem waits for a ticket's item. It returns errVoidTicket if there will be none. When it returns a delivery and an error, the
// item has come as the wait ended: it is given back as one that nobody had.
func (sh *consumerSession) waitForTicketItem(ctx context.Context, t *ticket) (*delivery, error) {
	data, st, err := sh.findTicketItem(ctx, t)
	if errors.Is(err, errVoidTicket) {
		return nil, err
	}
	if err != nil {
		var missing error
		if data, st, missing = sh.s.Get(sh.s.Context(), t.item()); missing != nil {
			sh.deleteTicket(t)
			return nil, err
		}
	}
	d := &delivery{session: sh, item: t.item(), version: st.Version, claim: t.node}
	d, broken := d.openDelivery(data, st)
	return d, cmp.Or(err, broken)
}

// errVoidTicket says that a ticket's number will never have an item.
var errVoidTicket = errors.New("void ticket")

// findTicketItem waits for a ticket's item; in a lane it does not wait, since tickets are drawn there for items that were put.
func (sh *consumerSession) findTicketItem(ctx context.Context, t *ticket) ([]byte, framework.Stat, error) {
	past := sh.lines.isBehind(t.at) // before the item is looked for
	data, st, err := sh.reads.readItem(ctx, t.item())
	if t.at.line == sh.q.base {
		sh.lines.waited.Store(errors.Is(err, framework.ErrNoNode))
	}
	for rang := false; errors.Is(err, framework.ErrNoNode); rang = true {
		if past {
			return nil, framework.Stat{}, errVoidTicket
		}
		if t.at.line != sh.q.base { // others have drawn too many, or the item was purged
			sh.lines.skipSegment(t.at)
			return nil, framework.Stat{}, errVoidTicket
		}
		if !rang && sh.lines.mayBeSpare() { // the recoverer may have looked before it could see this ticket
			sh.writeTracked(&writeRequest{session: sh.s, ops: []framework.Op{sh.q.signalLanesOp()}})
		}
		if err := sh.awaitItem(ctx, t); err != nil {
			return nil, framework.Stat{}, err
		}
		data, st, err = sh.reads.readItem(ctx, t.item())
	}
	return data, st, err
}

// awaitItem is coming, and says meanwhile that the claim waits for an item.
func (sh *consumerSession) awaitItem(ctx context.Context, t *ticket) error {
	sh.c.mu.Lock()
	sh.waiting[t.item()] = true
	sh.c.mu.Unlock()
	defer func() {
		sh.c.mu.Lock()
		delete(sh.waiting, t.item())
		sh.c.mu.Unlock()
	}()
	return sh.waitForItem(ctx, t)
}

// waitForItem waits until the item is there or its segment has changed. It returns errVoidTicket when it cannot come any more.
func (sh *consumerSession) waitForItem(ctx context.Context, t *ticket) error {
	_, there, err := sh.s.WatchExists(ctx, t.item())
	if err == nil {
		there.Stop()
		return nil
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	defer there.Stop()
	_, st, changed, err := sh.s.WatchData(ctx, t.at.line.segment(t.at.seg))
	if errors.Is(err, framework.ErrNoNode) {
		sh.lines.skipSegment(t.at)
		return errVoidTicket
	}
	if err != nil {
		return err
	}
	defer changed.Stop()
	if st.Version > 0 || childrenEver(st) > t.k {
		if _, err = sh.s.Exists(ctx, t.item()); errors.Is(err, framework.ErrNoNode) {
			if st.Version > 0 {
				sh.lines.skipSegment(t.at)
			}
			err = errVoidTicket // whatever the number was given to
		}
		return err
	}
	select {
	case <-there.C():
	case <-changed.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// deleteTicket deletes a ticket whose item has not come, and tells the recoverer. If the item comes in between, nobody has had it:
// its header is made to say that this claim was no attempt.
func (sh *consumerSession) deleteTicket(t *ticket) {
	_, err := sh.q.writer.do(context.Background(), &writeRequest{session: sh.s, ops: []framework.Op{framework.DeleteOp(t.node, framework.AnyVersion)}})
	sh.itemSettled(t.at)
	notice := []framework.Op{sh.q.signalRecovererOp()}
	if err == nil {
		if data, st, err := sh.s.Get(sh.s.Context(), t.item()); err == nil {
			d := &delivery{session: sh, item: t.item(), version: st.Version}
			if d.readItem(data, st); d.decodeErr == nil {
				if p := d.uncountRequest(); p != nil {
					_, _ = sh.q.writer.do(context.Background(), p) // refused if the recoverer was faster
				}
			}
		}
	}
	sh.writeTracked(&writeRequest{session: sh.s, ops: notice})
}
