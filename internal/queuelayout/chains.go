package queuelayout

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// ListSegments lists a chain's segments in order. A chain that does not exist has no segments.
func (c Chain) ListSegments(ctx context.Context, s *framework.Session) ([]Segment, error) {
	names, err := listNames(ctx, s, c.Dir)
	return c.SegmentsIn(names), err
}

// SegmentsIn returns the segments among the children of a chain's directory, in order.
func (c Chain) SegmentsIn(names []string) []Segment {
	var segments []Segment
	for _, n := range NumbersIn(names) {
		segments = append(segments, c.Segment(n))
	}
	return segments
}

// ListTicketSegments lists the segments of a chain in which tickets may have been drawn, in order.
func (c Chain) ListTicketSegments(ctx context.Context, s *framework.Session) ([]Segment, error) {
	names, err := listNames(ctx, s, c.Tickets)
	return c.SegmentsIn(names), err
}

// ListItems lists the numbers of a segment's items in order. A segment that does not exist has no
// items.
func (s Segment) ListItems(ctx context.Context, session *framework.Session) ([]int64, error) {
	return ListItemNumbers(ctx, session, s.Dir())
}

// ListedSegment is a segment with the numbers of its items, in order.
type ListedSegment struct {
	Segment
	Items []int64
	Last  bool // of its chain, when that was listed
}

// EachSegment lists the segments of chains and their items, one segment after the other, in order.
// An error is the last that it yields.
func EachSegment(ctx context.Context, s *framework.Session, chains ...Chain) iter.Seq2[ListedSegment, error] {
	return func(yield func(ListedSegment, error) bool) {
		for _, chain := range chains {
			segments, err := chain.ListSegments(ctx, s)
			for i := 0; err == nil && i < len(segments); i++ {
				listed := ListedSegment{Segment: segments[i], Last: i == len(segments)-1}
				if listed.Items, err = segments[i].ListItems(ctx, s); err == nil && !yield(listed, nil) {
					return
				}
			}
			if err != nil {
				yield(ListedSegment{}, err)
				return
			}
		}
	}
}

// ListTickets lists the segment's tickets by their numbers. It also returns the state of their
// directory.
func (s Segment) ListTickets(ctx context.Context,
	session *framework.Session) (nodes map[int64]string, stat framework.Stat, err error) {
	names, stat, err := session.Children(ctx, s.TicketDir())
	return s.TicketsIn(names), stat, err
}

// TicketsIn returns the nodes of the tickets among the children of the directory of the segment's
// tickets, by their numbers.
func (s Segment) TicketsIn(names []string) map[int64]string {
	nodes := map[int64]string{}
	for _, name := range names {
		if k, ok := TicketNumber(name); ok {
			nodes[k] = znode.Join(s.TicketDir(), name)
		}
	}
	return nodes
}

// FindTickets returns those tickets of the segment that exist and were created with one of the
// names.
func (s Segment) FindTickets(ctx context.Context, session *framework.Session,
	names []string) (found []primitives.Created, err error) {
	present, _, err := session.Children(ctx, s.TicketDir())
	var paths []string
	for _, name := range present {
		if slices.Contains(names, name[:max(0, len(name)-digits)]) {
			paths = append(paths, znode.Join(s.TicketDir(), name))
		}
	}
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	nodes, err := session.GetAll(ctx, paths...)
	for i, n := range nodes {
		if n.Err == nil {
			found = append(found, primitives.Created{Path: paths[i], Zxid: n.Stat.Czxid})
		}
	}
	return found, err
}

// HasTickets reports whether the queue at a path has a ticket, of any chain: a consumer has an
// item, or waits for one.
func HasTickets(ctx context.Context, client *framework.Client, queue string) (bool, error) {
	dirs := []string{New(queue).TicketsDir}
	for range 2 { // chains, and segments
		var below []string
		for _, dir := range dirs {
			names, _, err := client.Children(ctx, dir)
			if err != nil && !errors.Is(err, framework.ErrNoNode) {
				return false, err
			}
			for _, name := range names {
				below = append(below, znode.Join(dir, name))
			}
		}
		dirs = below
	}
	for _, dir := range dirs {
		names, _, err := client.Children(ctx, dir)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return false, err
		}
		for _, name := range names {
			if _, ok := TicketNumber(name); ok {
				return true, nil
			}
		}
	}
	return false, nil
}

// RemoveIfEmpty removes the segment if it is closed and empty. The servers refuse the removal if an
// item or a ticket is created meanwhile.
func (s Segment) RemoveIfEmpty(ctx context.Context, session *framework.Session) error {
	stat, err := session.Exists(ctx, s.Dir())
	if err != nil || stat.Version == 0 || stat.NumChildren > 0 {
		return err
	}
	ops := []framework.Op{framework.DeleteOp(s.Dir(), stat.Version)}
	if s.Chain.Tickets != "" {
		ops = append(ops, framework.DeleteOp(s.TicketDir(), framework.AnyVersion))
	}
	_, err = session.Multi(ctx, ops...)
	return err
}

// MakeNext makes the segment behind this one, which the caller has found closed, if this one is the
// last of its chain: an operator has closed it, since this package makes the next segment in the
// transaction that closes one. The caller may have listed the chain before it was closed, and the
// next segment may have come and gone since then. So MakeNext lists the chain again: a segment that
// was made between others would stay open for ever, and consumers would wait at it.
func (s Segment) MakeNext(ctx context.Context, session *framework.Session) error {
	segments, err := s.Chain.ListSegments(ctx, session)
	if err != nil || len(segments) == 0 || segments[len(segments)-1] != s {
		return err
	}
	_, err = session.Multi(ctx,
		append([]framework.Op{framework.CheckOp(s.Dir(), framework.AnyVersion)}, s.Next().MakeOps()...)...)
	if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode) {
		return nil // another client was faster, and may have removed the closed one
	}
	return err
}

// CloseStray closes a segment behind which there is another one, and which is open nevertheless.
func (s Segment) CloseStray(ctx context.Context, session *framework.Session) error {
	_, err := session.Multi(ctx, s.CloseOp())
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

// ListLanes lists the lanes in the order in which consumers get their items.
func (l *Layout) ListLanes(ctx context.Context, s *framework.Session) ([]Chain, error) {
	names, _, err := s.Children(ctx, l.LanesDir)
	if err != nil {
		return nil, err
	}
	return l.LanesIn(names), nil
}

// LanesIn returns the lanes among the children of the directory of lanes, in the order in which
// consumers get their items.
func (l *Layout) LanesIn(names []string) (lanes []Chain) {
	for _, name := range names {
		if isLane(name) {
			lanes = append(lanes, l.Lane(name))
		}
	}
	slices.SortFunc(lanes, CompareChains)
	return lanes
}

// ListChains lists the lanes and the base chain in the order in which consumers get their items.
// The dead letters are not among them.
func (l *Layout) ListChains(ctx context.Context, s *framework.Session) ([]Chain, error) {
	lanes, err := l.ListLanes(ctx, s)
	return append(lanes, l.Base), err
}

// DelayedSeconds lists the seconds of Unix time at which delayed items are due, in order, hour by
// hour. After the last second of an hour it yields that hour's directory, with EndOfHour set.
func (l *Layout) DelayedSeconds(ctx context.Context, s *framework.Session) iter.Seq2[DelayedSecond, error] {
	return func(yield func(DelayedSecond, error) bool) {
		hours, err := ListNumbers(ctx, s, l.DelayedDir)
		if err != nil {
			yield(DelayedSecond{}, err)
			return
		}
		for _, hour := range hours {
			seconds, err := ListNumbers(ctx, s, l.HourDir(hour))
			if err != nil {
				yield(DelayedSecond{}, err)
				return
			}
			for _, second := range seconds {
				if !yield(DelayedSecond{l.SecondDir(second), second, false}, nil) {
					return
				}
			}
			if !yield(DelayedSecond{l.HourDir(hour), 0, true}, nil) {
				return
			}
		}
	}
}

// DelayedSecond is a directory of delayed items.
type DelayedSecond struct {
	Dir       string
	Unix      int64
	EndOfHour bool // dir is the hour's directory, behind its last second
}

// ListNumbers lists the numbers among the names in a directory, in order. It ignores other names. A
// directory that does not exist has no numbers.
func ListNumbers(ctx context.Context, s *framework.Session, dir string) ([]int64, error) {
	names, err := listNames(ctx, s, dir)
	return NumbersIn(names), err
}

// ListItemNumbers lists the numbers of the items in a directory, in order; see ListNumbers.
func ListItemNumbers(ctx context.Context, s *framework.Session, dir string) ([]int64, error) {
	names, err := listNames(ctx, s, dir)
	return ItemNumbersIn(names), err
}

func listNames(ctx context.Context, s *framework.Session, dir string) ([]string, error) {
	names, _, err := s.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// NumbersIn returns the numbers among names, in order.
func NumbersIn(names []string) []int64 { return numbersAfter("", names) }

// ItemNumbersIn returns the numbers of the items among names, in order.
func ItemNumbersIn(names []string) []int64 { return numbersAfter(itemPrefix, names) }

func numbersAfter(prefix string, names []string) []int64 {
	numbers := make([]int64, 0, len(names))
	for _, name := range names {
		if n, ok := ParseNumber(name, prefix); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
