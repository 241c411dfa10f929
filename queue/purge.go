package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// Purge removes the items that are in the queue when it is called: also those that consumers have
// (their acknowledgement then returns ErrLost), and delayed ones; not the dead letters. It returns
// how many it has removed. A consumer of a parallel queue may still hand out a removed item that it
// had claimed ahead (WithPrefetch). Items that are put, or come due, while it runs may be removed
// or stay. If it returns an error, some items may be left: those that consumers have
// given back all the time, too.
func (q *Queue[T]) Purge(ctx context.Context) (n int, err error) {
	err = q.engine.store.inExisting(ctx, func(s *framework.Session) error {
		k, err := q.engine.store.purgeAll(ctx, s)
		n += k
		return err
	})
	return n, failure.Wrap("purge", q.Path(), ignoreAbsent(err))
}

// PurgeDead removes all dead letters, and returns their number. If several callers run at once, two
// may count the same letter after a lost reply.
func (q *Queue[T]) PurgeDead(ctx context.Context) (n int, err error) {
	return q.purgeLetters(ctx, q.engine.store.deadItems(ctx))
}

// PurgeLetters is PurgeDead for the dead letters at the given nodes (DeadLetter.Node). It leaves
// out nodes at which there is no dead letter.
func (q *Queue[T]) PurgeLetters(ctx context.Context, nodes ...string) (n int, err error) {
	return q.purgeLetters(ctx, q.engine.store.deadItemsAt(ctx, nodes))
}

func (q *Queue[T]) purgeLetters(ctx context.Context, letters iter.Seq2[readItem, error]) (n int, err error) {
	for item, err := range letters {
		if err == nil {
			err = item.session.Delete(ctx, item.path, item.node.Stat.Version)
		}
		if errors.Is(err, framework.ErrOutcomeUnknown) {
			if _, gone := item.session.Exists(ctx, item.path); errors.Is(gone, framework.ErrNoNode) {
				err = nil // a letter's name is given once
			}
		}
		if err == nil {
			n++
		} else if !errors.Is(err, framework.ErrNoNode) {
			return n, failure.Wrap("purge", q.Path(), err)
		}
	}
	return n, nil
}

// maxPurgeRounds bounds how often a Purge looks for returned items, so that it ends even if
// consumers return items all the time.
const maxPurgeRounds = 20

// purgeAll empties all chains and removes the delayed items. Meanwhile consumers may return items
// to the lane of returned items or to the delayed ones, from chains that are not empty yet. So
// purgeAll repeats both in further rounds. It ends after a round that has removed nothing and whose
// new segment of the lane is still unused: an item may have moved from the segment that the round
// has closed to the new one.
func (store *store) purgeAll(ctx context.Context, s *framework.Session) (n int, err error) {
	chains, err := store.nodes.ListChains(ctx, s)
	if err != nil {
		return 0, err
	}
	removed := 0
	for round := range maxPurgeRounds {
		removed = 0
		var next *queuelayout.Segment
		for _, chain := range chains {
			k, made, err := store.purgeChain(ctx, s, chain)
			removed, next = removed+k, made
			if err != nil && !(round > 0 && errors.Is(err, framework.ErrNoNode)) {
				// no consumer has ever returned an item
				return n + removed, err
			}
		}
		k, err := store.purgeDelayed(ctx, s)
		removed += k
		n += removed
		if err != nil {
			return n, err
		}
		if round > 0 && removed == 0 {
			if used, err := wasUsed(ctx, s, next); !used || err != nil {
				return n, err
			}
		}
		chains = []queuelayout.Chain{store.nodes.Redo}
	}
	return n, fmt.Errorf("consumers have given items back in each of %d rounds, %d in the last one, and there "+
		"may be more: pause the queue and purge it again", maxPurgeRounds, removed)
}

// purgeChain closes a chain's last segment, so that its consumers continue in the next one, and
// empties all segments up to the closed one. It returns the next one, or nil if the chain has no
// segments.
func (store *store) purgeChain(ctx context.Context, s *framework.Session,
	l queuelayout.Chain) (n int, next *queuelayout.Segment, err error) {
	segments, err := l.ListSegments(ctx, s)
	if err != nil || len(segments) == 0 {
		return 0, nil, err
	}
	last := segments[len(segments)-1]
	if _, err := s.Multi(ctx, last.CloseOps()...); err != nil && !errors.Is(err, framework.ErrBadVersion) &&
		!errors.Is(err, framework.ErrNoNode) {
		return 0, nil, err
	}
	for _, segment := range segments {
		removed, err := store.emptyDir(ctx, s, segment.Dir(), store.purgeMarkOps())
		n += removed
		if err != nil {
			return n, nil, err
		}
		_ = segment.RemoveIfEmpty(ctx, s) // refused while consumers have tickets
	}
	made := last.Next()
	return n, &made, nil
}

// wasUsed reports whether the segment, which existed, has ever had an item. A segment is removed
// after it was used.
func wasUsed(ctx context.Context, s *framework.Session, segment *queuelayout.Segment) (bool, error) {
	if segment == nil {
		return false, nil
	}
	stat, err := s.Exists(ctx, segment.Dir())
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	return stat.Cversion > 0, err
}

// purgeMarkOps go with the removal of unclaimed items of a strict queue: the holder of its lock may
// have read these items, and must not claim them any more.
func (store *store) purgeMarkOps() []framework.Op {
	if !store.record().IsStrict() {
		return nil
	}
	return []framework.Op{framework.SetOp(store.nodes.ItemsDir, nil, framework.AnyVersion)}
}

func (store *store) purgeDelayed(ctx context.Context, s *framework.Session) (n int, err error) {
	for second, err := range store.nodes.DelayedSeconds(ctx, s) {
		removed := 0
		if err == nil && !second.EndOfHour {
			removed, err = store.emptyDir(ctx, s, second.Dir, nil)
		}
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// emptyDir removes the items of a directory, some at a time, or one by one if other clients change
// them meanwhile. The operations of with go with each transaction.
func (store *store) emptyDir(ctx context.Context, s *framework.Session, dir string,
	with []framework.Op) (n int, err error) {
	items, err := queuelayout.ListItemNumbers(ctx, s, dir)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(items, 400) {
		ops := slices.Clone(with)
		for _, k := range some {
			ops = append(append(ops, framework.DeleteOp(queuelayout.ItemPath(dir, k),
				framework.AnyVersion)), store.countLeaving()...)
		}
		_, err := s.Multi(ctx, ops...)
		var tx *framework.TxError
		switch {
		case err == nil:
			n += len(some)
			continue
		case !errors.As(err, &tx):
			return n, err
		}
		for _, k := range some {
			removed, err := store.removeItem(ctx, s, queuelayout.ItemPath(dir, k), with)
			if removed {
				n++
			}
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// removeItem removes one item. It returns false if the item has gone.
func (store *store) removeItem(ctx context.Context, s *framework.Session, item string,
	with []framework.Op) (bool, error) {
	_, err := s.Multi(ctx, slices.Concat([]framework.Op{framework.DeleteOp(item, framework.AnyVersion)},
		store.countLeaving(), with)...)
	var tx *framework.TxError
	if errors.As(err, &tx) && tx.Index == 0 && errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}
