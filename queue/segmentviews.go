package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
)

// segmentView is what a consumer knows of the segment of a line in which it draws tickets.
type segmentView struct {
	line    itemLine
	known   bool // the rest is
	seg     int64
	put     int64 // items ever created in the segment
	drawn   int64 // tickets ever created in it
	closed  bool
	version int32 // of the directory of its tickets
}

// unclaimed is how many items nobody has a ticket for, as far as is known.
func (v *segmentView) unclaimed() int64 {
	if !v.known {
		return 0
	}
	return max(0, v.put-v.drawn)
}

// segmentViews are a consumer's views of the lines of a parallel queue. It looks at the lanes again when the ring has sounded
// since its last look, or a draw was refused (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
type segmentViews struct {
	q       *engine
	s       *framework.Session
	id      string          // of the consumer, for the names of tickets
	left    func(segmentID) // is told of a segment that the consumer will not draw in any more
	names   atomic.Int64    // of tickets so far
	looking chan struct{}   // held by who looks
	rings   chan struct{}   // gets a token when a ring was noticed: for the recoverer
	waited  atomic.Bool     // the last ticket of the base line had to wait for its item: others may wait, too

	mu     sync.Mutex
	base   segmentView
	lanes  []*segmentView // in the order in which their items go
	listed int32          // the version of the list of lanes
	watch  *framework.Watch
	looks  int64 // so far
	dirty  int64 // reasons to look so far
	clean  int64 // those that the last look has answered
}

func newSegmentViews(q *engine, s *framework.Session, id string, left func(segmentID)) *segmentViews {
	return &segmentViews{q: q, s: s, id: id, left: left, base: segmentView{line: q.base, seg: -1}, listed: -1, dirty: 1,
		looking: make(chan struct{}, 1), rings: make(chan struct{}, 1)}
}

// needLook reports whether the consumer has to look before it draws. It is so until the look is over.
func (v *segmentViews) needLook() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsLook()
}

// needsLook is needLook; v.mu is held.
func (v *segmentViews) needsLook() bool {
	if v.watch != nil {
		select {
		case <-v.watch.C():
			v.dirty++
			select {
			case v.rings <- struct{}{}:
			default:
			}
		default:
		}
	}
	return v.dirty != v.clean
}

// waitForSignal is the channel of the next ring, unless that is noticed otherwise first: then rings has a token.
func (v *segmentViews) waitForSignal() <-chan framework.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch == nil {
		return nil
	}
	return v.watch.C()
}

// invalidate makes the next draw look first.
func (v *segmentViews) invalidate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dirty++
}

// refresh looks if that is needed. Only one caller at a time asks the servers.
func (v *segmentViews) refresh(ctx context.Context) error {
	if !v.needLook() {
		return nil
	}
	select {
	case v.looking <- struct{}{}:
		defer func() { <-v.looking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !v.needLook() {
		return nil
	}
	return v.readLanes(ctx)
}

// readLanes sets the watch of the ring, and then reads the lanes.
func (v *segmentViews) readLanes(ctx context.Context) error {
	_, st, w, err := v.s.WatchData(ctx, v.q.below(lanesDir))
	if err != nil {
		return err
	}
	v.mu.Lock()
	if v.watch != nil {
		v.watch.Stop()
	}
	v.watch = w
	answers, listed, lanes, base := v.dirty, v.listed, v.lanes, v.base
	read := make([]segmentView, len(lanes))
	for i, lane := range lanes {
		read[i] = *lane
	}
	v.mu.Unlock()
	if listed != st.Cversion {
		if read, err = v.listLanes(ctx, read); err != nil {
			return err
		}
	}
	if err := v.readCounts(ctx, read); err != nil {
		return err
	}
	if !base.known {
		if err := v.findOpenSegment(ctx, &base); err != nil {
			return err
		}
	}
	v.storeLook(read, base, st.Cversion, answers)
	return nil
}

// storeLook takes in what a look has read.
func (v *segmentViews) storeLook(read []segmentView, base segmentView, listed int32, answers int64) {
	v.mu.Lock()
	var left []segmentID
	for i := range read {
		if before := v.viewOf(read[i].line); before != nil && before.seg >= 0 && before.seg != read[i].seg {
			left = append(left, segmentID{before.line, before.seg})
		}
	}
	if v.base.seg >= 0 && v.base.seg != base.seg {
		left = append(left, segmentID{v.base.line, v.base.seg})
	}
	v.base, v.lanes, v.listed, v.clean = base, nil, listed, answers
	v.looks++
	for i := range read {
		v.lanes = append(v.lanes, &read[i])
	}
	v.mu.Unlock()
	select {
	case v.rings <- struct{}{}: // the recoverer may wait for the watch of before
	default:
	}
	for _, at := range left {
		v.left(at)
	}
}

// listLanes lists the lanes, and keeps the views of those that were known.
func (v *segmentViews) listLanes(ctx context.Context, before []segmentView) (views []segmentView, err error) {
	lanes, err := v.q.listLanes(ctx, v.s)
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		view := segmentView{line: l, seg: -1}
		if i := slices.IndexFunc(before, func(known segmentView) bool { return known.line == l }); i >= 0 {
			view = before[i]
		}
		views = append(views, view)
	}
	return views, nil
}

// readCounts reads the counts of lanes, in one request for all whose segments are known and not used up.
func (v *segmentViews) readCounts(ctx context.Context, views []segmentView) error {
	var paths []string
	for i := range views {
		if !views[i].known {
			if err := v.findOpenSegment(ctx, &views[i]); err != nil {
				return err
			}
		}
		paths = append(paths, views[i].line.segment(views[i].seg), views[i].line.ticketsOf(views[i].seg))
	}
	nodes, err := v.s.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	for i := range views {
		usedUp, err := views[i].updateFrom(nodes[2*i], nodes[2*i+1])
		if err == nil && usedUp {
			err = v.findOpenSegment(ctx, &views[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updateFrom takes in the state of a segment and of its tickets, and reports whether there is nothing to draw there any more.
func (v *segmentView) updateFrom(segment, tickets framework.Node) (usedUp bool, err error) {
	for _, n := range []framework.Node{segment, tickets} {
		if errors.Is(n.Err, framework.ErrNoNode) {
			return true, nil // it was removed
		}
		if n.Err != nil {
			return false, n.Err
		}
	}
	v.known, v.put, v.drawn, v.version = true, childrenEver(segment.Stat), childrenEver(tickets.Stat), tickets.Stat.Version
	v.closed = segment.Stat.Version > 0
	return v.closed && (v.drawn >= v.put || segment.Stat.NumChildren == 0), nil
}

// findOpenSegment finds the first segment of a line that is not used up: that has an item which nobody has a ticket for, or is open.
// If the last one was closed by hand, it makes the next.
func (v *segmentViews) findOpenSegment(ctx context.Context, view *segmentView) error {
	for {
		segments, err := view.line.segments(ctx, v.s)
		if err != nil {
			return err
		}
		if len(segments) == 0 {
			return fmt.Errorf("%w: %s has no segment to take from", ErrNotQueue, view.line.dir)
		}
		for _, n := range segments {
			nodes, err := v.s.GetAll(ctx, view.line.segment(n), view.line.ticketsOf(n))
			if err != nil {
				return err
			}
			view.seg = n
			usedUp, err := view.updateFrom(nodes[0], nodes[1])
			if err != nil || !usedUp {
				return err
			}
		}
		if err := view.line.openAfter(ctx, v.s, segments[len(segments)-1]); err != nil {
			return err
		}
	}
}

// ticketDraw is tickets of one segment that are drawn together.
type ticketDraw struct {
	at      segmentID
	names   []string // without their numbers
	checked bool     // at the version of the tickets' directory
	version int32
	brief   bool // of tickets drawn beside a return
	rings   bool // since the items of the segment after a closed one are spare now
}

// plentyFactor is how many times a consumer's window a lane has to have to spare for a draw without a check: about as many
// consumers can draw at once before there are more tickets than items.
const plentyFactor = 8

// planDraws divides n tickets among the lines: the lanes in their order, as many as they have to spare, and then the base line. It
// returns how many are left to be drawn after another look, since a lane goes on in another segment.
func (v *segmentViews) planDraws(n int) (draws []*ticketDraw, rest int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, lane := range v.lanes {
		if m := min(int64(n), lane.unclaimed()); m > 0 {
			d := v.drawOf(lane, int(m))
			if d.checked = lane.unclaimed() < plentyFactor*int64(v.q.windowSize()); d.checked {
				d.version = lane.version
				lane.version++
			}
			lane.drawn += m
			if d.rings = lane.closed && lane.unclaimed() == 0; d.rings {
				lane.known = false
				v.dirty++
			}
			n -= int(m)
			draws = append(draws, d)
		}
	}
	if v.dirty != v.clean {
		return draws, n
	}
	if n > 0 {
		draws = append(draws, v.drawOf(&v.base, n))
	}
	return draws, 0
}

// planReturned is a ticket in the line of returned items, for who returns one; nil if that line is not known well, or if others
// may wait for items: these come first.
func (v *segmentViews) planReturned() *ticketDraw {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waited.Load() || len(v.lanes) == 0 || !v.lanes[0].known || v.lanes[0].line.name() != redoLane {
		return nil
	}
	d := v.drawOf(v.lanes[0], 1)
	d.brief = true
	return d
}

func (v *segmentViews) drawOf(view *segmentView, n int) *ticketDraw {
	d := &ticketDraw{at: segmentID{view.line, view.seg}}
	for range n {
		d.names = append(d.names, fmt.Sprintf("t-%s.%x-", v.id, v.names.Add(1)))
	}
	return d
}

// drawOps are the operations that draw, the creates last.
func (q *engine) drawOps(d *ticketDraw) (ops []framework.Op) {
	dir := d.at.line.ticketsOf(d.at.seg)
	if d.checked {
		ops = append(ops, framework.SetOp(dir, nil, d.version))
	}
	if d.rings {
		ops = append(ops, q.signalLanesOp())
	}
	for _, name := range d.names {
		ops = append(ops, framework.CreateOp(framework.Join(dir, name), nil, framework.EphemeralSequential))
	}
	return ops
}

// ticketDrawn takes in that a ticket was drawn.
func (v *segmentViews) ticketDrawn(t *ticket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if view := v.viewOf(t.at.line); view != nil && view.seg == t.at.seg {
		view.drawn = max(view.drawn, t.k+1)
	}
}

// viewOf is the view of a line, or nil; v.mu is held.
func (v *segmentViews) viewOf(l itemLine) *segmentView {
	if l == v.base.line {
		return &v.base
	}
	for _, lane := range v.lanes {
		if lane.line == l {
			return lane
		}
	}
	return nil
}

// isBehind reports whether the consumer draws behind a segment, which was closed then.
func (v *segmentViews) isBehind(at segmentID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	view := v.viewOf(at.line)
	return view != nil && view.known && view.seg > at.seg
}

// skipSegment has the next look find another segment than one that is closed.
func (v *segmentViews) skipSegment(at segmentID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if view := v.viewOf(at.line); view != nil && view.seg == at.seg {
		view.known = false
		v.dirty++
	}
}

// mayBeSpare reports whether the lanes may have items without tickets, that the recoverer may have to wake somebody for.
func (v *segmentViews) mayBeSpare() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsLook() || v.sumUnclaimed() > 0
}

// unclaimedInLanes is how many items of the lanes nobody has a ticket for, and in which look that was seen.
func (v *segmentViews) unclaimedInLanes() (n, look int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sumUnclaimed(), v.looks
}

// sumUnclaimed is spare; v.mu is held.
func (v *segmentViews) sumUnclaimed() (n int64) {
	for _, lane := range v.lanes {
		n += lane.unclaimed()
	}
	return n
}
