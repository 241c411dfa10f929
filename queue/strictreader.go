package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
)

// readAhead is how many items a reader has asked for or keeps at least, or as many as a consumer's window has.
const readAhead = 64

// fetched is an item that a reader has asked for.
type fetched struct {
	path    string
	at      segmentID
	k       int64
	claimed bool          // before
	done    chan struct{} // closed when the answer is there
	framework.Node
}

// strictReader reads a line's items in order, for the one consumer of a strict queue.
type strictReader struct {
	sh     *consumerSession
	line   itemLine
	before claimProgress // of the holders before this one
	out    chan *fetched // in order; the consumer is kicked when there is another
	at     atomic.Int64  // the segment
	idle   atomic.Bool   // it has asked for all that there is
	bytes  atomic.Int64  // of what the consumer has not taken: of what is being read, the largest item's each
	most   atomic.Int64  // the largest item's, or what is taken for that before the first was read
	known  atomic.Bool   // an item was read
	less   chan struct{} // has room; bytes has changed
}

// readLine reads until ctx ends.
func (r *strictReader) readLine(ctx context.Context) error {
	segments, err := r.line.segments(ctx, r.sh.s)
	if err != nil {
		return err
	}
	if len(segments) == 0 { // somebody is about to make the first
		return fmt.Errorf("%w: %s has no segments", framework.ErrSessionLost, r.line.dir)
	}
	for seg := segments[0]; ; {
		r.at.Store(seg)
		if err := r.readSegment(ctx, seg); err != nil {
			return err
		}
		next, err := r.nextSegment(ctx, seg)
		if err != nil {
			return err
		}
		r.at.Store(next)
		r.sh.segmentPassed(segmentID{r.line, seg})
		seg = next
	}
}

// nextSegment is the segment after one that was closed. It is made if there is none, since the segment was closed by hand.
func (r *strictReader) nextSegment(ctx context.Context, seg int64) (int64, error) {
	for {
		segments, err := r.line.segments(ctx, r.sh.s)
		if err != nil {
			return 0, err
		}
		for _, n := range segments {
			if n > seg {
				return n, nil
			}
		}
		if len(segments) == 0 {
			return 0, fmt.Errorf("%w: %s has no segments", framework.ErrSessionLost, r.line.dir)
		}
		if err := r.line.openAfter(ctx, r.sh.s, segments[len(segments)-1]); err != nil {
			return 0, err
		}
	}
}

// readSegment reads one segment to its end: what is listed, then by number what comes.
func (r *strictReader) readSegment(ctx context.Context, seg int64) error {
	items, err := r.line.items(ctx, r.sh.s, seg)
	if err != nil {
		return err
	}
	next := int64(0)
	for _, k := range items {
		if err := r.fetchItem(ctx, seg, k); err != nil {
			return err
		}
		next = k + 1
	}
	for {
		closed, put, changed, err := r.watchSegment(ctx, seg)
		if err != nil || closed == gone {
			return err
		}
		for ; next < put; next++ {
			if err := r.fetchItem(ctx, seg, next); err != nil {
				changed.Stop()
				return err
			}
		}
		if closed == shut {
			changed.Stop()
			return nil
		}
		err = r.waitForItem(ctx, r.line.item(seg, next), changed)
		changed.Stop()
		if err != nil {
			return err
		}
	}
}

// segmentState is a segment's.
type segmentState int

const (
	taking segmentState = iota // items
	shut
	gone
)

// watchSegment reads a segment and watches for its end.
func (r *strictReader) watchSegment(ctx context.Context, seg int64) (segmentState, int64, *framework.Watch, error) {
	_, st, changed, err := r.sh.s.WatchData(ctx, r.line.segment(seg))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return gone, 0, nil, nil
	case err != nil:
		return gone, 0, nil, err
	case st.Version > 0:
		return shut, childrenEver(st), changed, nil
	}
	return taking, childrenEver(st), changed, nil
}

// waitForItem waits until an item is there or its segment has changed.
func (r *strictReader) waitForItem(ctx context.Context, item string, changed *framework.Watch) error {
	_, there, err := r.sh.s.WatchExists(ctx, item)
	if there != nil {
		defer there.Stop()
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	r.idle.Store(true)
	defer r.idle.Store(false)
	r.sh.c.kick()
	select {
	case <-there.C():
	case <-changed.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// itemTaken takes in that the consumer has taken an item.
func (r *strictReader) itemTaken(f *fetched) {
	r.bytes.Add(-int64(len(f.Data)))
	r.wakeFetch()
}

// wakeFetch has fetch look again whether there is room.
func (r *strictReader) wakeFetch() {
	select {
	case r.less <- struct{}{}:
	default:
	}
}

// fetchItem asks for an item, once there is room for it.
func (r *strictReader) fetchItem(ctx context.Context, seg, k int64) error {
	for r.bytes.Load() > 0 && r.bytes.Load()+r.most.Load() > int64(r.sh.q.prefetchBytes) {
		select {
		case <-r.less:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f := &fetched{path: r.line.item(seg, k), at: segmentID{r.line, seg}, k: k, done: make(chan struct{})}
	select {
	case r.out <- f:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	assumed := r.most.Load()
	r.bytes.Add(assumed)
	r.sh.stock.addRef(f.at)
	r.sh.reads.readAsync(f.path, func(n framework.Node) {
		f.Node = n
		size := int64(len(n.Data))
		r.bytes.Add(size - assumed)
		if size > r.most.Load() || n.Err == nil && r.known.CompareAndSwap(false, true) {
			r.most.Store(size)
		}
		r.wakeFetch()
		f.claimed = n.Stat.Version > 0 || r.before.covers(f.at, f.k)
		close(f.done)
		r.sh.c.kick()
	})
	return nil
}
