package queue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
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
	chain    segmentChain
	changed  int64 // the last transaction that has changed the list
	segments []segmentID
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
	chain     segmentChain
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

func newStateReader(st *store) stateReader {
	return stateReader{store: st, reading: make(chan struct{}, 1)}
}

// readState reads what the queue holds, and which of some items exist. It does not write. r.reading
// is held.
func (r *stateReader) readState(ctx context.Context, s *framework.Session, items []string) (queueState, error) {
	nodes := r.store.nodes
	for {
		paths := append([]string{nodes.childPath(lockDir), nodes.childPath(pausedNode), nodes.childPath(laterDir),
			nodes.childPath(lanesDir)}, items...)
		for _, list := range r.lists {
			paths = append(paths, list.chain.dir)
			for _, at := range list.segments {
				paths = append(paths, at.dir(), at.ticketDir())
			}
		}
		read, err := readMany(ctx, s, paths)
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
					counted.unclaimed += max(0, int(childrenEver(segment)-childrenEver(tickets)))
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

// listAllSegments lists the segments of all chains, those of later releases' lanes too.
func (r *stateReader) listAllSegments(ctx context.Context, s *framework.Session) error {
	lanes, st, err := s.Children(ctx, r.store.nodes.childPath(lanesDir))
	if err != nil {
		return err
	}
	var lists []segmentList
	for _, name := range append(lanes, "") {
		chain := r.store.nodes.base
		if name != "" {
			chain = r.store.nodes.laneNamed(name)
		}
		names, dir, err := s.Children(ctx, chain.dir)
		if err != nil {
			return err
		}
		list := segmentList{chain: chain, changed: dir.Pzxid}
		for _, name := range names {
			if n, err := strconv.ParseInt(name, 10, 64); err == nil && formatNumber(n) == name {
				list.segments = append(list.segments, chain.segment(n))
			}
		}
		lists = append(lists, list)
	}
	r.lists, r.lanesChanged = lists, st.Pzxid
	return nil
}

// mayBeDue reports whether a delayed item is due. It returns true as long as the ensemble's time is
// unknown: a consumer learns it with its first write.
func (r *stateReader) mayBeDue(ctx context.Context, s *framework.Session) (bool, error) {
	for second, err := range r.store.nodes.delayedSeconds(ctx, s) {
		if err != nil || second.endOfHour {
			return false, err
		}
		return !r.store.clock.Known() || !time.Unix(second.t, 0).After(r.store.clock.Now()), nil
	}
	return false, nil
}
