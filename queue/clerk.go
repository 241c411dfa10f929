package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// clerk is the first of the consumers of a parallel queue. It brings back the items of those that have gone, and
// hands the lanes' items to idle consumers (docs/adr/0021-a-queue-of-segments-and-tickets.md, rules 3 to 5).
type clerk struct {
	*shift
	ctx     context.Context  // done when the lease or the shift has ended
	members []string         // of the line, in the last round
	holes   map[int64]*holes // by segment
	swept   func()           // called after each look
	come    chan struct{}    // something has happened at a hole
}

// holes are the items of a segment that the clerk watches for: their tickets had gone before they were put.
type holes struct {
	numbers map[int64]bool
	ctx     context.Context
	fill    context.CancelFunc // ends the watching
}

// clerk serves as one until the lease ends. It calls swept when it has looked for what goes first. Its error ends the shift.
func (sh *shift) clerk(lease *locks.Lease, swept func()) error {
	ctx, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(sh.ctx, func() { cancel(context.Cause(sh.ctx)) })()
	c := &clerk{shift: sh, ctx: ctx, swept: swept, holes: map[int64]*holes{}, come: make(chan struct{}, 1)}
	sh.tasks.start(func() { sh.end(sh.courier(c.ctx)) })
	for {
		if err := c.round(); err != nil {
			if c.ctx.Err() != nil {
				return context.Cause(c.ctx)
			}
			return err
		}
	}
}

// round listens, looks, and waits for something to happen.
func (c *clerk) round() error {
	names, _, members, err := c.s.WatchChildren(c.ctx, c.q.below(lockDir))
	if err != nil {
		return err
	}
	defer members.Stop()
	if c.departed(names) { // with what it had claimed of the lanes
		c.q.writer.add(&part{session: c.s, ops: []framework.Op{c.q.bellOp()}})
	}
	_, _, bell, err := c.s.WatchData(c.ctx, c.q.below(lanesDir))
	if err != nil {
		return err
	}
	defer bell.Stop()
	idle, err := c.sweep()
	if err == nil {
		c.swept()
		err = c.handOver(idle)
	}
	if err != nil {
		return err
	}
	select {
	case <-members.C():
	case <-bell.C():
	case <-c.come:
	case <-c.shift.ctx.Done():
		return context.Cause(c.shift.ctx)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	return nil
}

// departed tells whether anybody has left the line since the last round. Before the first one, the last clerk has.
func (c *clerk) departed(names []string) bool {
	before := c.members
	c.members = append([]string{}, names...)
	return before == nil || slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(names, name) })
}

// sweep moves all orphans into the lane redo and watches for those to come. It returns how many consumers wait for
// items.
func (c *clerk) sweep() (idle int, err error) {
	segments, err := c.q.base.segments(c.ctx, c.s)
	if err != nil {
		return 0, err
	}
	for seg := range c.holes {
		if !slices.Contains(segments, seg) { // it was reaped
			c.fill(seg)
		}
	}
	for _, seg := range segments {
		f, err := c.look(seg)
		if errors.Is(err, framework.ErrNoNode) {
			continue // it was reaped
		}
		if err != nil {
			return 0, err
		}
		if f.drawn == 0 && (!f.closed || f.put > 0) {
			break // no consumer has come so far: they pass a segment without a ticket only if it was closed without items
		}
		if err := c.rescue(seg, f); err != nil {
			return 0, err
		}
		idle += c.attendTo(seg, f)
	}
	return idle, nil
}

// findings are what a look at a segment tells.
type findings struct {
	drawn   int64          // tickets ever
	since   int64          // the transaction that has changed the list of tickets last
	tickets map[int64]bool // that exist
	put     int64          // items ever
	items   []int64        // that exist
	closed  bool
}

// look reads the number of tickets, then the tickets, then the items: a ticket below that number that is not there
// has gone for good.
func (c *clerk) look(seg int64) (f findings, err error) {
	st, err := c.s.Exists(c.ctx, c.q.base.ticketsOf(seg))
	if err != nil {
		return f, err
	}
	f.drawn, f.tickets = created(st), map[int64]bool{}
	names, st, err := c.s.Children(c.ctx, c.q.base.ticketsOf(seg))
	if err != nil {
		return f, err
	}
	f.since = st.Pzxid
	for _, name := range names {
		if k, ok := ticketNumber(name); ok {
			f.tickets[k] = true
		}
	}
	if st, err = c.s.Exists(c.ctx, c.q.base.segment(seg)); err != nil {
		return f, err
	}
	f.put, f.closed = created(st), st.Version > 0
	f.items, err = c.q.base.items(c.ctx, c.s, seg)
	return f, err
}

// rescue moves a segment's orphans, and removes the segment if it is closed and empty.
func (c *clerk) rescue(seg int64, f findings) error {
	for _, k := range f.items {
		if k >= f.drawn || f.tickets[k] {
			continue
		}
		claimed := func(st framework.Stat) int { // not if the ticket had gone before the item was put
			if h := c.holes[seg]; h != nil && h.numbers[k] || st.Czxid > f.since {
				return 0
			}
			return 1
		}
		if err := c.move(c.q.base.item(seg, k), c.q.lane(redoLane), claimed, c.q.bellOp()); err != nil {
			return err
		}
	}
	if f.closed && len(f.items) == 0 {
		c.reap(shelf{c.q.base, seg})
	}
	return nil
}

// move moves an item that nobody has to the end of a line, and counts the attempts that its node does not tell of. It is no
// error if the item has gone elsewhere, or is claimed.
func (c *clerk) move(item string, to line, attempts func(framework.Stat) int, more ...framework.Op) error {
	data, st, err := c.s.Get(c.ctx, item)
	if errors.Is(err, framework.ErrNoNode) || err == nil && st.NumChildren > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := decodeEnvelope(data)
	if err == nil {
		e.header.Attempts += int(st.Version) + attempts(st)
		if data, err = e.encode(); err != nil {
			return err
		}
	} // else it is moved as it is
	p := &part{session: c.s, ops: append([]framework.Op{framework.DeleteOp(item, st.Version)}, more...), puts: []put{{line: to, data: data}}}
	_, err = c.q.writer.do(context.Background(), p)
	var tx *framework.TxError
	if errors.As(err, &tx) && !errors.Is(err, framework.ErrNoAuth) {
		return nil
	}
	return err
}

// attendTo watches for the items of tickets that have gone, and counts the tickets that wait for items.
func (c *clerk) attendTo(seg int64, f findings) (idle int) {
	if f.closed { // nothing comes any more
		c.fill(seg)
		return 0
	}
	var missing []int64
	for k := f.put; k < f.drawn; k++ {
		if f.tickets[k] {
			idle++
			continue
		}
		missing = append(missing, k)
	}
	if len(missing) > maxHoles {
		if _, err := c.s.Multi(c.ctx, c.q.base.roll(seg)...); err == nil {
			c.lookAgain() // an item may have come into a hole before
			return 0      // who waits goes on to the next segment
		}
	}
	for _, k := range missing {
		c.dig(seg, k)
	}
	for k := range f.tickets {
		if k >= f.drawn { // drawn meanwhile
			idle++
		}
	}
	return idle
}

// maxHoles is how many holes of a segment the clerk watches before it closes the segment.
const maxHoles = 4

// dig watches for an item, if the clerk does not so far.
func (c *clerk) dig(seg, k int64) {
	h := c.holes[seg]
	if h == nil {
		h = &holes{numbers: map[int64]bool{}}
		h.ctx, h.fill = context.WithCancel(c.ctx)
		c.holes[seg] = h
	}
	if !h.numbers[k] {
		h.numbers[k] = true
		c.tasks.start(func() { c.watchHole(h.ctx, c.q.base.item(seg, k)) })
	}
}

// fill ends the watching for a segment's items.
func (c *clerk) fill(seg int64) {
	if h := c.holes[seg]; h != nil {
		h.fill()
		delete(c.holes, seg)
	}
}

// watchHole tells the clerk when an item has come whose ticket has gone.
func (c *clerk) watchHole(ctx context.Context, item string) {
	for !c.filled(ctx, item) {
		if ctx.Err() != nil {
			return
		}
	}
	c.lookAgain()
}

func (c *clerk) lookAgain() {
	select {
	case c.come <- struct{}{}:
	default:
	}
}

// filled waits until something has happened at a hole, be it that the connection was replaced, and tells whether the item
// was there before.
func (c *clerk) filled(ctx context.Context, item string) bool {
	_, w, err := c.s.WatchExists(ctx, item)
	if w != nil {
		defer w.Stop()
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return true
	}
	select {
	case <-w.C():
	case <-ctx.Done():
	}
	return false
}

// handOver moves items of the lanes to the end of the queue, where so many consumers wait for them.
func (c *clerk) handOver(idle int) error {
	if idle == 0 {
		return nil
	}
	found, err := c.q.waiting(c.ctx, c.s, idle)
	if err != nil {
		return err
	}
	for _, it := range found {
		if err := c.move(it.path, c.q.base, func(framework.Stat) int { return 0 }); err != nil {
			return err
		}
	}
	return nil
}
