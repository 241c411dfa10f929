package queue

import (
	"cmp"
	"fmt"
	"math"
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

// layout names the nodes of one queue. It asks no server.
type layout struct {
	path string
	base itemLine // the items in the order of their puts
	redo itemLine // the items that were given back
	dead itemLine // the dead letters
}

func newLayout(path string) *layout {
	l := &layout{path: path}
	l.base = itemLine{dir: l.below(itemsDir), tickets: framework.Join(l.below(ticketsDir), itemsDir)}
	l.redo = l.lane(redoLane)
	l.dead = itemLine{dir: l.below(deadDir)}
	return l
}

// below is a child of the queue's node.
func (l *layout) below(name string) string { return framework.Join(l.path, name) }

// lane is the line of a lane's name.
func (l *layout) lane(name string) itemLine {
	return itemLine{dir: framework.Join(l.below(lanesDir), name), tickets: framework.Join(l.below(ticketsDir), name)}
}

// segmentOf is the segment of an item's node.
func (l *layout) segmentOf(item string) segmentID {
	above, _ := framework.Split(item)
	dir, name := framework.Split(above)
	line := l.base
	if _, lane := framework.Split(dir); dir != line.dir {
		line = l.lane(lane)
	}
	n, _ := parseNumber(name, "") // this package has made the path
	return line.at(n)
}

// secondDir is the directory of the delayed items that are due at a second of Unix time.
func (l *layout) secondDir(t int64) string {
	return framework.Join(framework.Join(l.below(laterDir), number(t/3600)), number(t))
}

// checkExists is refused after the queue was dropped. It goes with each creation of a node below the queue's: waiters for a lock of a
// dropped queue make the queue's node again, without a record.
func (l *layout) checkExists() framework.Op {
	return framework.CheckOp(l.below(itemsDir), framework.AnyVersion)
}

// signalLanes tells the consumers that a lane may have an item without a ticket.
func (l *layout) signalLanes() framework.Op {
	return framework.SetOp(l.below(lanesDir), nil, framework.AnyVersion)
}

// signalRecoverer tells the recoverer that a ticket has gone while its consumer stays.
func (l *layout) signalRecoverer() framework.Op {
	return framework.SetOp(l.below(ticketsDir), nil, framework.AnyVersion)
}

// signalDelayed tells the mover of delayed items that there is another one.
func (l *layout) signalDelayed() framework.Op {
	return framework.SetOp(l.below(laterDir), nil, framework.AnyVersion)
}

// itemLine is a row of items in numbered segments below one directory: the base line, a lane, or the dead letters.
type itemLine struct {
	dir     string
	tickets string // the directory of its tickets' segments; "" for dead letters, which have no tickets
}

// name is the line's name within its queue.
func (l itemLine) name() string {
	_, name := framework.Split(l.dir)
	return name
}

// at is a segment of the line.
func (l itemLine) at(n int64) segmentID { return segmentID{l, n} }

// rank orders the lines: items of a higher rank go first. redo is the highest, then the priorities, then the base line with 0.
func (l itemLine) rank() int64 {
	name := l.name()
	if name == redoLane {
		return math.MaxInt64
	}
	priority, _ := lanePriority(name)
	return priority
}

// lanePriority reads the name of a priority's lane. A later release may have more priorities than this one.
func lanePriority(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != name {
		return 0, false
	}
	return n, true
}

// segmentID is one segment of a line. The data version of its directory is 0 while it is open for puts.
type segmentID struct {
	line itemLine
	n    int64
}

// dir is the directory of the segment's items.
func (s segmentID) dir() string { return framework.Join(s.line.dir, number(s.n)) }

// tickets is the directory of the segment's tickets.
func (s segmentID) tickets() string { return framework.Join(s.line.tickets, number(s.n)) }

// item is the node of the item with a number.
func (s segmentID) item(k int64) string { return framework.Join(s.dir(), itemPrefix+number(k)) }

// next is the segment behind this one.
func (s segmentID) next() segmentID { return s.line.at(s.n + 1) }

// checkOpen is refused once the segment was closed or removed.
func (s segmentID) checkOpen() framework.Op { return framework.CheckOp(s.dir(), 0) }

// appendOp creates an item at the segment's end.
func (s segmentID) appendOp(data []byte) framework.Op {
	return framework.CreateOp(framework.Join(s.dir(), itemPrefix), data, framework.PersistentSequential)
}

// makeOps make the segment.
func (s segmentID) makeOps() []framework.Op {
	ops := []framework.Op{framework.CreateOp(s.dir(), nil, framework.Persistent)}
	if s.line.tickets != "" {
		ops = append(ops, framework.CreateOp(s.tickets(), nil, framework.Persistent))
	}
	return ops
}

// closeOps close the segment and make the next one.
func (s segmentID) closeOps() []framework.Op {
	return append([]framework.Op{framework.SetOp(s.dir(), []byte("closed"), 0)}, s.next().makeOps()...)
}

// itemID is the place of one item.
type itemID struct {
	at segmentID
	k  int64
}

// node is the item's node.
func (i itemID) node() string { return i.at.item(i.k) }

// compareItems orders items as consumers get them.
func compareItems(a, b itemID) int {
	return cmp.Or(cmp.Compare(b.at.line.rank(), a.at.line.rank()), cmp.Compare(a.at.n, b.at.n), cmp.Compare(a.k, b.k))
}

// itemOf is the place of an item's node.
func (l *layout) itemOf(node string) itemID {
	_, name := framework.Split(node)
	k, _ := parseNumber(name, itemPrefix) // this package has made the path
	return itemID{l.segmentOf(node), k}
}

// digits is the length of the number at the end of a sequential node's name.
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

// childrenEver is the number of children that a node has had in its life, removed ones included.
func childrenEver(st framework.Stat) int64 { return (int64(st.Cversion) + int64(st.NumChildren)) / 2 }
