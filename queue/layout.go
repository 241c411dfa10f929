package queue

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// The names below a queue's node.
const (
	itemsDir    = recipe.QueueItems
	ticketsDir  = recipe.QueueTickets
	lanesDir    = recipe.QueueLanes
	deadDir     = recipe.QueueDead
	laterDir    = recipe.QueueDelayed
	writersDir  = "writers"
	lockDir     = "lock"
	roomDir     = "room"
	pausedNode  = "paused"
	placesDir   = "places"
	inNode      = "in"
	outNode     = "out"
	idsDir      = recipe.QueueIDs
	cancelsDir  = "cancels"
	claimedNode = "claimed"
	droppedNode = "dropped"

	redoLane   = "redo"
	itemPrefix = "i-"
)

// layout names the nodes of one queue. It sends no requests.
type layout struct {
	path string
	base segmentChain // the items in the order of their puts
	redo segmentChain // the lane of returned items
	dead segmentChain // the dead letters
}

func newLayout(path string) *layout {
	l := &layout{path: path}
	l.base = segmentChain{dir: l.childPath(itemsDir), tickets: znode.Join(l.childPath(ticketsDir), itemsDir)}
	l.redo = l.laneNamed(redoLane)
	l.dead = segmentChain{dir: l.childPath(deadDir)}
	return l
}

// childPath is the path of a child of the queue's node.
func (l *layout) childPath(name string) string { return znode.Join(l.path, name) }

// laneNamed is the lane with a name.
func (l *layout) laneNamed(name string) segmentChain {
	return segmentChain{dir: znode.Join(l.childPath(lanesDir), name),
		tickets: znode.Join(l.childPath(ticketsDir), name)}
}

// segmentOf is the segment of an item's node.
func (l *layout) segmentOf(item string) segmentID {
	above, _ := znode.Split(item)
	dir, name := znode.Split(above)
	chain := l.base
	if _, lane := znode.Split(dir); dir != chain.dir {
		chain = l.laneNamed(lane)
	}
	n, _ := parseNumber(name, "") // this package has made the path
	return chain.segment(n)
}

// secondDir is the directory of the delayed items that are due at a second of Unix time.
func (l *layout) secondDir(t int64) string {
	return znode.Join(znode.Join(l.childPath(laterDir), formatNumber(t/3600)), formatNumber(t))
}

// checkExists is refused after the queue was dropped. It goes with each creation of a node below
// the queue's: waiters for a lock of a dropped queue make the queue's node again, without a record.
func (l *layout) checkExists() framework.Op {
	return framework.CheckOp(l.childPath(itemsDir), framework.AnyVersion)
}

// signalLanes tells the consumers that a lane may have an item without a ticket.
func (l *layout) signalLanes() framework.Op {
	return framework.SetOp(l.childPath(lanesDir), nil, framework.AnyVersion)
}

// signalRecoverer tells the recoverer that a ticket has gone while its consumer stays.
func (l *layout) signalRecoverer() framework.Op {
	return framework.SetOp(l.childPath(ticketsDir), nil, framework.AnyVersion)
}

// signalDelayed tells the mover of delayed items that there is another one.
func (l *layout) signalDelayed() framework.Op {
	return framework.SetOp(l.childPath(laterDir), nil, framework.AnyVersion)
}

// segmentChain is a chain of numbered segments of items below one directory. A queue has the base
// chain, with the items in the order of their puts; a lane for each priority, and one for returned
// items; and the dead letters.
type segmentChain struct {
	dir     string
	tickets string // the directory of its tickets' segments; "" for the dead letters, which have no tickets
}

// name is the chain's name within its queue.
func (l segmentChain) name() string {
	_, name := znode.Split(l.dir)
	return name
}

// segment is a segment of the chain.
func (l segmentChain) segment(n int64) segmentID { return segmentID{l, n} }

// rank orders the chains: items of a higher rank go first. redo is the highest, then the
// priorities, then the base chain with 0.
func (l segmentChain) rank() int64 {
	name := l.name()
	if name == redoLane {
		return math.MaxInt64
	}
	priority, _ := lanePriority(name)
	return priority
}

// lanePriority reads the name of a priority's lane. A later release may have more priorities than
// this one.
func lanePriority(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != name {
		return 0, false
	}
	return n, true
}

// segmentID names a segment of a chain. Writers create items in the last segment, whose directory
// has the data version 0; a segment is closed by a write to its directory.
type segmentID struct {
	chain segmentChain
	n     int64
}

// dir is the directory of the segment's items.
func (s segmentID) dir() string { return znode.Join(s.chain.dir, formatNumber(s.n)) }

// ticketDir is the directory of the segment's tickets.
func (s segmentID) ticketDir() string { return znode.Join(s.chain.tickets, formatNumber(s.n)) }

// itemNode is the node of the item with a number.
func (s segmentID) itemNode(k int64) string { return s.dir() + "/" + itemPrefix + formatNumber(k) }

// nextSegment is the segment behind this one.
func (s segmentID) nextSegment() segmentID { return s.chain.segment(s.n + 1) }

// checkOpen is refused once the segment was closed or removed.
func (s segmentID) checkOpen() framework.Op { return framework.CheckOp(s.dir(), 0) }

// appendOp creates an item at the segment's end.
func (s segmentID) appendOp(data []byte) framework.Op {
	return framework.CreateOp(znode.Join(s.dir(), itemPrefix), data, framework.PersistentSequential)
}

// makeOps make the segment.
func (s segmentID) makeOps() []framework.Op {
	ops := []framework.Op{framework.CreateOp(s.dir(), nil, framework.Persistent)}
	if s.chain.tickets != "" {
		ops = append(ops, framework.CreateOp(s.ticketDir(), nil, framework.Persistent))
	}
	return ops
}

// closeOps close the segment and make the next one.
func (s segmentID) closeOps() []framework.Op {
	return append([]framework.Op{framework.SetOp(s.dir(), []byte("closed"), 0)}, s.nextSegment().makeOps()...)
}

// itemID is the place of an item: its segment, and its number in the segment.
type itemID struct {
	at segmentID
	k  int64
}

// node is the item's node.
func (i itemID) node() string { return i.at.itemNode(i.k) }

// compareItems orders items as consumers get them.
func compareItems(a, b itemID) int {
	return cmp.Or(cmp.Compare(b.at.chain.rank(), a.at.chain.rank()), cmp.Compare(a.at.n, b.at.n), cmp.Compare(a.k, b.k))
}

// itemOf is the itemID of an item's node.
func (l *layout) itemOf(node string) itemID {
	_, name := znode.Split(node)
	k, _ := parseNumber(name, itemPrefix) // this package has made the path
	return itemID{l.segmentOf(node), k}
}

// digits is the length of the number at the end of a sequential node's name.
const digits = 10

// formatNumber writes a number as the servers do in the name of a sequential node.
func formatNumber(n int64) string {
	if n < 0 {
		return fmt.Sprintf("%0*d", digits, n)
	}
	s := strconv.FormatInt(n, 10)
	return "0000000000"[:max(0, digits-len(s))] + s
}

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
