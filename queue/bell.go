package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// bell is what a consumer knows of the lanes. Whoever adds to a lane rings: it sets the lanes' node, whose version
// counts. A consumer listens again only when it is about to draw a ticket, so idle ones hear it once.
type bell struct {
	turn chan struct{} // of who looks at the lanes; a channel, since it is held while waiting

	heard sync.Mutex // guards the rest
	watch *framework.Watch
	rang  bool
}

// laneItem is an item of a lane.
type laneItem struct {
	line line
	path string
}

// bellOp rings.
func (q *core) bellOp() framework.Op {
	return framework.SetOp(q.below(lanesDir), nil, framework.AnyVersion)
}

// rung tells whether the bell has rung since the lanes were looked at.
func (b *bell) rung() bool {
	b.heard.Lock()
	defer b.heard.Unlock()
	if b.watch != nil {
		select {
		case <-b.watch.C():
			b.rang = true
		default:
		}
	}
	return b.rang || b.watch == nil
}

// again makes it look as if the bell had rung.
func (b *bell) again() {
	b.heard.Lock()
	defer b.heard.Unlock()
	b.rang = true
}

// listen listens from now on.
func (sh *shift) listen() error {
	_, _, w, err := sh.s.WatchData(sh.ctx, sh.q.below(lanesDir))
	if err != nil {
		return err
	}
	sh.bell.heard.Lock()
	defer sh.bell.heard.Unlock()
	if sh.bell.watch != nil {
		sh.bell.watch.Stop()
	}
	sh.bell.watch, sh.bell.rang = w, false
	return nil
}

// fromLanes claims the first item of the lanes; nil if there is none.
func (sh *shift) fromLanes() (*delivery, error) {
	select {
	case sh.bell.turn <- struct{}{}:
		defer func() { <-sh.bell.turn }()
	case <-sh.ctx.Done():
		return nil, context.Cause(sh.ctx)
	}
	for {
		if !sh.bell.rung() {
			return nil, nil
		}
		if err := sh.listen(); err != nil {
			return nil, err
		}
		found, err := sh.q.waiting(sh.ctx, sh.s, 1)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		sh.bell.again() // there may be more
		if d, err := sh.claimOf(found[0]); d != nil || err != nil {
			return d, err
		}
	}
}

// claimOf claims an item of a lane; nil if somebody else has it.
func (sh *shift) claimOf(it laneItem) (*delivery, error) {
	data, st, err := sh.s.Get(sh.ctx, it.path)
	if errors.Is(err, framework.ErrNoNode) || err == nil && st.NumChildren > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	claim := framework.Join(it.path, claimNode)
	_, err = sh.q.writer.do(context.Background(), &part{session: sh.s, ops: []framework.Op{
		framework.SetOp(it.path, data, st.Version), framework.CreateOp(claim, nil, framework.Ephemeral)}})
	var tx *framework.TxError
	switch {
	case errors.As(err, &tx) && !errors.Is(err, framework.ErrNoAuth):
		return nil, nil
	case err != nil:
		return nil, err
	}
	sh.stock.add(sh.q.shelfOf(it.path))
	d := &delivery{shift: sh, item: it.path, version: st.Version + 1, claim: claim, lane: true}
	return d.open(data, 0)
}

// waiting finds items of the lanes that nobody has claimed, in order, up to so many.
func (q *core) waiting(ctx context.Context, s *framework.Session, most int) (found []laneItem, err error) {
	lanes, err := q.lanes(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		segments, err := l.segments(ctx, s)
		if err != nil {
			return nil, err
		}
		for i, seg := range segments {
			items, err := l.items(ctx, s, seg)
			if err != nil {
				return nil, err
			}
			if len(items) == 0 && i < len(segments)-1 {
				_, _ = s.Multi(ctx, l.reap(seg)...)
			}
			for _, k := range items {
				path := l.item(seg, k)
				st, err := s.Exists(ctx, path)
				if err == nil && st.NumChildren == 0 {
					found = append(found, laneItem{l, path})
				} else if err != nil && !errors.Is(err, framework.ErrNoNode) {
					return nil, err
				}
				if len(found) >= most {
					return found, nil
				}
			}
		}
	}
	return found, nil
}

// lanes are those that exist, in the order in which they go.
func (q *core) lanes(ctx context.Context, s *framework.Session) ([]line, error) {
	names, _, err := s.Children(ctx, q.below(lanesDir))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) }) // redo, 9 … 1
	var lanes []line
	for _, name := range names {
		if name == redoLane || len(name) == 1 && name >= "1" && name <= "9" {
			lanes = append(lanes, q.lane(name))
		}
	}
	return lanes, nil
}

// lane is the line of a lane.
func (q *core) lane(name string) line { return line{dir: framework.Join(q.below(lanesDir), name)} }
