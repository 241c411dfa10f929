package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/locks"
)

// recoverer is the first of the consumers of a parallel queue. It returns the items of consumers
// that have gone, and wakes idle consumers for items of the lanes
// (docs/adr/0038-one-claim-mechanism-for-all-lines.md).
type recoverer struct {
	store        *store
	writer       *writer
	s            *framework.Session
	views        *segmentViews
	lease        *locks.Lease    // of the first in line
	ctx          context.Context // done when the lease or the consumer session has ended
	tasks        *background.Tasks
	removeIfDone func(queuelayout.Segment)

	departed       int64 // how many consumers had ever left the line when it was listed last
	missing        map[queuelayout.Segment]map[int64]bool
	wokenForRead   int64               // the read of the lanes after which consumers were last woken
	openSegment    queuelayout.Segment // the last segment of the base chain, when it was swept last
	sweepRequested chan struct{}       // has a token when there is a reason for another sweep
	stopWatches    context.CancelFunc  // ends the watches for missing numbers
}

// recoverUntilEnd sweeps the segments when a consumer has left the line, after SignalRecoverer, and
// for a missing number. After a sweep, and after SignalLanes, it wakes idle consumers. It calls
// ready after the first sweep. It returns an error when ctx ends or a request fails.
func (r *recoverer) recoverUntilEnd(ready func()) error {
	var members, notices *framework.Watch
	defer func() {
		r.stopWatches()
		for _, w := range []*framework.Watch{members, notices} {
			if w != nil {
				w.Stop()
			}
		}
	}()
	for sweep := true; ; {
		var err error
		if members == nil {
			var line framework.Stat
			if _, line, members, err = r.s.WatchChildren(r.ctx, r.store.nodes.LockDir); err != nil {
				return err
			}
			sweep = r.hasDeparted(line) || sweep
		}
		if notices == nil {
			if _, _, notices, err = r.s.WatchData(r.ctx, r.store.nodes.TicketsDir); err != nil {
				return err
			}
			sweep = true
		}
		if sweep {
			if err = r.sweepSegments(); err != nil {
				return err
			}
			r.views.invalidate()
		}
		ready()
		if err = r.views.refreshIfStale(r.ctx); err == nil {
			err = r.wakeIdleConsumers()
		}
		if err != nil {
			return err
		}
		sweep = false
		select {
		case <-members.C():
			members = nil
		case <-notices.C():
			notices = nil
		case <-r.views.nextSignal():
			r.views.invalidate()
		case <-r.views.signals:
		case <-r.sweepRequested:
			sweep = true
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// hasDeparted reports whether a consumer has left the line since the last list. It compares counts,
// since a consumer that joined and left meanwhile is in neither list. The counts are those of one
// directory: the recoverer's own entry keeps it.
func (r *recoverer) hasDeparted(line framework.Stat) bool {
	before := r.departed
	r.departed = queuelayout.ChildrenEver(line) - int64(line.NumChildren)
	return r.departed != before
}

// sweepSegments inspects all segments in which tickets were drawn, and recovers their items.
func (r *recoverer) sweepSegments() error {
	chains, err := r.store.nodes.ListChains(r.ctx, r.s)
	if err != nil {
		return err
	}
	r.stopWatches()
	ctx, cancel := context.WithCancel(r.ctx)
	before := r.missing
	r.stopWatches, r.missing = cancel, map[queuelayout.Segment]map[int64]bool{}
	for _, chain := range chains {
		segments, err := chain.ListSegments(r.ctx, r.s)
		if err != nil {
			return err
		}
		for i, segment := range segments {
			in, err := r.inspectSegment(segment)
			if errors.Is(err, framework.ErrNoNode) {
				continue // it was removed
			}
			if err == nil && !in.closed && i < len(segments)-1 {
				err = segment.CloseStray(r.ctx, r.s)
				in.closed = true
			}
			if err != nil {
				return err
			}
			if chain == r.store.nodes.Base {
				r.openSegment = segment
			}
			if in.drawn == 0 && (!in.closed || in.hasItems) {
				// no consumer has come so far: they pass a segment without a ticket only if it is
				// closed and empty, as a purge leaves it
				break
			}
			if err := r.recoverSegment(ctx, in, before[segment]); err != nil {
				return err
			}
		}
	}
	return nil
}

// segmentContents is the state of a segment.
type segmentContents struct {
	segment  queuelayout.Segment
	drawn    int64            // tickets ever
	changed  int64            // the last transaction that has changed the list of tickets
	tickets  map[int64]string // the nodes of the present tickets, by their numbers
	put      int64            // items ever
	hasItems bool             // when its counts were read
	items    []int64          // the present ones
	closed   bool
}

// inspectSegment reads in this order: how many tickets were drawn, the present tickets, how many
// items were put, the present items. So each number below drawn without a ticket has lost its
// ticket for good, and no item has a number of put or above.
func (r *recoverer) inspectSegment(segment queuelayout.Segment) (in segmentContents, err error) {
	in.segment = segment
	nodes, err := r.s.GetAll(r.ctx, segment.TicketDir(), segment.Dir())
	if err != nil {
		return in, err
	}
	for _, n := range nodes {
		if n.Err != nil {
			return in, n.Err
		}
	}
	tickets, items := nodes[0].Stat, nodes[1].Stat
	in.drawn, in.put = queuelayout.ChildrenEver(tickets), queuelayout.ChildrenEver(items)
	in.closed, in.hasItems = items.Version > 0, items.NumChildren > 0
	if in.drawn == 0 || !in.hasItems && in.drawn <= in.put {
		return in, nil // no ticket is without an item, and no item without a ticket
	}
	var list framework.Stat
	if in.tickets, list, err = segment.ListTickets(r.ctx, r.s); err != nil {
		return in, err
	}
	in.changed = list.Pzxid
	stat, err := r.s.Exists(r.ctx, segment.Dir())
	if err != nil {
		return in, err
	}
	in.put, in.closed = queuelayout.ChildrenEver(stat), stat.Version > 0
	in.items, err = segment.ListItems(r.ctx, r.s)
	return in, err
}

// recoverSegment returns a segment's orphans to the queue, and voids or watches the segment's
// missing numbers. It removes a closed and empty segment.
func (r *recoverer) recoverSegment(ctx context.Context, in segmentContents, missed map[int64]bool) error {
	var orphans []int64
	for _, k := range in.items {
		if k < in.drawn && in.tickets[k] == "" {
			orphans = append(orphans, k)
		}
	}
	if err := r.returnOrphans(in, orphans, missed); err != nil {
		return err
	}
	if in.closed {
		if len(in.items) == len(orphans) {
			r.removeIfDone(in.segment)
		}
		return nil
	}
	missing := map[int64]bool{} // numbers without an item so far; their tickets were drawn and are gone
	head, next := in.put, int64(-1)
	for k := in.put; k < in.drawn; k++ {
		if in.tickets[k] != "" {
			continue
		}
		missing[k] = true
		switch {
		case k == head:
			head++
		case next < 0:
			next = k
		}
	}
	if len(missing) == 0 {
		return nil
	}
	r.missing[in.segment] = missing
	if err := r.voidNumbers(in, in.put, head); err != nil {
		return err
	}
	if next >= 0 {
		r.tasks.Start(func() { r.watchFor(ctx, in.segment.Item(next)) })
	}
	return nil
}

// returnOrphans moves items without tickets to the lane redo, in order. It counts an attempt for
// each, unless its ticket had gone before the item was put, as far as is known. It ignores items
// that have gone elsewhere.
func (r *recoverer) returnOrphans(in segmentContents, orphans []int64, missed map[int64]bool) error {
	for some := range slices.Chunk(orphans, 100) {
		var done sync.WaitGroup
		outcomes := make([]error, len(some))
		var requests []*writeRequest
		for i, k := range some {
			data, stat, err := r.s.Get(r.ctx, in.segment.ItemNode(k))
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			claims := 1
			if missed[k] || stat.Czxid >= in.changed { // equal: one transaction has put the item and deleted the ticket
				claims = 0
			}
			nodes := r.store.nodes
			done.Add(1)
			requests = append(requests, &writeRequest{session: r.s,
				ops:   []framework.Op{framework.DeleteOp(in.segment.ItemNode(k), stat.Version), nodes.SignalLanes()},
				items: []newItem{{chain: nodes.Redo, data: countClaims(data, stat, claims)}},
				then:  func(_ []framework.OpResult, err error) { outcomes[i] = err; done.Done() }})
		}
		r.writer.addRequests(requests...)
		done.Wait()
		for _, err := range outcomes {
			var refused *framework.TxError
			switch {
			case errors.Is(err, framework.ErrBadVersion):
				r.sweepAgain()
			case err != nil && (!errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth)):
				return err
			}
		}
	}
	return nil
}

// countClaims returns an item's data with its claims counted as attempts. It returns unreadable
// data unchanged.
func countClaims(data []byte, stat framework.Stat, claims int) []byte {
	e, err := queuelayout.DecodeItem(data, stat)
	if err != nil {
		return data
	}
	if e.Header.Unseen > 0 {
		claims = 1 // Unseen subtracts it again
	}
	e.Header.Attempts += int(stat.Version) + claims - e.Header.Unseen
	e.Header.Unseen = 0
	if counted, err := e.Encode(); err == nil {
		return counted
	}
	return data
}

// watchFor sweeps again when the items come near a missing number behind waiting tickets, and after
// the connection was replaced.
func (r *recoverer) watchFor(ctx context.Context, missing queuelayout.Item) {
	defer func() {
		if ctx.Err() == nil {
			r.sweepAgain()
		}
	}()
	_, created, err := r.s.WatchExists(ctx, missing.Segment.ItemNode(missing.Number-1))
	if created != nil {
		defer created.Stop()
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return
	}
	stat, err := r.s.Exists(ctx, missing.Segment.Dir())
	if err != nil || queuelayout.ChildrenEver(stat) >= missing.Number {
		return // the item before has come and gone
	}
	select {
	case <-created.C():
	case <-ctx.Done():
	}
}

func (r *recoverer) sweepAgain() {
	select {
	case r.sweepRequested <- struct{}{}:
	default:
	}
}

// wakeIdleConsumers wakes one idle consumer for each item of the lanes without a ticket, the first
// ones first: it makes their tickets void, so that they read the lanes.
func (r *recoverer) wakeIdleConsumers() error {
	unclaimed, read := r.views.unclaimedInLanes()
	if unclaimed == 0 || read == r.wokenForRead {
		return nil
	}
	r.wokenForRead = read // the woken consumers may not have drawn yet
	in, err := r.listIdleTickets()
	if err != nil {
		return err
	}
	end := in.put
	for k := in.put; k < in.drawn && unclaimed > 0; k++ {
		if in.tickets[k] != "" {
			end = k + 1
			unclaimed--
		}
	}
	return r.voidNumbers(in, in.put, end)
}

// listIdleTickets reads the tickets of the open segment of the base chain, and then its number of
// items.
func (r *recoverer) listIdleTickets() (in segmentContents, err error) {
	for {
		var stat framework.Stat
		in = segmentContents{segment: r.openSegment}
		if in.tickets, stat, err = r.openSegment.ListTickets(r.ctx, r.s); err == nil {
			in.drawn = queuelayout.ChildrenEver(stat)
			stat, err = r.s.Exists(r.ctx, r.openSegment.Dir())
		}
		if err == nil && stat.Version == 0 {
			in.put = queuelayout.ChildrenEver(stat)
			return in, nil
		}
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return in, err
		}
		segments, err := r.store.nodes.Base.ListSegments(r.ctx, r.s) // the segment was closed
		if err != nil {
			return in, err
		}
		if len(segments) == 0 || segments[len(segments)-1].Number <= r.openSegment.Number {
			return segmentContents{}, nil
		}
		r.openSegment = segments[len(segments)-1]
	}
}

// voidBatch is how many numbers a transaction voids at most.
const voidBatch = 200

// voidNumbers makes the servers count numbers of an open segment as put. If they refuse, an item
// has come or a ticket has gone, and another sweep follows.
func (r *recoverer) voidNumbers(in segmentContents, from, to int64) error {
	for ; from < to; from += voidBatch {
		ops := []framework.Op{in.segment.CheckOpen()}
		for k := from; k < min(to, from+voidBatch); k++ {
			if ticket := in.tickets[k]; ticket != "" {
				ops = append(ops, framework.SetOp(ticket, nil, 0))
			}
			ops = append(ops, framework.CreateOp(in.segment.ItemNode(k), nil, framework.Persistent),
				framework.DeleteOp(in.segment.ItemNode(k), 0))
		}
		_, err := r.writer.writeAndWait(context.Background(),
			&writeRequest{session: r.s, requires: []precondition{leaseHeld{r.lease}}, ops: ops})
		var refused *framework.TxError
		switch {
		case errors.As(err, &refused) && refused.Path == primitives.Path(r.lease.Guard()):
			return fmt.Errorf("%w: %w", errLineLeft, err)
		case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth):
			r.sweepAgain()
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}
