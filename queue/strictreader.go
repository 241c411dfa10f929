package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// readAhead is how many items a reader asks for ahead, at least; it is more if the consumer's
// window is larger.
const readAhead = 64

// fetchedItem is an item that a reader has asked for.
type fetchedItem struct {
	id      queuelayout.Item
	path    string        // of the item's node
	claimed bool          // a consumer has claimed it before
	done    chan struct{} // closed when node is there
	node    framework.Node
}

// strictReader reads a chain's items in order, for the holder of a strict queue's lock.
type strictReader struct {
	cs     *consumerSession
	chain  queuelayout.Chain
	before queuelayout.Progress // how far the holders before this one have claimed
	// in order; takes.wakeClaimLoop is called when another one was read
	out          chan *fetchedItem
	segment      atomic.Int64  // the number of the segment that it reads
	idle         atomic.Bool   // it has asked for all items
	bytes        atomic.Int64  // of the items in out; one that is being read counts as much as the largest
	largest      atomic.Int64  // bytes of the largest item, or an estimate before the first was read
	largestKnown atomic.Bool   // an item was read
	bytesChanged chan struct{} // has a token after bytes has changed
}

func newStrictReader(cs *consumerSession, chain queuelayout.Chain, before queuelayout.Progress) *strictReader {
	r := &strictReader{cs: cs, chain: chain, before: before,
		out: make(chan *fetchedItem, max(readAhead, cs.claims.size)), bytesChanged: make(chan struct{}, 1)}
	r.largest.Store(int64(max(1, cs.settings.prefetchBytes/firstBatchReads)))
	return r
}

// readChain reads until ctx ends.
func (r *strictReader) readChain(ctx context.Context) error {
	segments, err := r.chain.ListSegments(ctx, r.cs.s)
	if err != nil {
		return err
	}
	if len(segments) == 0 { // another client is about to make the first
		return fmt.Errorf("%w: %s has no segments", framework.ErrSessionLost, r.chain.Dir)
	}
	for segment := segments[0]; ; {
		r.segment.Store(segment.Number)
		if err := r.readSegment(ctx, segment); err != nil {
			return err
		}
		next, err := r.segmentAfter(ctx, segment)
		if err != nil {
			return err
		}
		r.segment.Store(next.Number)
		r.cs.segmentPassed(segment)
		segment = next
	}
}

// readSegment reads one segment to its end: first the items in the list, then each new one by its
// number.
func (r *strictReader) readSegment(ctx context.Context, segment queuelayout.Segment) error {
	items, err := segment.ListItems(ctx, r.cs.s)
	if err != nil {
		return err
	}
	next := int64(0)
	for _, k := range items {
		if err := r.fetchItem(ctx, segment.Item(k)); err != nil {
			return err
		}
		next = k + 1
	}
	for {
		_, stat, changed, err := r.cs.s.WatchData(ctx, segment.Dir())
		if errors.Is(err, framework.ErrNoNode) {
			return nil // it was removed
		}
		if err != nil {
			return err
		}
		for put := queuelayout.ChildrenEver(stat); next < put && err == nil; next++ {
			err = r.fetchItem(ctx, segment.Item(next))
		}
		closed := stat.Version > 0
		if err == nil && !closed {
			err = r.waitForItem(ctx, segment.ItemNode(next), changed)
		}
		changed.Stop()
		if err != nil || closed {
			return err
		}
	}
}

// fetchItem requests an item once the items in out leave room.
func (r *strictReader) fetchItem(ctx context.Context, id queuelayout.Item) error {
	for r.bytes.Load() > 0 && r.bytes.Load()+r.largest.Load() > int64(r.cs.settings.prefetchBytes) {
		select {
		case <-r.bytesChanged:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f := &fetchedItem{id: id, path: id.Node(), done: make(chan struct{})}
	select {
	case r.out <- f:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	assumed := r.largest.Load()
	r.bytes.Add(assumed)
	r.cs.refs.addClaim(id.Segment)
	r.cs.reads.readAsync(f.path, func(n framework.Node) {
		f.node = n
		size := int64(len(n.Data))
		r.bytes.Add(size - assumed)
		if size > r.largest.Load() || n.Err == nil && r.largestKnown.CompareAndSwap(false, true) {
			r.largest.Store(size)
		}
		r.signalBytesChanged()
		f.claimed = n.Stat.Version > 0 || r.before.Covers(id)
		close(f.done)
		r.cs.claims.takes.wakeClaimLoop()
	})
	return nil
}

// waitForItem waits until an item exists or its segment has changed.
func (r *strictReader) waitForItem(ctx context.Context, item string, changed *framework.Watch) error {
	_, created, err := r.cs.s.WatchExists(ctx, item)
	if created != nil {
		defer created.Stop()
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	r.idle.Store(true)
	defer r.idle.Store(false)
	r.cs.claims.takes.wakeClaimLoop()
	select {
	case <-created.C():
	case <-changed.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// segmentAfter is the segment behind a closed one. It makes that segment if an operator has closed
// the last one.
func (r *strictReader) segmentAfter(ctx context.Context, segment queuelayout.Segment) (queuelayout.Segment, error) {
	for {
		segments, err := r.chain.ListSegments(ctx, r.cs.s)
		if err != nil {
			return segment, err
		}
		for _, other := range segments {
			if other.Number > segment.Number {
				return other, nil
			}
		}
		if len(segments) == 0 {
			return segment, fmt.Errorf("%w: %s has no segments", framework.ErrSessionLost, r.chain.Dir)
		}
		if err := segments[len(segments)-1].MakeNext(ctx, r.cs.s); err != nil {
			return segment, err
		}
	}
}

// itemTaken is called when the holder has taken an item.
func (r *strictReader) itemTaken(f *fetchedItem) {
	r.bytes.Add(-int64(len(f.node.Data)))
	r.signalBytesChanged()
}

// signalBytesChanged makes fetchItem check again whether there is room.
func (r *strictReader) signalBytesChanged() {
	select {
	case r.bytesChanged <- struct{}{}:
	default:
	}
}
