package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// ticket owns the item with its number in its segment.
type ticket struct {
	node   string
	seg, k int64
}

// segment is the one that tickets are drawn in.
type segment struct {
	mu    sync.Mutex
	n     int64
	known bool
	drawn atomic.Int64 // for the names of tickets
}

func (g *segment) get() (n int64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n, g.known
}

// set goes on to a segment, and tells which one was left for it.
func (g *segment) set(n int64) (before int64, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, moved = g.n, g.known && n > g.n
	if moved || !g.known {
		g.n, g.known = n, true
	}
	return before, moved
}

// past tells whether a segment was left behind: it was closed then.
func (g *segment) past(n int64) bool {
	now, known := g.get()
	return known && now > n
}

// parallel draws tickets for as many items as are wanted.
func (sh *shift) parallel() error {
	if err := sh.stand(func(lease *locks.Lease, ready func()) { sh.end(sh.clerk(lease, ready)) }); err != nil {
		return err
	}
	return sh.attend(func() {
		for range sh.begin(sh.q.windowSize(), false) {
			sh.tasks.start(func() { sh.claim(nil, nil) })
		}
	}, sh.shed)
}

// claim gets one item: of the ticket if there is one, or from the lanes, else from the queue.
func (sh *shift) claim(t *ticket, err error) {
	ctx := sh.patience()
	var d *delivery
	if err == nil && t != nil {
		d, err = sh.redeem(ctx, t)
	}
	if err == nil && d == nil {
		d, err = sh.fromLanes()
	}
	for err == nil && d == nil {
		d, err = sh.byTicket(ctx)
	}
	if err == nil {
		err = sh.gate.pass(ctx)
	}
	switch {
	case err == nil:
		sh.offer(d)
		return
	case d != nil && d.begin(errTakenBack) == nil:
		d.unseen = true
		d.tenure.End(err)
		d.putBack(d.attempt-1, func(error) {})
	}
	sh.gaveUp()
	if ctx.Err() == nil {
		sh.end(err)
	}
}

// byTicket draws a ticket and waits for its item; nil if there will be none.
func (sh *shift) byTicket(ctx context.Context) (*delivery, error) {
	seg, err := sh.segment()
	if err != nil {
		return nil, err
	}
	p, name := sh.draw(seg)
	results, err := sh.q.writer.do(context.Background(), p)
	t, err := sh.drawn(seg, name, results, err)
	if err != nil || t == nil {
		return nil, err
	}
	return sh.redeem(ctx, t)
}

// nextDraws are the draws of the tickets that are wanted, unless the lanes have to be looked at first.
func (sh *shift) nextDraws() (parts []*part) {
	seg, known := sh.seg.get()
	if !known || sh.bell.rung() {
		return nil
	}
	for range sh.begin(sh.q.windowSize(), false) {
		p, name := sh.draw(seg)
		if !sh.tasks.begin() {
			sh.gaveUp()
			break
		}
		p.then = func(results []framework.OpResult, err error) {
			go func() {
				defer sh.tasks.finish()
				t, err := sh.drawn(seg, name, results, err)
				sh.claim(t, err)
			}()
		}
		parts = append(parts, p)
	}
	return parts
}

// redeem waits for a ticket's item; nil if there will be none. When it returns an error, too, the item has come as the wait
// ended: it is given back as one that nobody had.
func (sh *shift) redeem(ctx context.Context, t *ticket) (*delivery, error) {
	item := sh.q.base.item(t.seg, t.k)
	data, st, err := sh.await(ctx, t, item)
	if errors.Is(err, errVoid) {
		return nil, sh.advance(t)
	}
	if err != nil {
		var missing error
		if data, st, missing = sh.s.Get(sh.s.Context(), item); missing != nil {
			sh.drop(t, sh.q.bellOp())
			return nil, err
		}
	}
	d := &delivery{shift: sh, item: item, version: st.Version, claim: t.node}
	d, broken := d.open(data, 1)
	return d, cmp.Or(err, broken)
}

// draw is the part that draws a ticket, and the beginning of its name.
func (sh *shift) draw(seg int64) (*part, string) {
	name := fmt.Sprintf("t-%s.%x-", sh.id, sh.seg.drawn.Add(1))
	path := framework.Join(sh.q.base.ticketsOf(seg), name)
	return &part{session: sh.s, ops: []framework.Op{framework.CreateOp(path, nil, framework.EphemeralSequential)}}, name
}

// drawn is the ticket that was drawn; nil if its segment is gone.
func (sh *shift) drawn(seg int64, name string, results []framework.OpResult, err error) (*ticket, error) {
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil, sh.locate(seg)
	case err != nil:
		return nil, err
	case results == nil:
		return sh.findTicket(seg, name)
	}
	_, got := framework.Split(results[0].Path)
	return sh.newTicket(sh.q.base.ticketsOf(seg), got, seg)
}

func (sh *shift) newTicket(dir, name string, seg int64) (*ticket, error) {
	k, ok := ticketNumber(name)
	if !ok {
		return nil, fmt.Errorf("queue: the server named a ticket %q", name)
	}
	sh.stock.add(shelf{sh.q.base, seg})
	return &ticket{framework.Join(dir, name), seg, k}, nil
}

// findTicket looks for a ticket that was drawn and whose name was lost, behind a sync: another server may not have
// seen it yet. It does so when the shift has ended too, since the ticket has to be given back then.
func (sh *shift) findTicket(seg int64, prefix string) (*ticket, error) {
	dir, ctx := sh.q.base.ticketsOf(seg), sh.s.Context()
	if err := sh.s.Sync(ctx, dir); err != nil {
		return nil, err
	}
	names, _, err := sh.s.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return sh.newTicket(dir, name, seg)
		}
	}
	return nil, nil // somebody has deleted it
}

// errVoid says that a ticket's number will never have an item.
var errVoid = errors.New("void ticket")

// await waits for a ticket's item.
func (sh *shift) await(ctx context.Context, t *ticket, item string) ([]byte, framework.Stat, error) {
	closed := sh.seg.past(t.seg) // before the item is looked for
	data, st, err := sh.reads.get(ctx, item)
	for rang := false; errors.Is(err, framework.ErrNoNode); rang = true {
		if closed {
			return nil, framework.Stat{}, errVoid
		}
		if !rang && sh.bell.rung() { // the clerk may have looked before it could see this ticket
			sh.q.writer.add(&part{session: sh.s, ops: []framework.Op{sh.q.bellOp()}})
		}
		if err := sh.coming(ctx, t, item); err != nil {
			return nil, framework.Stat{}, err
		}
		data, st, err = sh.reads.get(ctx, item)
	}
	return data, st, err
}

// coming waits until the item is there or its segment has changed. It returns errVoid when it cannot come any more.
func (sh *shift) coming(ctx context.Context, t *ticket, item string) error {
	_, there, err := sh.s.WatchExists(ctx, item)
	if err == nil {
		there.Stop()
		return nil
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	defer there.Stop()
	_, st, changed, err := sh.s.WatchData(ctx, sh.q.base.segment(t.seg))
	if errors.Is(err, framework.ErrNoNode) {
		return errVoid
	}
	if err != nil {
		return err
	}
	defer changed.Stop()
	if st.Version > 0 || created(st) > t.k {
		if _, err = sh.s.Exists(ctx, item); errors.Is(err, framework.ErrNoNode) {
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

// segment is where tickets are drawn.
func (sh *shift) segment() (int64, error) {
	if n, known := sh.seg.get(); known {
		return n, nil
	}
	if err := sh.locate(-1); err != nil {
		return 0, err
	}
	return sh.segment()
}

// advance gives a void ticket up, and goes on to the next segment if its own is closed.
func (sh *shift) advance(t *ticket) error {
	defer sh.drop(t)
	if sh.seg.past(t.seg) {
		return nil
	}
	st, err := sh.s.Exists(sh.ctx, sh.q.base.segment(t.seg))
	switch {
	case errors.Is(err, framework.ErrNoNode):
	case err != nil:
		return err
	case st.Version == 0, t.k < created(st) && st.NumChildren > 0:
		return nil // a foreign node has taken the number, or a purge has, and has left others
	}
	sh.moveTo(t.seg + 1)
	return nil
}

// drop gives a ticket up.
func (sh *shift) drop(t *ticket, more ...framework.Op) {
	sh.write(&part{session: sh.s, ops: append(more, framework.DeleteOp(t.node, framework.AnyVersion)),
		then: func([]framework.OpResult, error) { sh.settled(shelf{sh.q.base, t.seg}) }})
}

func (sh *shift) moveTo(n int64) {
	if before, moved := sh.seg.set(n); moved {
		sh.left(shelf{sh.q.base, before})
	}
}

// locate looks for the first segment after gone with an item that nobody has a ticket for, or the open one. If all that
// it has listed were used up by the time it looked, there are others by then.
func (sh *shift) locate(gone int64) error {
	if err := sh.s.Sync(sh.ctx, sh.q.base.dir); err != nil {
		return err
	}
	for {
		segments, err := sh.q.base.segments(sh.ctx, sh.s)
		if err != nil {
			return err
		}
		segments = slices.DeleteFunc(segments, func(n int64) bool { return n <= gone })
		if len(segments) == 0 {
			return fmt.Errorf("%w: %s has no segment to take from", ErrNotQueue, sh.q.base.dir)
		}
		for _, n := range segments {
			used, err := sh.usedUp(n)
			if err != nil {
				return err
			}
			if !used {
				sh.moveTo(n)
				return nil
			}
			gone = n
		}
	}
}

// usedUp tells whether a segment is closed and as many tickets were drawn as it had items.
func (sh *shift) usedUp(n int64) (bool, error) {
	items, err := sh.s.Exists(sh.ctx, sh.q.base.segment(n))
	if err == nil && items.Version == 0 {
		return false, nil
	}
	var tickets framework.Stat
	if err == nil {
		tickets, err = sh.s.Exists(sh.ctx, sh.q.base.ticketsOf(n))
	}
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	return created(tickets) >= created(items), err
}
