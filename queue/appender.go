package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// appender places a writer's new items: in the last segment of a line, or in the second at which they are due. It closes full segments.
type appender struct {
	store *store
	bound int64 // items of a segment
	tails map[itemLine]int64
	full  map[int64]bool // seconds that have as many items as a segment
}

func newAppender(st *store, bound int64) appender {
	return appender{store: st, bound: bound, tails: map[itemLine]int64{}, full: map[int64]bool{}}
}

// forget forgets all segments and seconds, after the queue was dropped.
func (a *appender) forget() {
	clear(a.tails)
	clear(a.full)
}

func (a *appender) tail(l itemLine) segmentID { return l.at(a.tails[l]) }

// addChecks adds the checks that the last segments are open, one for each line.
func (a *appender) addChecks(t *transaction, requests []*writeRequest) {
	checked := map[itemLine]bool{}
	for _, r := range requests {
		for _, item := range r.items {
			if item.delay == 0 && !checked[item.line] {
				checked[item.line] = true
				t.add(a.tail(item.line).checkOpen(), nil, a.handler(item.line, failAll))
			}
		}
	}
}

// addItems adds the creates of a request's items.
func (a *appender) addItems(t *transaction, r *writeRequest) {
	for i := range r.items {
		item := &r.items[i]
		if item.delay == 0 {
			t.created = append(t.created, createdItem{len(t.ops), item.line, 0})
			t.add(a.tail(item.line).appendOp(item.data), nil, a.handler(item.line, failRequest(r)))
			continue
		}
		if item.due.IsZero() {
			item.due = a.store.clock.Now().Add(item.delay)
		}
		second := item.due.Add(time.Second - 1).Unix()
		for a.full[second] {
			second++
		}
		dir := a.store.nodes.secondDir(second)
		t.created = append(t.created, createdItem{op: len(t.ops), second: second})
		t.add(framework.CreateOp(framework.Join(dir, itemPrefix), item.data, framework.PersistentSequential), nil, func(tx *framework.TxError) refusal {
			if errors.Is(tx.Err, framework.ErrNoNode) {
				return refusal{repair: func(ctx context.Context, s *framework.Session) error { return a.makeSecond(ctx, s, dir) }}
			}
			return refuseOnly(r, tx)
		})
	}
}

// handler finds the line's last segment if the known one was closed or removed. Other refusals go to another handler.
func (a *appender) handler(l itemLine, other refusalHandler) refusalHandler {
	return func(tx *framework.TxError) refusal {
		if errors.Is(tx.Err, framework.ErrBadVersion) || errors.Is(tx.Err, framework.ErrNoNode) {
			return refusal{repair: func(ctx context.Context, s *framework.Session) error { return a.findTail(ctx, s, l) }}
		}
		return other(tx)
	}
}

// findTail finds a line's last segment, and makes the line if it has no segments.
func (a *appender) findTail(ctx context.Context, s *framework.Session, l itemLine) error {
	if err := s.Sync(ctx, l.dir); err != nil {
		return err
	}
	segments, err := l.segments(ctx, s)
	if err != nil {
		return err
	}
	if len(segments) > 0 {
		last := segments[len(segments)-1]
		a.tails[l] = last.n
		st, err := s.Exists(ctx, last.dir())
		if err == nil && st.Version > 0 {
			err = last.makeNext(ctx, s)
		}
		if errors.Is(err, framework.ErrNoNode) {
			return nil // it was removed: the next try finds another
		}
		return err
	}
	if l == a.store.nodes.base {
		return fmt.Errorf("%w: %s has no segments", ErrNotQueue, l.dir)
	}
	ops := []framework.Op{a.store.nodes.checkExists(), framework.CreateOp(l.dir, nil, framework.Persistent)}
	if l.tickets != "" {
		ops = append(ops, framework.CreateOp(l.tickets, nil, framework.Persistent))
	}
	_, err = s.Multi(ctx, append(ops, l.at(0).makeOps()...)...)
	if errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	a.tails[l] = 0
	return err
}

// makeSecond makes the directory of a second, and that of its hour.
func (a *appender) makeSecond(ctx context.Context, s *framework.Session, second string) error {
	hour, _ := framework.Split(second)
	for _, dir := range []string{hour, second} {
		_, err := s.Multi(ctx, a.store.nodes.checkExists(), framework.CreateOp(dir, nil, framework.Container))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// noteApplied closes the segments in which an applied transaction has created an item with a number at the bound or beyond, and
// remembers the seconds that are full.
func (a *appender) noteApplied(ctx context.Context, s *framework.Session, t *transaction, results []framework.OpResult) {
	full := map[itemLine]bool{}
	for _, c := range t.created {
		if c.op >= len(results) {
			continue
		}
		_, name := framework.Split(results[c.op].Path)
		if n, ok := parseNumber(name, itemPrefix); !ok || n < a.bound-1 {
			continue
		}
		if c.second == 0 {
			full[c.line] = true
			continue
		}
		if len(a.full) > 10_000 {
			clear(a.full)
		}
		a.full[c.second] = true
	}
	for _, l := range slices.SortedFunc(maps.Keys(full), func(x, y itemLine) int { return compareItems(itemID{at: x.at(0)}, itemID{at: y.at(0)}) }) {
		if _, err := s.Multi(ctx, a.tail(l).closeOps()...); err == nil {
			a.tails[l]++
		} // else another client has closed the segment, or will
	}
}
