package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// The names below a queue's node.
const (
	itemsDir    = "items"
	ticketsDir  = "tickets"
	lanesDir    = "lanes"
	deadDir     = "dead"
	laterDir    = "later"
	writersDir  = "writers"
	lockDir     = "lock"
	roomDir     = "room"
	pausedNode  = "paused"
	placesDir   = "places"
	inNode      = "in"
	outNode     = "out"
	idsDir      = "ids"
	claimedNode = "claimed"
	droppedNode = "dropped"

	redoLane   = "redo"
	itemPrefix = "i-"
)

// itemLine is a row of items in numbered segments below one directory.
type itemLine struct {
	dir     string
	tickets string // the directory of its tickets' segments; "" where no tickets are drawn
}

// name is the line's within its queue.
func (l itemLine) name() string {
	_, name := framework.Split(l.dir)
	return name
}

func (l itemLine) segment(n int64) string { return framework.Join(l.dir, number(n)) }
func (l itemLine) item(seg, k int64) string {
	return framework.Join(l.segment(seg), itemPrefix+number(k))
}
func (l itemLine) ticketsOf(n int64) string       { return framework.Join(l.tickets, number(n)) }
func (l itemLine) appendPath(n int64) string      { return framework.Join(l.segment(n), itemPrefix) }
func (l itemLine) checkOpen(n int64) framework.Op { return framework.CheckOp(l.segment(n), 0) }

// openOps are the operations that make a segment.
func (l itemLine) openOps(n int64) []framework.Op {
	ops := []framework.Op{framework.CreateOp(l.segment(n), nil, framework.Persistent)}
	if l.tickets != "" {
		ops = append(ops, framework.CreateOp(l.ticketsOf(n), nil, framework.Persistent))
	}
	return ops
}

// rollOps are the operations that close a segment and make the next one.
func (l itemLine) rollOps(n int64) []framework.Op {
	return append([]framework.Op{framework.SetOp(l.segment(n), []byte("closed"), 0)}, l.openOps(n+1)...)
}

// removeSegment removes a segment if it is closed and empty. What is put or drawn meanwhile makes the servers refuse it.
func (l itemLine) removeSegment(ctx context.Context, s *framework.Session, n int64) error {
	st, err := s.Exists(ctx, l.segment(n))
	if err != nil || st.Version == 0 || st.NumChildren > 0 {
		return err
	}
	ops := []framework.Op{framework.DeleteOp(l.segment(n), st.Version)}
	if l.tickets != "" {
		ops = append(ops, framework.DeleteOp(l.ticketsOf(n), framework.AnyVersion))
	}
	_, err = s.Multi(ctx, ops...)
	return err
}

// openAfter makes the segment after a closed one that is the last. The segment was closed by hand: whoever closes one makes
// the next in the same transaction.
func (l itemLine) openAfter(ctx context.Context, s *framework.Session, n int64) error {
	_, err := s.Multi(ctx, append([]framework.Op{framework.CheckOp(l.segment(n), framework.AnyVersion)}, l.openOps(n+1)...)...)
	if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode) {
		return nil // somebody else was faster, and may have removed the closed one
	}
	return err
}

// segments lists a line's segments in order; none if the line does not exist.
func (l itemLine) segments(ctx context.Context, s *framework.Session) ([]int64, error) {
	return numbersIn(ctx, s, l.dir, "")
}

// items lists the numbers of a segment's items in order; none if there is no such segment.
func (l itemLine) items(ctx context.Context, s *framework.Session, seg int64) ([]int64, error) {
	return numbersIn(ctx, s, l.segment(seg), itemPrefix)
}

// numbersIn lists the numbers of the names with a prefix, in order. Other names are somebody else's.
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

// childrenEver is how many children a node has ever had.
func childrenEver(st framework.Stat) int64 { return (int64(st.Cversion) + int64(st.NumChildren)) / 2 }

// digits is the length of the number that ends a sequential node's name.
const digits = 10

func number(n int64) string { return fmt.Sprintf("%0*d", digits, n) }

// parseNumber reads a name that consists of a prefix and ten digits.
func parseNumber(name, prefix string) (int64, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok || len(text) != digits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// ticketNumber reads the number at the end of a ticket's name, t-<id>-#.
func ticketNumber(name string) (int64, bool) {
	if !strings.HasPrefix(name, "t-") || len(name) < len("t-")+digits {
		return 0, false
	}
	return parseNumber(name[len(name)-digits:], "")
}

// segmentOf is the segment of an item.
func (q *engine) segmentOf(item string) segmentID {
	above, _ := framework.Split(item)
	dir, name := framework.Split(above)
	l := q.base
	if _, lane := framework.Split(dir); dir != l.dir {
		l = q.laneNamed(lane)
	}
	seg, _ := parseNumber(name, "") // we have made the path from one
	return segmentID{l, seg}
}

// laneNamed is the line of a lane.
func (q *engine) laneNamed(name string) itemLine {
	return itemLine{dir: framework.Join(q.below(lanesDir), name), tickets: framework.Join(q.below(ticketsDir), name)}
}

// listLanes lists the lanes in the order in which their items go.
func (q *engine) listLanes(ctx context.Context, s *framework.Session) ([]itemLine, error) {
	names, _, err := s.Children(ctx, q.below(lanesDir))
	if err != nil {
		return nil, err
	}
	var lanes []itemLine
	for _, name := range names {
		if _, ok := lanePriority(name); ok || name == redoLane {
			lanes = append(lanes, q.laneNamed(name))
		}
	}
	slices.SortFunc(lanes, func(a, b itemLine) int { return strings.Compare(lineRank(b), lineRank(a)) })
	return lanes, nil
}

// lanePriority reads the name of a priority's lane. A later release may have more priorities than this one.
func lanePriority(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == name
}

// lineRank orders lines: redo comes first, then the priorities, the highest first, then the base line.
func lineRank(l itemLine) string {
	priority, ok := lanePriority(l.name())
	if !ok && l.name() == redoLane {
		return "redo" // after all digits
	}
	return number(priority)
}

// signalLanesOp tells the consumers that a lane may have an item without a ticket.
func (q *engine) signalLanesOp() framework.Op {
	return framework.SetOp(q.below(lanesDir), nil, framework.AnyVersion)
}

// signalRecovererOp tells the recoverer that a ticket has gone while its consumer stays.
func (q *engine) signalRecovererOp() framework.Op {
	return framework.SetOp(q.below(ticketsDir), nil, framework.AnyVersion)
}
