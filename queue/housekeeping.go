package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// newHousekeeping returns the tasks of the first consumer in line: moving delayed items, and
// removing old dead letters. Each runs until its context ends, and then returns an error.
func newHousekeeping(cs *consumerSession) []func(context.Context) error {
	mover := delayMover{cs.store, cs.writer, cs.s, cs.reads}
	tasks := []func(context.Context) error{mover.moveUntilEnd}
	if cs.settings.deadExpiry > 0 {
		tasks = append(tasks, deadRemover{cs.store, cs.writer, cs.s, cs.settings.deadExpiry}.removeUntilEnd)
	}
	return tasks
}

// delayMover moves delayed items when they are due. They are in <path>/later/<hour>/<second>/i-#,
// by the ensemble's clock, so that each list is short. A put of a delayed item sets the node
// <path>/later, which makes the mover look again.
type delayMover struct {
	store  *store
	writer *writer
	s      *framework.Session
	reads  *batchReader
}

// moveUntilEnd moves delayed items until ctx ends.
func (m delayMover) moveUntilEnd(ctx context.Context) error {
	if err := m.writer.readClock(ctx, m.s); err != nil {
		return err
	}
	for {
		_, _, more, err := m.s.WatchData(ctx, m.store.nodes.DelayedDir)
		if err != nil {
			return err
		}
		wait, err := m.moveDue(ctx)
		if err != nil {
			more.Stop()
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-more.C():
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		more.Stop()
		if err != nil {
			return err
		}
	}
}

// idleDelay is how long the mover waits at most for another delayed item before it looks again.
const idleDelay = 24 * time.Hour

// moveDue moves all items that are due, and returns how long the next one has to wait.
func (m delayMover) moveDue(ctx context.Context) (time.Duration, error) {
	for second, err := range m.store.nodes.DelayedSeconds(ctx, m.s) {
		if err != nil {
			return 0, err
		}
		if !second.EndOfHour {
			if wait := time.Unix(second.Unix, 0).Sub(m.store.clock.Now()); wait > 0 {
				return wait, nil
			}
			items, err := queuelayout.ListItemNumbers(ctx, m.s, second.Dir)
			if err != nil {
				return 0, err
			}
			for some := range slices.Chunk(items, moveBatch) {
				if err := m.moveItems(ctx, second.Dir, some); err != nil {
					return 0, err
				}
			}
		}
		if err := m.s.DeleteIfPresent(ctx, second.Dir); err != nil && !errors.Is(err, framework.ErrNotEmpty) {
			return 0, err
		}
	}
	return idleDelay, nil
}

// moveBatch is how many items are read, and moved, at a time.
const moveBatch = 64

// moveItems puts items where they belong now, in order: at the end, into their lanes, or first if
// they were given back. It passes over items that are gone, or that another consumer moves
// meanwhile.
func (m delayMover) moveItems(ctx context.Context, dir string, items []int64) error {
	read := make([]chan framework.Node, len(items))
	for i, k := range items {
		answer := make(chan framework.Node, 1)
		read[i] = answer
		m.reads.readAsync(queuelayout.ItemPath(dir, k), func(n framework.Node) { answer <- n })
	}
	var requests []*writeRequest
	moved := make(chan error, len(items))
	for i, k := range items {
		n := <-read[i] // comes at the end of the consumer session at the latest
		if errors.Is(n.Err, framework.ErrNoNode) {
			continue
		}
		if n.Err != nil {
			return n.Err
		}
		r := m.moveRequest(queuelayout.ItemPath(dir, k), n)
		r.then = func(_ []framework.OpResult, err error) { moved <- err }
		requests = append(requests, r)
	}
	m.writer.addRequests(requests...)
	for range requests {
		select {
		case err := <-moved:
			var tx *framework.TxError
			if err != nil && !(errors.As(err, &tx) && errors.Is(err, framework.ErrNoNode)) {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// moveRequest moves an item that is due. An item that cannot be read goes to the end, and from
// there to the dead letters.
func (m delayMover) moveRequest(item string, n framework.Node) *writeRequest {
	e, err := queuelayout.DecodeItem(n.Data, n.Stat)
	to, ops := putTarget(m.store.nodes, e.Header.Priority, 0)
	if e.Header.Attempts > 0 {
		to, ops = newItem{chain: m.store.nodes.Redo}, []framework.Op{m.store.nodes.SignalLanes()}
	}
	to.data = n.Data
	if err == nil {
		if data, err := e.Encode(); err == nil {
			to.data = data // with the time of its put
		}
	}
	return &writeRequest{session: m.s, ops: append(ops, framework.DeleteOp(item, n.Stat.Version)), items: []newItem{to}}
}

// deadRemover removes dead letters that are older than expiry.
type deadRemover struct {
	store  *store
	writer *writer
	s      *framework.Session
	expiry time.Duration
}

// removeUntilEnd removes old dead letters until ctx ends.
func (d deadRemover) removeUntilEnd(ctx context.Context) error {
	if err := d.writer.readClock(ctx, d.s); err != nil {
		return err
	}
	for {
		wait, err := d.removeExpired(ctx)
		if err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const (
	maxExpiredRemoved = 500         // dead letters that a round removes
	expiredBatch      = 100         // dead letters that a transaction removes
	expiredPause      = time.Second // until the next round if there are more
)

// removeExpired removes the oldest dead letters, and returns how long to wait. They are in the
// order in which they were buried: the first one that has not expired ends the round.
func (d deadRemover) removeExpired(ctx context.Context) (time.Duration, error) {
	removed := 0
	for segment, err := range queuelayout.EachSegment(ctx, d.s, d.store.nodes.Dead) {
		if err != nil {
			return 0, err
		}
		for some := range slices.Chunk(segment.Items, expiredBatch) {
			wait, err := d.removeSome(ctx, segment.Segment, some)
			if err != nil || wait > 0 {
				return wait, err
			}
			if removed += len(some); removed >= maxExpiredRemoved {
				return expiredPause, nil
			}
		}
		if !segment.Last {
			_ = segment.RemoveIfEmpty(ctx, d.s) // refused if it is open or not empty
		}
	}
	return d.expiry, nil // of the dead letters that are buried from now on
}

// removeSome removes the expired dead letters among these. It returns how long to wait until the
// next one expires, or 0 if all had expired.
func (d deadRemover) removeSome(ctx context.Context, segment queuelayout.Segment,
	items []int64) (wait time.Duration, err error) {
	var ops []framework.Op
	for _, k := range items {
		stat, err := d.s.Exists(ctx, segment.ItemNode(k))
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if wait = stat.Ctime.Add(d.expiry).Sub(d.store.clock.Now()); wait > 0 {
			break
		}
		ops = append(ops, framework.DeleteOp(segment.ItemNode(k), stat.Version))
	}
	if len(ops) == 0 {
		return max(0, wait), nil
	}
	_, err = d.writer.writeAndWait(ctx, &writeRequest{session: d.s, ops: ops})
	var refused *framework.TxError
	if errors.As(err, &refused) && errors.Is(err, framework.ErrNoNode) { // one was requeued or removed meanwhile
		return expiredPause, nil
	}
	return max(0, wait), err
}
