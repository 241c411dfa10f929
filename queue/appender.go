package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// segmentAppender appends a writer's new items: to the last segment of a chain, or to the second at
// which they are due. It closes full segments.
type segmentAppender struct {
	store        *store
	segmentSize  int64 // items of a segment
	lastSegments map[queuelayout.Chain]int64
	full         map[int64]bool // seconds of delayed items that have segmentSize items
}

func newAppender(store *store, segmentSize int64) segmentAppender {
	return segmentAppender{store: store, segmentSize: segmentSize, lastSegments: map[queuelayout.Chain]int64{},
		full: map[int64]bool{}}
}

// forgetSegments forgets all segments and seconds, after the queue was dropped.
func (a *segmentAppender) forgetSegments() {
	clear(a.lastSegments)
	clear(a.full)
}

// addChecks adds the checks that the last segments are open, one for each chain.
func (a *segmentAppender) addChecks(t *transaction, requests []*writeRequest) {
	checked := map[queuelayout.Chain]bool{}
	for _, r := range requests {
		for _, item := range r.items {
			if item.delay == 0 && !checked[item.chain] {
				checked[item.chain] = true
				t.addOp(a.lastSegment(item.chain).CheckOpen(), a.findLastIfGone(item.chain, failAll))
			}
		}
	}
}

// addItems adds the creates of a request's items.
func (a *segmentAppender) addItems(t *transaction, r *writeRequest) {
	for i := range r.items {
		item := &r.items[i]
		if item.delay == 0 {
			t.created = append(t.created, createdItem{len(t.ops), item.chain, 0})
			t.addOp(a.lastSegment(item.chain).AppendOp(item.data), a.findLastIfGone(item.chain, failRequest(r)))
			continue
		}
		if item.due.IsZero() {
			// Now may be behind the ensemble's clock, and the item would be early
			item.due = a.store.clock.Latest().Add(item.delay)
		}
		second := item.due.Add(time.Second - 1).Unix()
		for a.full[second] {
			second++
		}
		dir := a.store.nodes.SecondDir(second)
		t.created = append(t.created, createdItem{op: len(t.ops), second: second})
		t.addOp(queuelayout.AppendOp(dir, item.data),
			func(tx *framework.TxError) refusalHandling {
				if errors.Is(tx.Err, framework.ErrNoNode) {
					return refusalHandling{repair: func(ctx context.Context,
						s *framework.Session) error {
						return a.makeSecond(ctx, s, dir)
					}}
				}
				return refuseOnly(r, tx)
			})
	}
}

func (a *segmentAppender) lastSegment(l queuelayout.Chain) queuelayout.Segment {
	return l.Segment(a.lastSegments[l])
}

// findLastIfGone finds the chain's last segment if the known one was closed or removed. Other
// refusals go to another handler.
func (a *segmentAppender) findLastIfGone(l queuelayout.Chain, other refusalHandler) refusalHandler {
	return func(tx *framework.TxError) refusalHandling {
		if errors.Is(tx.Err, framework.ErrBadVersion) || errors.Is(tx.Err, framework.ErrNoNode) {
			return refusalHandling{repair: func(ctx context.Context,
				s *framework.Session) error {
				return a.findLastSegment(ctx, s, l)
			}}
		}
		return other(tx)
	}
}

// findLastSegment finds a chain's last segment, and makes the chain if it has no segments.
func (a *segmentAppender) findLastSegment(ctx context.Context, s *framework.Session, l queuelayout.Chain) error {
	if err := s.Sync(ctx, l.Dir); err != nil {
		return err
	}
	segments, err := l.ListSegments(ctx, s)
	if err != nil {
		return err
	}
	if len(segments) > 0 {
		last := segments[len(segments)-1]
		a.lastSegments[l] = last.Number
		stat, err := s.Exists(ctx, last.Dir())
		if err == nil && stat.Version > 0 {
			err = last.MakeNext(ctx, s)
		}
		if errors.Is(err, framework.ErrNoNode) {
			return nil // it was removed: the next try finds another
		}
		return err
	}
	if l == a.store.nodes.Base {
		return fmt.Errorf("%w: %s has no segments", errNotQueue, l.Dir)
	}
	_, err = s.Multi(ctx, append([]framework.Op{a.store.nodes.CheckExists()}, l.MakeOps()...)...)
	if errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	a.lastSegments[l] = 0
	return err
}

// makeSecond makes the directory of a second, and that of its hour.
func (a *segmentAppender) makeSecond(ctx context.Context, s *framework.Session, second string) error {
	hour, _ := znode.Split(second)
	for _, dir := range []string{hour, second} {
		_, err := s.Multi(ctx, a.store.nodes.CheckExists(), framework.CreateOp(dir, nil, framework.Container))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// closeFullSegments closes each segment that an applied transaction has filled up: it has created
// the segment's item with the number segmentSize-1 or a higher one. It remembers the seconds that
// are full.
func (a *segmentAppender) closeFullSegments(ctx context.Context, s *framework.Session, t *transaction,
	results []framework.OpResult) {
	full := map[queuelayout.Chain]bool{}
	for _, c := range t.created {
		if c.op >= len(results) {
			continue
		}
		_, name := znode.Split(results[c.op].Path)
		if n, ok := queuelayout.ItemNumber(name); !ok || n < a.segmentSize-1 {
			continue
		}
		if c.second == 0 {
			full[c.chain] = true
			continue
		}
		if len(a.full) > 10_000 {
			clear(a.full)
		}
		a.full[c.second] = true
	}
	for _, chain := range slices.SortedFunc(maps.Keys(full), queuelayout.CompareChains) {
		if _, err := s.Multi(ctx, a.lastSegment(chain).CloseOps()...); err == nil {
			a.lastSegments[chain]++
		} // else another client has closed the segment, or will
	}
}
