package queue

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// stateReader reads what a queue holds. It remembers the segments of each chain, so that it costs
// one read while these stay the same.
type stateReader struct {
	store        *store
	reading      chan struct{} // held by the reader; guards the rest
	lists        []segmentList
	lanesChanged int64 // the last transaction that has changed the list of lanes
}

// segmentList is the segments of a chain. It is valid while the directory's last change is the
// same.
type segmentList struct {
	chain    queuelayout.Chain
	changed  int64 // the last transaction that has changed the list
	segments []queuelayout.Segment
}

// queueState is what a queue held at a moment, after a sync.
type queueState struct {
	paused    bool
	consumers int      // in the line for the lock
	due       bool     // a delayed item is due, or may be
	asked     []string // the items that were asked for
	arrived   int      // how many of these exist
	chains    []chainState
}

// chainState is what a chain holds.
type chainState struct {
	chain     queuelayout.Chain
	items     int
	unclaimed int // items without tickets
}

func (s queueState) countItems() (n int) {
	for _, counted := range s.chains {
		n += counted.items
	}
	return n
}

func (s queueState) countUnclaimed() (n int) {
	for _, counted := range s.chains {
		n += counted.unclaimed
	}
	return n
}

func newStateReader(store *store) stateReader {
	return stateReader{store: store, reading: make(chan struct{}, 1)}
}

// readState reads what the queue holds, and which of some items exist. It does not write. r.reading
// is held.
func (r *stateReader) readState(ctx context.Context, s *framework.Session, items []string) (queueState, error) {
	nodes := r.store.nodes
	for {
		paths := append([]string{nodes.LockDir, nodes.PausedNode, nodes.DelayedDir,
			nodes.LanesDir}, items...)
		for _, list := range r.lists {
			paths = append(paths, list.chain.Dir)
			for _, segment := range list.segments {
				paths = append(paths, segment.Dir(), segment.TicketDir())
			}
		}
		read, err := s.GetAll(ctx, paths...)
		if err != nil {
			return queueState{}, err
		}
		for _, n := range read {
			if n.Err != nil && !errors.Is(n.Err, framework.ErrNoNode) {
				return queueState{}, n.Err
			}
		}
		next := func() framework.Node {
			n := read[0]
			read = read[1:]
			return n
		}
		lock, paused, later, lanes := next(), next(), next(), next()
		state := queueState{paused: paused.Err == nil, consumers: int(lock.Stat.NumChildren), asked: items}
		for range items {
			if next().Err == nil {
				state.arrived++
			}
		}
		current := r.lists != nil && lanes.Stat.Pzxid == r.lanesChanged
		for _, list := range r.lists {
			current = next().Stat.Pzxid == list.changed && current
			counted := chainState{chain: list.chain}
			for range list.segments {
				segment, tickets := next().Stat, next().Stat
				counted.items += int(segment.NumChildren)
				if segment.NumChildren > 0 {
					put, drawn := queuelayout.ChildrenEver(segment), queuelayout.ChildrenEver(tickets)
					counted.unclaimed += max(0, int(put-drawn))
				}
			}
			state.chains = append(state.chains, counted)
		}
		if current {
			if later.Stat.NumChildren > 0 {
				state.due, err = r.mayBeDue(ctx, s)
			}
			return state, err
		}
		if err := r.listAllSegments(ctx, s); err != nil {
			return state, err
		}
	}
}

// listAllSegments lists the segments of all chains.
func (r *stateReader) listAllSegments(ctx context.Context, s *framework.Session) error {
	lanes, stat, err := s.Children(ctx, r.store.nodes.LanesDir)
	if err != nil {
		return err
	}
	var lists []segmentList
	for _, chain := range append(r.store.nodes.LanesIn(lanes), r.store.nodes.Base) {
		names, dir, err := s.Children(ctx, chain.Dir)
		if err != nil {
			return err
		}
		lists = append(lists, segmentList{chain: chain, changed: dir.Pzxid, segments: chain.SegmentsIn(names)})
	}
	r.lists, r.lanesChanged = lists, stat.Pzxid
	return nil
}

// mayBeDue reports whether a delayed item is due. It returns true as long as the ensemble's time is
// unknown: a consumer learns it with its first write.
func (r *stateReader) mayBeDue(ctx context.Context, s *framework.Session) (bool, error) {
	for second, err := range r.store.nodes.DelayedSeconds(ctx, s) {
		if err != nil || second.EndOfHour {
			return false, err
		}
		return !r.store.clock.Known() || !time.Unix(second.Unix, 0).After(r.store.clock.Now()), nil
	}
	return false, nil
}
