package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// This file has the reads and writes of the nodes that layout.go names: lists of chains, segments
// and items; removals of segments and trees.

// listSegments lists a chain's segments in order. A chain that does not exist has no segments.
func (l segmentChain) listSegments(ctx context.Context, s *framework.Session) ([]segmentID, error) {
	numbers, err := numbersIn(ctx, s, l.dir, "")
	segments := make([]segmentID, len(numbers))
	for i, n := range numbers {
		segments[i] = l.segment(n)
	}
	return segments, err
}

// listItems lists the numbers of a segment's items in order. A segment that does not exist has no
// items.
func (s segmentID) listItems(ctx context.Context, session *framework.Session) ([]int64, error) {
	return numbersIn(ctx, session, s.dir(), itemPrefix)
}

// removeIfEmpty removes the segment if it is closed and empty. The servers refuse the removal if an
// item or a ticket is created meanwhile.
func (s segmentID) removeIfEmpty(ctx context.Context, session *framework.Session) error {
	st, err := session.Exists(ctx, s.dir())
	if err != nil || st.Version == 0 || st.NumChildren > 0 {
		return err
	}
	ops := []framework.Op{framework.DeleteOp(s.dir(), st.Version)}
	if s.chain.tickets != "" {
		ops = append(ops, framework.DeleteOp(s.ticketDir(), framework.AnyVersion))
	}
	_, err = session.Multi(ctx, ops...)
	return err
}

// makeNext makes the segment behind this one, which the caller has found closed, if this one is the
// last of its chain: an operator has closed it, since this package makes the next segment in the
// transaction that closes one. The caller may have listed the chain before it was closed, and the
// next segment may have come and gone since then. So makeNext lists the chain again: a segment that
// was made between others would stay open for ever, and consumers would wait at it.
func (s segmentID) makeNext(ctx context.Context, session *framework.Session) error {
	segments, err := s.chain.listSegments(ctx, session)
	if err != nil || len(segments) == 0 || segments[len(segments)-1] != s {
		return err
	}
	_, err = session.Multi(ctx,
		append([]framework.Op{framework.CheckOp(s.dir(), framework.AnyVersion)}, s.nextSegment().makeOps()...)...)
	if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode) {
		return nil // another client was faster, and may have removed the closed one
	}
	return err
}

// closeStray closes a segment behind which there is another one, and which is open nevertheless.
func (s segmentID) closeStray(ctx context.Context, session *framework.Session) error {
	_, err := session.Multi(ctx, s.closeOps()[0])
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

// listLanes lists the lanes in the order in which consumers get their items.
func (l *layout) listLanes(ctx context.Context, s *framework.Session) ([]segmentChain, error) {
	names, _, err := s.Children(ctx, l.childPath(lanesDir))
	if err != nil {
		return nil, err
	}
	var lanes []segmentChain
	for _, name := range names {
		if _, ok := lanePriority(name); ok || name == redoLane {
			lanes = append(lanes, l.laneNamed(name))
		}
	}
	slices.SortFunc(lanes, func(a,
		b segmentChain) int {
		return compareItems(itemID{at: a.segment(0)}, itemID{at: b.segment(0)})
	})
	return lanes, nil
}

// listChains lists the lanes and the base chain in the order in which consumers get their items.
// The dead letters are not among them.
func (l *layout) listChains(ctx context.Context, s *framework.Session) ([]segmentChain, error) {
	lanes, err := l.listLanes(ctx, s)
	return append(lanes, l.base), err
}

// delayedSeconds lists the seconds of Unix time at which delayed items are due, in order, hour by
// hour. After the last second of an hour it yields that hour's directory, with endOfHour set.
func (l *layout) delayedSeconds(ctx context.Context, s *framework.Session) iter.Seq2[delayedSecond, error] {
	return func(yield func(delayedSecond, error) bool) {
		hours, err := numbersIn(ctx, s, l.childPath(laterDir), "")
		if err != nil {
			yield(delayedSecond{}, err)
			return
		}
		for _, hour := range hours {
			dir := znode.Join(l.childPath(laterDir), formatNumber(hour))
			seconds, err := numbersIn(ctx, s, dir, "")
			if err != nil {
				yield(delayedSecond{}, err)
				return
			}
			for _, t := range seconds {
				if !yield(delayedSecond{l.secondDir(t), t, false}, nil) {
					return
				}
			}
			if !yield(delayedSecond{dir, 0, true}, nil) {
				return
			}
		}
	}
}

// delayedSecond is a directory of delayed items.
type delayedSecond struct {
	dir       string
	t         int64 // of Unix time
	endOfHour bool  // dir is the hour's directory, behind its last second
}

// numbersIn lists the numbers of the names with a prefix, in order. It ignores other names.
func numbersIn(ctx context.Context, s *framework.Session, dir, prefix string) ([]int64, error) {
	names, _, err := s.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, 0, len(names))
	for _, name := range names {
		if n, ok := parseNumber(name, prefix); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// readMany reads any number of nodes, up to 500 in one request.
func readMany(ctx context.Context, s *framework.Session, paths []string) ([]framework.Node, error) {
	nodes := make([]framework.Node, 0, len(paths))
	for some := range slices.Chunk(paths, 500) {
		got, err := s.GetAll(ctx, some...)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, got...)
	}
	return nodes, nil
}

// countIn adds up the children of directories. A directory that is gone has no children.
func countIn(ctx context.Context, s *framework.Session, dirs []string) (n int, err error) {
	nodes, err := readMany(ctx, s, dirs)
	for _, node := range nodes {
		if node.Err != nil && !errors.Is(node.Err, framework.ErrNoNode) {
			return n, node.Err
		}
		n += int(node.Stat.NumChildren)
	}
	return n, err
}

// removeTree deletes a node and all nodes below. Each of its transactions also contains the
// operations of with.
func removeTree(ctx context.Context, s *framework.Session, path string, with ...framework.Op) error {
	names, _, err := s.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for some := range slices.Chunk(names, 500) {
		ops := slices.Clone(with)
		for _, name := range some {
			ops = append(ops, framework.DeleteOp(znode.Join(path, name), framework.AnyVersion))
		}
		if _, err := s.Multi(ctx, ops...); err != nil { // some have children, or are gone
			for _, name := range some {
				if err := removeTree(ctx, s, znode.Join(path, name), with...); err != nil {
					return err
				}
			}
		}
	}
	_, err = s.Multi(ctx, append(slices.Clone(with), framework.DeleteOp(path, framework.AnyVersion))...)
	var refused *framework.TxError
	if err == nil || errors.As(err, &refused) && refused.Path == path && errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return fmt.Errorf("remove: %w", err)
}
