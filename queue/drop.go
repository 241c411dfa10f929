package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// Drop removes the queue: its items, also those for later and those that are being worked on, its dead letters, its ids and
// its record. It is no error if there is none. When it returns an error, whoever uses the queue next goes on with the removal.
//
// Whoever uses the path afterwards makes the queue anew, as its options say and else as it was known: also a Take that waits.
// To change what is stored with the queue, close all that use it first, or see SetCapacity and SetDedup. What was on its way may end with ErrUnknown.
func (q *Queue[T]) Drop(ctx context.Context) error {
	err := q.core.usable()
	if err == nil {
		err = q.core.drop(ctx)
	}
	return framework.Wrap("drop", q.core.path, err)
}

// drop marks the record, so that nobody's writer makes a marker any more, and removes the markers in the same transaction:
// nothing is put from then on. Then it removes everything. The mark has a node of its own, which all removals check. So they cannot reach a queue that was
// made anew meanwhile.
func (q *core) drop(ctx context.Context) error {
	for marked := false; ; {
		s, err := q.client.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Sync(ctx, q.path); err != nil {
			return err
		}
		data, st, err := s.Get(ctx, q.path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(data) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if !r.Dropped {
			if marked {
				return nil // somebody else has finished, and has made the queue anew
			}
			r.Dropped = true
			if data, err = r.encode(); err != nil {
				return err
			}
			var ops []framework.Op
			if ops, err = q.removeMarkers(ctx, s); err != nil {
				return err
			}
			_, err = s.Multi(ctx, append(ops, framework.SetOp(q.path, data, st.Version),
				framework.CreateOp(q.below(droppedNode), nil, framework.Persistent))...)
		}
		if err == nil {
			marked = true
			err = q.finishDrop(ctx, s)
		}
		if err == nil || !errors.Is(err, errAgain) && !framework.IsTransient(err) && !refusedByOthers(err) {
			return err
		}
	}
}

// removeMarkers are the operations that remove the markers of writers, up to some hundred.
func (q *core) removeMarkers(ctx context.Context, s *framework.Session) (ops []framework.Op, err error) {
	writers, _, err := s.Children(ctx, q.below(writersDir))
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	for _, name := range writers[:min(len(writers), 300)] {
		marker := framework.Join(q.below(writersDir), name)
		children, _, err := s.Children(ctx, marker)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			ops = append(ops, framework.DeleteOp(framework.Join(marker, child), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(marker, framework.AnyVersion))
	}
	return ops, nil
}

// finishDrop removes a queue whose record is marked: errAgain when others have interfered.
func (q *core) finishDrop(ctx context.Context, s *framework.Session) error {
	q.stale.Store(true)
	names, _, err := s.Children(ctx, q.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	mark := q.below(droppedNode)
	names = slices.DeleteFunc(names, func(name string) bool { return name == droppedNode })
	slices.SortFunc(names, func(a, b string) int { return rankOf(b) - rankOf(a) })
	for _, name := range names {
		if err := removeTree(ctx, s, framework.Join(q.path, name), framework.CheckOp(mark, framework.AnyVersion)); err != nil {
			return again(err)
		}
	}
	_, err = s.Multi(ctx, framework.DeleteOp(mark, framework.AnyVersion), framework.DeleteOp(q.path, framework.AnyVersion))
	return again(err)
}

// rankOf puts the markers of writers first.
func rankOf(name string) int {
	if name == writersDir {
		return 1
	}
	return 0
}

// again is errAgain if somebody else has interfered.
func again(err error) error {
	if refusedByOthers(err) {
		return errAgain
	}
	return err
}

func refusedByOthers(err error) bool {
	return errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNotEmpty) || errors.Is(err, framework.ErrBadVersion) ||
		errors.Is(err, framework.ErrNodeExists)
}

// otherwise is what a shift ends with that has missed something: errStale if the queue that it began with, born then, was
// made anew. The record's watch may have read the new one already.
func (q *core) otherwise(s *framework.Session, born int64, missed error) error {
	q.stale.Store(true)
	if err := q.find(q.work, s); err != nil {
		return err
	}
	if now := q.stored().born; now == 0 || now != born { // it is 0 if find has just made the queue
		return fmt.Errorf("%w: %w", errStale, missed)
	}
	return missed
}

// watchRecord follows the record until ctx ends: what is stored anew counts from then on. Where the queue was dropped, or
// made anew, it ends the shift.
func (q *core) watchRecord(ctx context.Context, s *framework.Session) error {
	for {
		_, _, changed, err := s.WatchData(ctx, q.path)
		if err == nil {
			err = q.read(ctx, s)
		}
		if err != nil {
			if changed != nil {
				changed.Stop()
			}
			q.stale.Store(true)
			return err
		}
		select {
		case <-changed.C():
		case <-ctx.Done():
			changed.Stop()
			return context.Cause(ctx)
		}
	}
}
