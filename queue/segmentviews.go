package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// segmentTicket claims the item with its number in its segment.
type segmentTicket struct {
	item     queuelayout.Item
	itemNode string
	node     primitives.Created // of the ticket
	// It was drawn with the return of another item: its item goes back unless a call of Take gets
	// it soon.
	withReturn bool
}

// ticketDraw is tickets of one segment that are drawn in one transaction.
type ticketDraw struct {
	segment    queuelayout.Segment
	names      []string // of the tickets, without their numbers
	checked    bool     // it is refused unless the directory of the tickets has this version
	version    int32
	withReturn bool // as that of its tickets
	signal     bool // tells the other consumers: the items of the chain's next segment can be claimed now
}

const (
	// maxOwner is how many bytes of a consumer's identity a ticket has.
	maxOwner = 128
	// maxDrawn is how many tickets one draw has at most: a draw must fit into one transaction.
	maxDrawn = 1000
)

// drawOps are the operations of the draw, the creates last. Each ticket tells the consumer's
// identity.
func (d *ticketDraw) drawOps(store *store) (ops []framework.Op) {
	owner := []byte(store.client.Config().Identity)
	owner = owner[:min(len(owner), maxOwner)]
	if d.checked {
		ops = append(ops, framework.SetOp(d.segment.TicketDir(), nil, d.version))
	}
	if d.signal {
		ops = append(ops, store.nodes.SignalLanes())
	}
	for _, name := range d.names {
		ticket := znode.Join(d.segment.TicketDir(), name)
		ops = append(ops, framework.CreateOp(ticket, owner, framework.EphemeralSequential))
	}
	return ops
}

// ticketOf is the ticket of a draw with a node, whose name ends with the number that the server
// gave.
func (d *ticketDraw) ticketOf(node primitives.Created) (*segmentTicket, error) {
	_, name := znode.Split(node.Path)
	k, ok := queuelayout.TicketNumber(name)
	if !ok {
		return nil, fmt.Errorf("queue: the server has named a ticket %q", name)
	}
	item := d.segment.Item(k)
	return &segmentTicket{item: item, itemNode: item.Node(), node: node, withReturn: d.withReturn}, nil
}

// segmentView is what a consumer knows of the segment of a chain in which it draws tickets.
type segmentView struct {
	segment queuelayout.Segment // its Number is -1 before one was found
	known   bool                // the fields below were read
	put     int64               // items ever created in the segment
	drawn   int64               // tickets ever created in it
	closed  bool
	version int32 // of the directory of its tickets
}

// countUnclaimed is the number of items without tickets, as far as is known.
func (v *segmentView) countUnclaimed() int64 {
	if !v.known {
		return 0
	}
	return max(0, v.put-v.drawn)
}

// updateFrom records the state of a segment and of its tickets, and reports whether it has no
// items to draw, now and later.
func (v *segmentView) updateFrom(segment, tickets framework.Node) (usedUp bool, err error) {
	for _, n := range []framework.Node{segment, tickets} {
		if errors.Is(n.Err, framework.ErrNoNode) {
			return true, nil // it was removed
		}
		if n.Err != nil {
			return false, n.Err
		}
	}
	v.known, v.version = true, tickets.Stat.Version
	v.put, v.drawn = queuelayout.ChildrenEver(segment.Stat), queuelayout.ChildrenEver(tickets.Stat)
	v.closed = segment.Stat.Version > 0
	return v.closed && (v.drawn >= v.put || segment.Stat.NumChildren == 0), nil
}

// segmentViews are a consumer's views of the chains of a parallel queue, from which it plans its
// draws. The lanes have to be read again after a signal since the last read, and after a draw was
// refused (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
type segmentViews struct {
	nodes   *queuelayout.Layout
	s       *framework.Session
	id      string                    // of the consumer session, for the names of tickets
	window  int                       // claims of a consumer session
	onLeave func(queuelayout.Segment) // is called for each segment that the consumer has left behind
	names   atomic.Int64              // tickets named so far
	reading chan struct{}             // held by the goroutine that reads
	signals chan struct{}             // has a token after a signal was noticed: for the recoverer
	// the last ticket of the base chain had to wait for its item: other consumers may wait, too
	waited atomic.Bool

	mu              sync.Mutex
	base            segmentView
	lanes           []*segmentView // in the order in which their items go
	listed          int32          // the version of the list of lanes
	watch           *framework.Watch
	ended           bool  // the consumer session has ended
	reads           int64 // so far
	readReasons     int64 // reasons to read so far
	answeredReasons int64 // reasons that the last read has answered
}

func newSegmentViews(nodes *queuelayout.Layout, s *framework.Session, id string, window int,
	onLeave func(queuelayout.Segment)) *segmentViews {
	return &segmentViews{nodes: nodes, s: s, id: id, window: window, onLeave: onLeave,
		base: segmentView{segment: nodes.Base.Segment(-1)}, listed: -1, readReasons: 1,
		reading: make(chan struct{}, 1), signals: make(chan struct{}, 1)}
}

// refreshIfStale reads the lanes if they are stale. One caller at a time asks the servers.
func (v *segmentViews) refreshIfStale(ctx context.Context) error {
	if !v.isStale() {
		return nil
	}
	select {
	case v.reading <- struct{}{}:
		defer func() { <-v.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !v.isStale() {
		return nil
	}
	return v.readLanes(ctx)
}

// isStale reports whether the lanes have to be read before a draw.
func (v *segmentViews) isStale() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.checkStale()
}

// checkStale is isStale; v.mu is held.
func (v *segmentViews) checkStale() bool {
	if v.watch != nil {
		select {
		case <-v.watch.C():
			v.readReasons++
			v.passSignal()
		default:
		}
	}
	return v.readReasons != v.answeredReasons
}

// invalidate makes the next draw read the lanes first.
func (v *segmentViews) invalidate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.readReasons++
}

// readLanes sets the watch of the signal, and then reads the lanes.
func (v *segmentViews) readLanes(ctx context.Context) error {
	_, stat, w, err := v.s.WatchData(ctx, v.nodes.LanesDir)
	if err != nil {
		return err
	}
	v.mu.Lock()
	if v.watch != nil {
		v.watch.Stop()
	}
	if v.watch = w; v.ended {
		w.Stop()
	}
	answers, base := v.readReasons, v.base
	lanes := make([]segmentView, len(v.lanes))
	for i, lane := range v.lanes {
		lanes[i] = *lane
	}
	listed := v.listed
	v.mu.Unlock()
	if listed != stat.Cversion {
		if lanes, err = v.listLanes(ctx, lanes); err != nil {
			return err
		}
	}
	if err := v.readCounts(ctx, lanes); err != nil {
		return err
	}
	if !base.known {
		if err := v.findSegment(ctx, &base); err != nil {
			return err
		}
	}
	v.storeRead(lanes, base, stat.Cversion, answers)
	return nil
}

// ListLanes lists the lanes, and keeps the views of known ones.
func (v *segmentViews) listLanes(ctx context.Context, before []segmentView) (views []segmentView, err error) {
	lanes, err := v.nodes.ListLanes(ctx, v.s)
	if err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		view := segmentView{segment: lane.Segment(-1)}
		if i := slices.IndexFunc(before, func(known segmentView) bool { return known.segment.Chain == lane }); i >= 0 {
			view = before[i]
		}
		views = append(views, view)
	}
	return views, nil
}

// readCounts reads the counts of the lanes, in one request if their segments are known and not used
// up.
func (v *segmentViews) readCounts(ctx context.Context, views []segmentView) error {
	var paths []string
	for i := range views {
		if !views[i].known {
			if err := v.findSegment(ctx, &views[i]); err != nil {
				return err
			}
		}
		paths = append(paths, views[i].segment.Dir(), views[i].segment.TicketDir())
	}
	nodes, err := v.s.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	for i := range views {
		usedUp, err := views[i].updateFrom(nodes[2*i], nodes[2*i+1])
		if err == nil && usedUp {
			err = v.findSegment(ctx, &views[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findSegment finds the first segment of a chain that is not used up: it has an item without a
// ticket, or is open. If an operator has closed the last one, findSegment makes the next.
func (v *segmentViews) findSegment(ctx context.Context, view *segmentView) error {
	for {
		segments, err := view.segment.Chain.ListSegments(ctx, v.s)
		if err != nil {
			return err
		}
		if len(segments) == 0 {
			return fmt.Errorf("%w: %s has no segment to take from", errNotQueue, view.segment.Chain.Dir)
		}
		for _, segment := range segments {
			nodes, err := v.s.GetAll(ctx, segment.Dir(), segment.TicketDir())
			if err != nil {
				return err
			}
			view.segment = segment
			usedUp, err := view.updateFrom(nodes[0], nodes[1])
			if err != nil || !usedUp {
				return err
			}
		}
		if err := view.segment.MakeNext(ctx, v.s); err != nil {
			return err
		}
	}
}

// storeRead records what was read, and calls onLeave for the segments left behind.
func (v *segmentViews) storeRead(lanes []segmentView, base segmentView, listed int32, answers int64) {
	v.mu.Lock()
	var left []queuelayout.Segment
	for _, read := range append(slices.Clone(lanes), base) {
		before := v.viewOf(read.segment.Chain)
		if before != nil && before.segment.Number >= 0 && before.segment != read.segment {
			left = append(left, before.segment)
		}
	}
	v.base, v.lanes, v.listed, v.answeredReasons = base, nil, listed, answers
	v.reads++
	for i := range lanes {
		v.lanes = append(v.lanes, &lanes[i])
	}
	v.mu.Unlock()
	v.passSignal() // the recoverer may wait for the former watch
	for _, segment := range left {
		v.onLeave(segment)
	}
}

// nextSignal is the channel of the next signal. If isStale notices the signal first, signals has a
// token instead.
func (v *segmentViews) nextSignal() <-chan framework.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch == nil {
		return nil
	}
	return v.watch.C()
}

func (v *segmentViews) passSignal() {
	select {
	case v.signals <- struct{}{}:
	default:
	}
}

// stopWatch stops the watch. Later reads leave no watch.
func (v *segmentViews) stopWatch() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.watch != nil {
		v.watch.Stop()
	}
}

// plentyFactor is how many times a consumer's window a lane must have unclaimed for a draw without
// a check: about as many consumers can draw at once before there are more tickets than items.
const plentyFactor = 8

// planDraws divides n tickets among the chains: to each lane, in order, as many as it has unclaimed
// items, and the rest to the base chain. A draw has at most maxDrawn tickets. planDraws returns how
// many tickets remain to be drawn after another read, since a lane continues in another segment.
func (v *segmentViews) planDraws(n int) (draws []*ticketDraw, rest int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, lane := range v.lanes {
		for n > 0 && lane.countUnclaimed() > 0 {
			m := min(int64(n), lane.countUnclaimed(), maxDrawn)
			d := v.newDraw(lane, int(m))
			if d.checked = lane.countUnclaimed() < int64(plentyFactor*v.window); d.checked {
				d.version = lane.version
				lane.version++
			}
			lane.drawn += m
			if d.signal = lane.closed && lane.countUnclaimed() == 0; d.signal {
				lane.known = false
				v.readReasons++
			}
			n -= int(m)
			draws = append(draws, d)
		}
	}
	if v.readReasons != v.answeredReasons {
		return draws, n
	}
	for n > 0 {
		d := v.newDraw(&v.base, min(n, maxDrawn))
		n -= len(d.names)
		draws = append(draws, d)
	}
	return draws, 0
}

// countReturned counts an item that this consumer has returned beside a draw. The draw has claimed
// an earlier item, of which other consumers may have been told, but in this consumer's view one is
// unclaimed as before.
func (v *segmentViews) countReturned(segment queuelayout.Segment) {
	v.mu.Lock()
	if view := v.viewOf(segment.Chain); view != nil && view.known && view.segment == segment {
		view.put++
		v.reads++ // the recoverer may have woken consumers for the items of the last read
	}
	v.mu.Unlock()
	select {
	case v.signals <- struct{}{}:
	default:
	}
}

// planReturned plans a ticket of the lane redo for a consumer that returns an item there. It
// returns nil if the lane is not known well, or if other consumers may wait for items: they come
// first.
func (v *segmentViews) planReturned() *ticketDraw {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waited.Load() || len(v.lanes) == 0 || !v.lanes[0].known || v.lanes[0].segment.Chain != v.nodes.Redo {
		return nil
	}
	d := v.newDraw(v.lanes[0], 1)
	d.withReturn = true
	return d
}

func (v *segmentViews) newDraw(view *segmentView, n int) *ticketDraw {
	d := &ticketDraw{segment: view.segment}
	for range n {
		d.names = append(d.names, queuelayout.TicketName(v.id, v.names.Add(1)))
	}
	return d
}

// ticketDrawn counts a ticket that was drawn.
func (v *segmentViews) ticketDrawn(t *segmentTicket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if view := v.viewOf(t.item.Segment.Chain); view != nil && view.segment == t.item.Segment {
		view.drawn = max(view.drawn, t.item.Number+1)
	}
}

// viewOf is the view of a chain, or nil; v.mu is held.
func (v *segmentViews) viewOf(l queuelayout.Chain) *segmentView {
	if l == v.base.segment.Chain {
		return &v.base
	}
	for _, lane := range v.lanes {
		if lane.segment.Chain == l {
			return lane
		}
	}
	return nil
}

// hasPassed reports whether the consumer draws behind a segment, which is closed then.
func (v *segmentViews) hasPassed(segment queuelayout.Segment) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	view := v.viewOf(segment.Chain)
	return view != nil && view.known && view.segment.Number > segment.Number
}

// skipSegment makes the next read find another segment than this one, which is closed.
func (v *segmentViews) skipSegment(segment queuelayout.Segment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if view := v.viewOf(segment.Chain); view != nil && view.segment == segment {
		view.known = false
		v.readReasons++
	}
}

// mayHaveUnclaimed reports whether the lanes may have items without tickets, which the recoverer
// has to wake consumers for.
func (v *segmentViews) mayHaveUnclaimed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.checkStale() || v.sumUnclaimed() > 0
}

// unclaimedInLanes is the number of items of the lanes without tickets, and the read in which that
// was seen.
func (v *segmentViews) unclaimedInLanes() (n, read int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sumUnclaimed(), v.reads
}

// sumUnclaimed is unclaimedInLanes; v.mu is held.
func (v *segmentViews) sumUnclaimed() (n int64) {
	for _, lane := range v.lanes {
		n += lane.countUnclaimed()
	}
	return n
}
