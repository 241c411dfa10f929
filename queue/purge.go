package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// Purge removes the items that are in the queue when it is called, also those that are being worked on, whose
// acknowledgement then returns ErrLost, and those for later; not the dead letters. It returns how many it has
// removed. Items that are put, or come due, while it runs may be removed or stay. When it returns an error some may be left.
func (q *Queue[T]) Purge(ctx context.Context) (n int, err error) {
	s, err := q.core.lookSession(ctx)
	if err == nil {
		n, err = q.core.purgeAll(ctx, s)
	}
	return n, framework.Wrap("purge", q.core.path, ignoreAbsent(err))
}

// mostReturns bounds how often a Purge looks for items that were given back, so that consumers that give items back all the
// time do not keep it.
const mostReturns = 20

// purgeAll empties all lines and what is for later, and then, until there is nothing, where consumers have put what they gave back
// meanwhile: such an item may have left a line before that was emptied.
func (q *engine) purgeAll(ctx context.Context, s *framework.Session) (n int, err error) {
	lanes, err := q.listLanes(ctx, s)
	if err != nil {
		return 0, err
	}
	lines := append(lanes, q.base)
	for round := range mostReturns {
		removed := 0
		for _, l := range lines {
			k, err := q.purgeLine(ctx, s, l)
			removed += k
			if err != nil && !(round > 0 && errors.Is(err, framework.ErrNoNode)) { // nothing was ever given back
				return n + removed, err
			}
		}
		k, err := q.purgeLater(ctx, s)
		removed += k
		n += removed
		if err != nil || round > 0 && removed == 0 {
			return n, err
		}
		lines = []itemLine{q.laneNamed(redoLane)}
	}
	return n, nil
}

// PurgeDead removes the dead letters and returns how many. Of several callers at once, two may count the same letter if an answer is lost.
func (q *Queue[T]) PurgeDead(ctx context.Context) (n int, err error) {
	err = q.core.eachDead(ctx, func(s *framework.Session, node string, _ []byte, st framework.Stat) error {
		err := s.Delete(ctx, node, st.Version)
		if errors.Is(err, framework.ErrOutcomeUnknown) {
			if _, gone := s.Exists(ctx, node); errors.Is(gone, framework.ErrNoNode) {
				err = nil // no other letter ever has this name
			}
		}
		if err == nil {
			n++
		}
		if errors.Is(err, framework.ErrNoNode) {
			return nil
		}
		return err
	})
	return n, framework.Wrap("purge", q.core.path, err)
}

// purgeLine closes a line's last segment, so that its consumers go on to the next, and empties all before that.
func (q *engine) purgeLine(ctx context.Context, s *framework.Session, l itemLine) (n int, err error) {
	segments, err := l.segments(ctx, s)
	if err != nil || len(segments) == 0 {
		return 0, err
	}
	last := segments[len(segments)-1]
	if _, err := s.Multi(ctx, l.rollOps(last)...); err != nil && !errors.Is(err, framework.ErrBadVersion) && !errors.Is(err, framework.ErrNoNode) {
		return 0, err
	}
	for _, seg := range segments {
		removed, err := q.emptyDir(ctx, s, l.segment(seg), q.purgeMarkOps())
		n += removed
		if err != nil {
			return n, err
		}
		_ = l.removeSegment(ctx, s, seg) // refused while consumers hold tickets
	}
	return n, nil
}

func (q *engine) purgeLater(ctx context.Context, s *framework.Session) (n int, err error) {
	hours, err := numbersIn(ctx, s, q.below(laterDir), "")
	if err != nil {
		return 0, err
	}
	for _, hour := range hours {
		seconds, err := numbersIn(ctx, s, framework.Join(q.below(laterDir), number(hour)), "")
		if err != nil {
			return n, err
		}
		for _, t := range seconds {
			removed, err := q.emptyDir(ctx, s, q.secondDir(t), nil) // nobody has read them
			n += removed
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// emptyDir removes the items of a directory, some at a time, or one by one where somebody else is at work. Operations go with
// each transaction.
func (q *engine) emptyDir(ctx context.Context, s *framework.Session, dir string, with []framework.Op) (n int, err error) {
	items, err := numbersIn(ctx, s, dir, itemPrefix)
	for len(items) > 0 && err == nil {
		some := items[:min(len(items), 400)]
		items = items[len(some):]
		ops := slices.Clone(with)
		for _, k := range some {
			ops = append(append(ops, framework.DeleteOp(framework.Join(dir, itemPrefix+number(k)), framework.AnyVersion)), q.leaveOps()...)
		}
		if _, err = s.Multi(ctx, ops...); err == nil {
			n += len(some)
			continue
		}
		var tx *framework.TxError
		if !errors.As(err, &tx) {
			break
		}
		err = nil
		for _, k := range some {
			removed, e := q.removeItem(ctx, s, framework.Join(dir, itemPrefix+number(k)), with)
			if removed {
				n++
			}
			if e != nil {
				return n, e
			}
		}
	}
	return n, err
}

// removeItem removes one item; false if it has gone.
func (q *engine) removeItem(ctx context.Context, s *framework.Session, item string, with []framework.Op) (bool, error) {
	_, err := s.Multi(ctx, slices.Concat([]framework.Op{framework.DeleteOp(item, framework.AnyVersion)}, q.leaveOps(), with)...)
	var tx *framework.TxError
	if errors.As(err, &tx) && tx.Index == 0 && errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}
