package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Cancel takes an item back that was put with an id (WithID). If it returns nil, the item is not
// delivered any more. If it returns ErrTaken, a consumer has the item, or has had it and is gone;
// the item goes on as if Cancel had not been called. In a strict queue that holds from the item's
// first delivery until it is acknowledged, also after a Nack; in a parallel queue a returned item
// can be cancelled.
//
// ErrDone says that the item has left the queue: it was acknowledged, cancelled, purged, or is a
// dead letter; or that it moves at this moment. framework.ErrNotFound says that the queue does not
// remember the id. If the error wraps framework.ErrOutcomeUnknown, the item may be cancelled: the
// context ended, or the servers' answer was lost. A queue that does not remember ids refuses Cancel
// with framework.ErrInvalid (see WithDedup).
//
// A cancelled item stays in its place, and counts in Len, until a consumer claims and removes it;
// until then a second Cancel returns nil, too. Cancel removes a delayed item at once. The id stays
// remembered. If several items have the id, since the first one was forgotten, Cancel cancels all
// items that no consumer has taken, and returns ErrTaken if a consumer has taken one. Cancel reads
// the items of the queue until it has found the id, some at a time: it is for rare use in long
// queues.
func (q *Queue[T]) Cancel(ctx context.Context, id string) error {
	err := checkID("Cancel", id)
	if err == nil {
		err = q.engine.checkUsable()
	}
	if err == nil {
		c := &itemCanceller{store: q.engine.store, id: id, call: uuid.NewString(), marks: map[string]markState{}}
		err = c.cancelOnSessions(ctx)
	}
	return failure.Wrap("cancel", q.Path(), err)
}

// itemCanceller is one call of Cancel. It marks an item by a node <path>/cancels/<id and time of
// put>-<call>, and then looks whether the item was claimed before: if not, each consumer that
// claims it will see the mark, and remove item and mark in one transaction. If the item was
// claimed, the canceller deletes its mark. When that mark is gone already, the item was removed
// (docs/adr/0055-cancel-by-id.md).
type itemCanceller struct {
	store *store
	id    string
	call  string
	marks map[string]markState // by the marks' names
	sent  bool                 // the removal of a delayed item was sent, and its outcome was unknown
}

// markState is what a canceller knows of its mark.
type markState int

const (
	markUnknown   markState = iota + 1 // its create was sent, and the outcome is unknown
	markMade                           // it was there, and this call has not deleted it
	markWithdrawn                      // its deletion was sent, and the outcome is unknown
)

// errItemMoved is returned when an item was not found where it was, or not at all: it may be on its
// way to another segment.
var errItemMoved = errors.New("the item has moved")

// maxCancelScans is how often Cancel looks for an item that moves.
const maxCancelScans = 3

func (c *itemCanceller) cancelOnSessions(ctx context.Context) error {
	back, scans := recipe.NewBackoff(c.store.client), 0
	for {
		err := c.store.inExisting(ctx, func(s *framework.Session) error {
			err := c.cancelOnce(ctx, s)
			if errors.Is(err, framework.ErrNoNode) && c.hasWritten() {
				// in the queue that was dropped: not to be repeated in another one
				err = fmt.Errorf("%w: %s", errUnknown, err.Error())
			}
			return err
		})
		switch {
		case errors.Is(err, errAbsent):
			err = errUnknownID
		case errors.Is(err, errItemMoved):
			if scans++; scans < maxCancelScans {
				continue
			}
			err = ErrDone
		case (failure.IsTransient(err) || isAnswerLost(err)) && back.Pause(ctx) == nil:
			continue
		}
		if err != nil && !errors.Is(err, ErrTaken) && !errors.Is(err, errUnknown) && c.hasWritten() {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return err
	}
}

// hasWritten reports whether the call may have changed the queue.
func (c *itemCanceller) hasWritten() bool { return c.sent || len(c.marks) > 0 }

// cancelOnce returns errItemMoved if the item was not found, or has moved.
func (c *itemCanceller) cancelOnce(ctx context.Context, s *framework.Session) error {
	if c.store.record().Dedup == 0 { // since the record was read, SetDedup may have changed it
		if err := c.store.readRecord(ctx, s); err != nil {
			return err
		}
		if c.store.record().Dedup == 0 {
			return fmt.Errorf("%w: Cancel: the queue does not remember ids; make it with WithDedup", errOption)
		}
	}
	items, err := c.findItems(ctx, s)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return c.missingResult(ctx, s)
	}
	var taken error
	for _, item := range items {
		switch err := c.cancelItem(ctx, s, item); {
		case errors.Is(err, ErrTaken):
			taken = err
		case err != nil:
			return err
		}
	}
	return taken
}

// findItems finds the items with the id: the delayed ones first, since these move to the chains.
func (c *itemCanceller) findItems(ctx context.Context, s *framework.Session) (found []markedItem, err error) {
	nodes := c.store.nodes
	for second, err := range nodes.DelayedSeconds(ctx, s) {
		if err != nil {
			return nil, err
		}
		if second.EndOfHour {
			continue
		}
		numbers, err := queuelayout.ListItemNumbers(ctx, s, second.Dir)
		if err != nil {
			return nil, err
		}
		some, err := c.findIn(ctx, s, second.Dir, numbers)
		if err != nil {
			return nil, err
		}
		for _, item := range some {
			item.delayed = true
			found = append(found, item)
		}
	}
	chains, err := nodes.ListChains(ctx, s)
	if err != nil {
		return nil, err
	}
	slices.Reverse(chains) // returned items are in the last one then: they come from the others
	for segment, err := range queuelayout.EachSegment(ctx, s, chains...) {
		if err != nil {
			return nil, err
		}
		some, err := c.findIn(ctx, s, segment.Dir(), segment.Items)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// markedItem is an item that Cancel has found.
type markedItem struct {
	path    string
	mark    string
	version int32
	delayed bool
}

// findIn finds the items with the id in a directory.
func (c *itemCanceller) findIn(ctx context.Context, s *framework.Session, dir string,
	numbers []int64) (found []markedItem, err error) {
	for some := range slices.Chunk(numbers, maxBatchReads) {
		paths := make([]string, len(some))
		for i, k := range some {
			paths[i] = queuelayout.ItemPath(dir, k)
		}
		read, err := s.GetAll(ctx, paths...)
		if err != nil {
			return nil, err
		}
		for i, n := range read {
			e, err := queuelayout.DecodeItem(n.Data, n.Stat)
			if n.Err == nil && err == nil && e.Header.ID == c.id {
				mark := c.store.nodes.CancelsDir + "/" + e.Header.CancelPrefix() + c.call
				found = append(found, markedItem{path: paths[i], mark: mark, version: n.Stat.Version})
			}
		}
	}
	return found, nil
}

// cancelItem cancels one item: nil, ErrTaken, or errItemMoved if it has moved.
func (c *itemCanceller) cancelItem(ctx context.Context, s *framework.Session, item markedItem) error {
	if item.delayed {
		_, err := s.Multi(ctx, append([]framework.Op{framework.DeleteOp(item.path, item.version)},
			c.store.countLeaving()...)...)
		return c.checkRefusal(err, func() { c.sent = true })
	}
	if c.marks[item.mark] != markMade {
		cancels := c.store.nodes.CancelsDir
		_, err := s.Multi(ctx, framework.CheckOp(item.path, framework.AnyVersion),
			framework.SetOp(cancels, nil, framework.AnyVersion),
			framework.CreateOp(item.mark, nil, framework.Persistent))
		var tx *framework.TxError
		if errors.As(err, &tx) && tx.Index == 1 && errors.Is(err, framework.ErrNoNode) { // the first call of Cancel
			_, err = s.Multi(ctx, c.store.nodes.CheckExists(), framework.CreateOp(cancels, nil, framework.Persistent))
			if err == nil || errors.Is(err, framework.ErrNodeExists) {
				return c.cancelItem(ctx, s, item)
			}
			return err
		}
		if errors.Is(err, framework.ErrNodeExists) { // the reply to an earlier try was lost
			err = nil
		}
		if err := c.checkRefusal(err, func() { c.marks[item.mark] = markUnknown }); err != nil {
			return err
		}
		c.marks[item.mark] = markMade
	}
	claimed, err := c.wasClaimed(ctx, s, c.store.nodes.ItemOf(item.path))
	if err != nil {
		return err
	}
	if claimed {
		return c.withdrawMark(ctx, s, item.mark, ErrTaken)
	}
	delete(c.marks, item.mark)
	return nil
}

// checkRefusal returns errItemMoved for a transaction that was refused because its first operation
// did not find the item. It calls unknown if the outcome is unknown.
func (c *itemCanceller) checkRefusal(err error, unknown func()) error {
	var tx *framework.TxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tx) && tx.Index == 0 && recipe.IsConflict(err):
		return errItemMoved
	case !errors.As(err, &tx):
		unknown()
	}
	return err
}

// wasClaimed reports whether an item was claimed at any time before. The item's mark exists, so a
// consumer that claims the item later sees the mark.
func (c *itemCanceller) wasClaimed(ctx context.Context, s *framework.Session, item queuelayout.Item) (bool, error) {
	nodes := c.store.nodes
	if !c.store.record().IsStrict() {
		stat, err := s.Exists(ctx, item.Segment.TicketDir())
		if errors.Is(err, framework.ErrNoNode) { // the segment was removed, with all its items
			return true, nil
		}
		return item.Number < queuelayout.ChildrenEver(stat), err
	}
	read, err := s.GetAll(ctx, nodes.ClaimedNode, item.Node())
	if err != nil {
		return false, err
	}
	progress, node := read[0], read[1]
	if errors.Is(progress.Err, framework.ErrNoNode) {
		return false, nil
	}
	if progress.Err != nil {
		return false, progress.Err
	}
	p, err := queuelayout.DecodeProgress(progress.Data)
	return node.Err != nil || node.Stat.Version > 0 || p.Covers(item), err
}

// withdrawMark deletes a mark of this call, and returns the given error. If a consumer has removed
// the mark, and with it the item, it returns nil.
func (c *itemCanceller) withdrawMark(ctx context.Context, s *framework.Session, mark string, withdrawn error) error {
	_, err := s.Multi(ctx, framework.DeleteOp(mark, framework.AnyVersion))
	var tx *framework.TxError
	switch {
	case err == nil:
		delete(c.marks, mark)
		return withdrawn
	case errors.Is(err, framework.ErrNoNode):
		if c.marks[mark] != markMade {
			return fmt.Errorf("%w: the mark has gone", errUnknown)
		}
		delete(c.marks, mark)
		return nil
	case !errors.As(err, &tx):
		c.marks[mark] = markWithdrawn
	}
	return err
}

// missingResult returns the result of Cancel for an item that it did not find in the queue.
func (c *itemCanceller) missingResult(ctx context.Context, s *framework.Session) error {
	for mark := range c.marks {
		return c.withdrawMark(ctx, s, mark, ErrDone)
	}
	if c.sent {
		return errUnknown
	}
	nodes := c.store.nodes
	data, _, err := s.Get(ctx, nodes.IDsDir)
	if errors.Is(err, framework.ErrNoNode) {
		return errUnknownID
	}
	if err != nil {
		return err
	}
	bucket, err := queuelayout.DecodeBucket(data)
	if err != nil {
		return failure.Wrap("read", nodes.IDsDir, err)
	}
	read, err := s.GetAll(ctx, nodes.IDNode(bucket, c.id), nodes.IDNode(max(0, bucket-1), c.id))
	if err != nil {
		return err
	}
	if read[0].Err != nil && read[1].Err != nil {
		return errUnknownID
	}
	return errItemMoved // it may move
}
