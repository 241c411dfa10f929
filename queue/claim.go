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
	at   shelf
	k    int64
	node string

	brief bool // its item goes back unless a call of Take wants it soon
}

func (t *ticket) item() string { return t.at.line.item(t.at.seg, t.k) }

// parallel claims as many items as are wanted, by tickets (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
func (sh *shift) parallel() error {
	if err := sh.stand(func(lease *locks.Lease, ready func()) { sh.end(sh.recoverItems(lease, ready)) }); err != nil {
		return err
	}
	return sh.attend(func() {
		ctx := sh.patience()
		if n := sh.begin(sh.q.windowSize(), false); n > 0 {
			sh.tasks.start(func() { sh.draw(ctx, n) })
		}
	}, func() { sh.giveBackAhead(sh.q.linger) })
}

// draw draws tickets for n claims, after a look at the lanes if that is needed. The claims go on in the background.
func (sh *shift) draw(ctx context.Context, n int) {
	for n > 0 {
		if err := sh.lines.refresh(ctx); err != nil {
			sh.endClaims(ctx, n, err)
			return
		}
		var parts []*part
		parts, n = sh.draws(ctx, n)
		sh.q.writer.add(parts...)
	}
}

// drawNext are the draws of what is wanted, to share a transaction with what makes room for it; none if the lanes have to be
// looked at first.
func (sh *shift) drawNext() []*part {
	if sh.lines.needLook() {
		return nil
	}
	ctx := sh.patience()
	n := sh.begin(sh.q.windowSize(), false)
	if n == 0 {
		return nil
	}
	parts, rest := sh.draws(ctx, n)
	if rest > 0 && !sh.tasks.start(func() { sh.draw(ctx, rest) }) {
		sh.endClaims(ctx, rest, context.Cause(sh.ctx))
	}
	return parts
}

// draws are the parts that draw tickets for n claims, or for all but the rest, for which there has to be another look.
func (sh *shift) draws(ctx context.Context, n int) (parts []*part, rest int) {
	draws, rest := sh.lines.plan(n)
	for _, d := range draws {
		if !sh.tasks.begin() {
			sh.endClaims(ctx, len(d.names), context.Cause(sh.ctx))
			continue
		}
		parts = append(parts, &part{session: sh.s, ops: sh.q.drawOps(d), then: func(results []framework.OpResult, err error) {
			sh.answered(ctx, d, results, err)
		}})
	}
	return parts, rest
}

// drawReturned lets the part that returns an item to the lane redo draw a ticket of that lane, if its consumer wants another
// item. Nobody has to be told then. Else the part rings. It is called once the part knows whom to tell of its outcome.
func (sh *shift) drawReturned(p *part) {
	told, without := p.then, append(slices.Clone(p.ops), sh.q.ringOp())
	ctx := sh.patience()
	d := sh.lines.planReturned()
	if d == nil || sh.ctx.Err() != nil {
		p.ops = without
		return
	}
	sh.hope()
	if sh.begin(1, false) == 0 {
		sh.hopeLess()
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
			again := p.again() // the segment of the tickets was removed
			again.ops, again.then = without, told
			sh.write(again)
		} else {
			told(results, err)
		}
		if err == nil && results != nil {
			results = results[returned:]
		}
		sh.answered(ctx, d, results, err)
	}
}

// answered takes in the outcome of a draw. The writer calls it, so the claims go on beside it.
func (sh *shift) answered(ctx context.Context, d *draw, results []framework.OpResult, err error) {
	if err != nil {
		sh.lines.outdate() // before any later draw is answered
	}
	go func() {
		defer sh.tasks.finish()
		sh.drawn(ctx, d, results, err)
	}()
}

// drawn goes on with the claims of a draw. One that was refused is made again.
func (sh *shift) drawn(ctx context.Context, d *draw, results []framework.OpResult, err error) {
	tickets := make([]*ticket, 0, len(d.names))
	var refused *framework.TxError
	switch {
	case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth):
		if errors.Is(err, framework.ErrNoNode) {
			sh.lines.pass(d.at)
		}
		sh.draw(ctx, len(d.names))
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
		sh.tasks.start(func() { sh.redeem(ctx, t) })
	}
}

func (sh *shift) ticketOf(d *draw, node string) (*ticket, error) {
	_, name := framework.Split(node)
	k, ok := ticketNumber(name)
	if !ok {
		return nil, fmt.Errorf("queue: the server named a ticket %q", name)
	}
	t := &ticket{at: d.at, k: k, node: framework.Join(d.at.line.ticketsOf(d.at.seg), name), brief: d.brief}
	sh.stock.add(t.at)
	sh.lines.saw(t)
	return t, nil
}

// findTickets finds the tickets of a draw whose reply was lost. It goes on until the servers have answered or the session has
// ended: a ticket that nobody knows would keep its item from everybody.
func (sh *shift) findTickets(d *draw) (tickets []*ticket, err error) {
	ctx, back := sh.s.Context(), sh.q.client.Retries()
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
func (sh *shift) endClaims(ctx context.Context, n int, err error) {
	for range n {
		sh.gaveUp()
	}
	if ctx.Err() == nil {
		sh.end(err)
	} else if sh.ctx.Err() == nil && sh.lines.mayBeSpare() {
		sh.write(&part{session: sh.s, ops: []framework.Op{sh.q.noticeOp()}})
	}
}

// redeem waits for a ticket's item and hands it out. For a void ticket another one is drawn.
func (sh *shift) redeem(ctx context.Context, t *ticket) {
	d, err := sh.itemOf(ctx, t)
	if errors.Is(err, errVoid) {
		sh.redraw(ctx, t)
		return
	}
	if err == nil {
		err = sh.gate.pass(ctx)
	}
	if err == nil {
		sh.offer(d)
		if t.brief {
			sh.keepBriefly(d)
		}
		return
	}
	if d != nil && d.begin(errTakenBack) == nil {
		d.unseen = true
		d.tenure.End(err)
		d.putBack(d.attempt-1, func(error) {})
	}
	sh.endClaims(ctx, 1, err)
}

// briefly is how long a consumer keeps a returned item that it has drawn while it returned one, for its next call of Take.
const briefly = 10 * time.Millisecond

// keepBriefly gives a delivery back that no call of Take has wanted for a moment: others may wait.
func (sh *shift) keepBriefly(d *delivery) {
	select {
	case <-time.After(briefly):
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
		sh.hopeLess()
		var given sync.WaitGroup // nobody waits for it
		d.takeBack(d.attempt-1, &given)
	}
}

// redraw gives a void ticket up and draws another one.
func (sh *shift) redraw(ctx context.Context, t *ticket) {
	err := sh.lines.refresh(ctx)
	if err != nil || t.at.line != sh.q.base { // the recoverer has to know
		sh.giveUp(t)
	} else {
		sh.write(&part{session: sh.s, ops: []framework.Op{framework.DeleteOp(t.node, framework.AnyVersion)},
			then: func([]framework.OpResult, error) { sh.settled(t.at) }})
	}
	if err != nil {
		sh.endClaims(ctx, 1, err)
		return
	}
	sh.draw(ctx, 1)
}

// itemOf waits for a ticket's item. It returns errVoid if there will be none. When it returns a delivery and an error, the
// item has come as the wait ended: it is given back as one that nobody had.
func (sh *shift) itemOf(ctx context.Context, t *ticket) (*delivery, error) {
	data, st, err := sh.await(ctx, t)
	if errors.Is(err, errVoid) {
		return nil, err
	}
	if err != nil {
		var missing error
		if data, st, missing = sh.s.Get(sh.s.Context(), t.item()); missing != nil {
			sh.giveUp(t)
			return nil, err
		}
	}
	d := &delivery{shift: sh, item: t.item(), version: st.Version, claim: t.node}
	d, broken := d.open(data, st)
	return d, cmp.Or(err, broken)
}

// errVoid says that a ticket's number will never have an item.
var errVoid = errors.New("void ticket")

// await waits for a ticket's item; in a lane it does not wait, since tickets are drawn there for items that were put.
func (sh *shift) await(ctx context.Context, t *ticket) ([]byte, framework.Stat, error) {
	past := sh.lines.past(t.at) // before the item is looked for
	data, st, err := sh.reads.get(ctx, t.item())
	if t.at.line == sh.q.base {
		sh.lines.waited.Store(errors.Is(err, framework.ErrNoNode))
	}
	for rang := false; errors.Is(err, framework.ErrNoNode); rang = true {
		if past {
			return nil, framework.Stat{}, errVoid
		}
		if t.at.line != sh.q.base { // others have drawn too many, or the item was purged
			sh.lines.pass(t.at)
			return nil, framework.Stat{}, errVoid
		}
		if !rang && sh.lines.mayBeSpare() { // the recoverer may have looked before it could see this ticket
			sh.write(&part{session: sh.s, ops: []framework.Op{sh.q.ringOp()}})
		}
		if err := sh.awaitItem(ctx, t); err != nil {
			return nil, framework.Stat{}, err
		}
		data, st, err = sh.reads.get(ctx, t.item())
	}
	return data, st, err
}

// awaitItem is coming, and says meanwhile that the claim waits for an item.
func (sh *shift) awaitItem(ctx context.Context, t *ticket) error {
	sh.c.mu.Lock()
	sh.waiting[t.item()] = true
	sh.c.mu.Unlock()
	defer func() {
		sh.c.mu.Lock()
		delete(sh.waiting, t.item())
		sh.c.mu.Unlock()
	}()
	return sh.coming(ctx, t)
}

// coming waits until the item is there or its segment has changed. It returns errVoid when it cannot come any more.
func (sh *shift) coming(ctx context.Context, t *ticket) error {
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
		sh.lines.pass(t.at)
		return errVoid
	}
	if err != nil {
		return err
	}
	defer changed.Stop()
	if st.Version > 0 || created(st) > t.k {
		if _, err = sh.s.Exists(ctx, t.item()); errors.Is(err, framework.ErrNoNode) {
			if st.Version > 0 {
				sh.lines.pass(t.at)
			}
			err = errVoid // whatever the number was given to
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

// giveUp deletes a ticket whose item has not come, and tells the recoverer. If the item comes in between, nobody has had it:
// its header is made to say that this claim was no attempt.
func (sh *shift) giveUp(t *ticket) {
	_, err := sh.q.writer.do(context.Background(), &part{session: sh.s, ops: []framework.Op{framework.DeleteOp(t.node, framework.AnyVersion)}})
	sh.settled(t.at)
	notice := []framework.Op{sh.q.noticeOp()}
	if err == nil {
		if data, st, err := sh.s.Get(sh.s.Context(), t.item()); err == nil {
			d := &delivery{shift: sh, item: t.item(), version: st.Version}
			if d.read(data, st); d.bad == nil {
				if p := d.uncount(); p != nil {
					_, _ = sh.q.writer.do(context.Background(), p) // refused if the recoverer was faster
				}
			}
		}
	}
	sh.write(&part{session: sh.s, ops: notice})
}
