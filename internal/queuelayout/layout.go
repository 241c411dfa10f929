package queuelayout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// The names of the nodes below a queue's node.
const (
	itemsName   = "items"
	ticketsName = "tickets"
	lanesName   = "lanes"
	deadName    = "dead"
	delayedName = "later"
	writersName = "writers"
	lockName    = "lock"
	roomName    = "room"
	pausedName  = "paused"
	placesName  = "places"
	inName      = "in"
	outName     = "out"
	idsName     = "ids"
	cancelsName = "cancels"
	claimedName = "claimed"
	droppedName = "dropped"

	redoLane     = "redo"
	itemPrefix   = "i-"
	ticketPrefix = "t-"
)

// InspectMany reads the queues at some paths together, and calls each with a queue.Report and its
// error for each of them, in their order. Package queue sets it, for package monitor.
var InspectMany func(ctx context.Context, client *framework.Client, paths []string,
	each func(report any, err error)) error

// OwnNames are the names of the nodes that a queue keeps below its own. Another queue below it
// cannot have one of these names.
var OwnNames = []string{
	itemsName, ticketsName, lanesName, deadName, delayedName, writersName, lockName, roomName, pausedName, placesName,
	inName, outName, idsName, cancelsName, claimedName, droppedName,
}

// IsQueue reports whether a node with these children is a queue.
func IsQueue(children []string) bool {
	has := func(name string) bool { return slices.Contains(children, name) }
	return has(itemsName) && (has(ticketsName) || has(deadName) || has(delayedName))
}

// IsDropped reports whether a node with these children, which are sorted, is a queue whose removal
// was begun.
func IsDropped(children []string) bool {
	_, dropped := slices.BinarySearch(children, droppedName)
	_, items := slices.BinarySearch(children, itemsName)
	return dropped && items
}

// IsVacant reports whether a node with these children and no record can become a queue: waiters for
// a lock of a dropped queue make the directories of locks again, and the queue's node above them.
func IsVacant(children []string) bool {
	return !slices.ContainsFunc(children, func(name string) bool { return name != lockName && name != roomName })
}

// ItemDirs are the names of those children of a queue that have a node below them for each item, or
// for each item's deduplication id. There can be millions of these nodes, and none of them is a
// lock.
var ItemDirs = []string{itemsName, lanesName, deadName, delayedName, idsName}

// HoldsItems reports whether a queue's child with this name is among ItemDirs.
func HoldsItems(name string) bool { return slices.Contains(ItemDirs, name) }

// QueueOfTicket returns the queue of a ticket, if a path is that of one:
// <queue>/tickets/<chain>/<segment>/t-<id>-#.
func QueueOfTicket(path string) (queue string, ok bool) {
	segment, name := znode.Split(path)
	chain, number := znode.Split(segment)
	tickets, lane := znode.Split(chain)
	queue, dir := znode.Split(tickets)
	_, isNumber := ParseNumber(number, "")
	_, isTicket := TicketNumber(name)
	return queue, dir == ticketsName && (lane == itemsName || isLane(lane)) && isNumber && isTicket
}

// markerChild matches the paths of the children of write markers.
var markerChild = regexp.MustCompile(`^(.+)/` + writersName + `/[0-9a-f-]{36}/[0-9a-f]+$`)

// QueueOfWriter returns the queue of a writer, if a path is that of the child of its marker.
func QueueOfWriter(path string) (queue string, ok bool) {
	found := markerChild.FindStringSubmatch(path)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// Layout names the nodes of one queue. It sends no requests.
type Layout struct {
	// Path is the queue's own node, with the record.
	Path string
	// The nodes below it; the documentation of package queue describes each.
	ItemsDir, TicketsDir, LanesDir, DelayedDir, WritersDir, PlacesDir, IDsDir, CancelsDir string
	LockDir, RoomDir                                                                      string // of locks
	PausedNode, InNode, OutNode, ClaimedNode, DroppedNode                                 string

	// Base is the chain of the items in the order of their puts.
	Base Chain
	// Redo is the lane of returned items.
	Redo Chain
	// Dead is the chain of the dead letters.
	Dead Chain
}

// New returns the layout of the queue at a path.
func New(path string) *Layout {
	below := func(name string) string { return znode.Join(path, name) }
	l := &Layout{Path: path, ItemsDir: below(itemsName), TicketsDir: below(ticketsName), LanesDir: below(lanesName),
		DelayedDir: below(delayedName), WritersDir: below(writersName), PlacesDir: below(placesName),
		IDsDir: below(idsName), CancelsDir: below(cancelsName), LockDir: below(lockName), RoomDir: below(roomName),
		PausedNode: below(pausedName), InNode: below(inName), OutNode: below(outName), ClaimedNode: below(claimedName),
		DroppedNode: below(droppedName)}
	l.Base = Chain{Dir: l.ItemsDir, Tickets: znode.Join(l.TicketsDir, itemsName)}
	l.Redo = l.Lane(redoLane)
	l.Dead = Chain{Dir: below(deadName)}
	return l
}

// Lane is the lane with a name.
func (l *Layout) Lane(name string) Chain {
	return Chain{Dir: znode.Join(l.LanesDir, name), Tickets: znode.Join(l.TicketsDir, name)}
}

// Priority is the chain of the items with a priority: a lane, or the base chain for 0.
func (l *Layout) Priority(priority int) Chain {
	if priority == 0 {
		return l.Base
	}
	return l.Lane(strconv.Itoa(priority))
}

// ItemOf is the item with a node.
func (l *Layout) ItemOf(node string) Item {
	segment, name := znode.Split(node)
	dir, number := znode.Split(segment)
	chain := l.Base
	if _, lane := znode.Split(dir); dir != chain.Dir {
		chain = l.Lane(lane)
	}
	n, _ := ParseNumber(number, "") // the path was made by this package
	k, _ := ItemNumber(name)
	return Item{chain.Segment(n), k}
}

// SecondDir is the directory of the delayed items that are due at a second of Unix time.
func (l *Layout) SecondDir(second int64) string {
	return znode.Join(l.HourDir(second/3600), FormatNumber(second))
}

// HourDir is the directory of the delayed items that are due in an hour of Unix time.
func (l *Layout) HourDir(hour int64) string { return znode.Join(l.DelayedDir, FormatNumber(hour)) }

// HasTicket reports whether a path is that of a ticket of this queue.
func (l *Layout) HasTicket(path string) bool { return strings.HasPrefix(path, l.TicketsDir+"/") }

// idShards is the number of directories in a bucket of remembered ids.
const idShards = 64

// IDBucketDir is the directory of the bucket of remembered ids with a number.
func (l *Layout) IDBucketDir(bucket int64) string { return znode.Join(l.IDsDir, FormatNumber(bucket)) }

// MakeIDBucketOps make a bucket of remembered ids.
func (l *Layout) MakeIDBucketOps(bucket int64) []framework.Op {
	dir := l.IDBucketDir(bucket)
	ops := []framework.Op{framework.CreateOp(dir, nil, framework.Persistent)}
	for i := range int64(idShards) {
		ops = append(ops, framework.CreateOp(znode.Join(dir, FormatNumber(i)), nil, framework.Persistent))
	}
	return ops
}

// IDNode is an id's node in a bucket.
func (l *Layout) IDNode(bucket int64, id string) string {
	shard := FormatNumber(int64(sha256.Sum256([]byte(id))[0]) % idShards)
	return znode.Join(znode.Join(l.IDBucketDir(bucket), shard), hashedID(id))
}

// hashedID is an id as a part of a node's name.
func hashedID(id string) string {
	h := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(h[:16])
}

// CancelPrefix begins the names of the marks of an item with an id. The time of the put keeps the
// marks of one item from another with the same id, which is put after the first id was forgotten.
func (h Header) CancelPrefix() string {
	return hashedID(h.ID) + "-" + strconv.FormatInt(h.Put, 10) + "-"
}

// CheckExists is refused after the queue was dropped. It goes with each creation of a node below
// the queue's: waiters for a lock of a dropped queue make the queue's node again, without a record.
func (l *Layout) CheckExists() framework.Op {
	return framework.CheckOp(l.ItemsDir, framework.AnyVersion)
}

// SignalLanes tells the consumers that a lane may have an item without a ticket.
func (l *Layout) SignalLanes() framework.Op {
	return framework.SetOp(l.LanesDir, nil, framework.AnyVersion)
}

// SignalRecoverer tells the recoverer that a ticket has gone while its consumer stays.
func (l *Layout) SignalRecoverer() framework.Op {
	return framework.SetOp(l.TicketsDir, nil, framework.AnyVersion)
}

// SignalDelayed tells the mover of delayed items that there is another one.
func (l *Layout) SignalDelayed() framework.Op {
	return framework.SetOp(l.DelayedDir, nil, framework.AnyVersion)
}

// MakeOps make the queue's nodes, except its own: the directories, and the first segment.
func (l *Layout) MakeOps(bounded bool) (ops []framework.Op) {
	for _, dir := range []string{l.ItemsDir, l.TicketsDir, l.LanesDir, l.DelayedDir} {
		ops = append(ops, framework.CreateOp(dir, nil, framework.Persistent))
	}
	if bounded {
		ops = append(ops, framework.CreateOp(l.InNode, EncodeIn(0, false), framework.Persistent),
			framework.CreateOp(l.OutNode, nil, framework.Persistent),
			framework.CreateOp(l.PlacesDir, nil, framework.Persistent))
	}
	ops = append(ops, framework.CreateOp(l.Base.Tickets, nil, framework.Persistent))
	return append(ops, l.Base.Segment(0).MakeOps()...)
}

// Chain is a chain of numbered segments of items below one directory. A queue has the base
// chain, with the items in the order of their puts; a lane for each priority, and one for returned
// items; and the dead letters.
type Chain struct {
	Dir     string
	Tickets string // the directory of its tickets' segments; "" for the dead letters, which have no tickets
}

// Name is the chain's name within its queue.
func (c Chain) Name() string {
	_, name := znode.Split(c.Dir)
	return name
}

// Segment is a segment of the chain.
func (c Chain) Segment(n int64) Segment { return Segment{c, n} }

// MakeOps make the directories of a lane.
func (c Chain) MakeOps() []framework.Op {
	ops := []framework.Op{framework.CreateOp(c.Dir, nil, framework.Persistent)}
	if c.Tickets != "" {
		ops = append(ops, framework.CreateOp(c.Tickets, nil, framework.Persistent))
	}
	return append(ops, c.Segment(0).MakeOps()...)
}

// Rank orders the chains: items of a higher rank go first. redo is the highest, then the
// priorities, then the base chain with 0.
func (c Chain) Rank() int64 {
	name := c.Name()
	if name == redoLane {
		return math.MaxInt64
	}
	priority, _ := lanePriority(name)
	return priority
}

// CompareChains orders chains as consumers get their items.
func CompareChains(a, b Chain) int { return cmp.Compare(b.Rank(), a.Rank()) }

// isLane reports whether a lane can have a name.
func isLane(name string) bool {
	_, isPriority := lanePriority(name)
	return isPriority || name == redoLane
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

// Segment names a segment of a chain. Writers create items in the last segment, whose directory
// has the data version 0; a segment is closed by a write to its directory.
type Segment struct {
	Chain  Chain
	Number int64
}

// Dir is the directory of the segment's items.
func (s Segment) Dir() string { return znode.Join(s.Chain.Dir, FormatNumber(s.Number)) }

// TicketDir is the directory of the segment's tickets.
func (s Segment) TicketDir() string { return znode.Join(s.Chain.Tickets, FormatNumber(s.Number)) }

// Item is the item with a number.
func (s Segment) Item(number int64) Item { return Item{s, number} }

// ItemNode is the node of the item with a number.
func (s Segment) ItemNode(number int64) string { return ItemPath(s.Dir(), number) }

// Next is the segment behind this one.
func (s Segment) Next() Segment { return s.Chain.Segment(s.Number + 1) }

// CheckOpen is refused once the segment was closed or removed.
func (s Segment) CheckOpen() framework.Op { return framework.CheckOp(s.Dir(), 0) }

// AppendOp creates an item at the segment's end.
func (s Segment) AppendOp(data []byte) framework.Op { return AppendOp(s.Dir(), data) }

// MakeOps make the segment.
func (s Segment) MakeOps() []framework.Op {
	ops := []framework.Op{framework.CreateOp(s.Dir(), nil, framework.Persistent)}
	if s.Chain.Tickets != "" {
		ops = append(ops, framework.CreateOp(s.TicketDir(), nil, framework.Persistent))
	}
	return ops
}

// CloseOp closes the segment.
func (s Segment) CloseOp() framework.Op { return framework.SetOp(s.Dir(), []byte("closed"), 0) }

// CloseOps close the segment and make the next one.
func (s Segment) CloseOps() []framework.Op {
	return append([]framework.Op{s.CloseOp()}, s.Next().MakeOps()...)
}

// Item names an item by its segment, and its number in the segment.
type Item struct {
	Segment Segment
	Number  int64
}

// Node is the item's node.
func (i Item) Node() string { return i.Segment.ItemNode(i.Number) }

// CompareItems orders items as consumers get them.
func CompareItems(a, b Item) int {
	return cmp.Or(CompareChains(a.Segment.Chain, b.Segment.Chain), cmp.Compare(a.Segment.Number, b.Segment.Number),
		cmp.Compare(a.Number, b.Number))
}

// ItemPath is the node of the item with a number in a directory of items.
func ItemPath(dir string, number int64) string { return dir + "/" + itemPrefix + FormatNumber(number) }

// AppendOp creates an item at the end of a directory of items.
func AppendOp(dir string, data []byte) framework.Op {
	return framework.CreateOp(znode.Join(dir, itemPrefix), data, framework.PersistentSequential)
}

// ItemNumber reads the name of an item's node.
func ItemNumber(name string) (int64, bool) { return ParseNumber(name, itemPrefix) }

// TicketName is the name with which a ticket is created; the servers append its number. count keeps
// the tickets of one consumer session apart.
func TicketName(consumer string, count int64) string {
	return ticketPrefix + consumer + "." + strconv.FormatInt(count, 16) + "-"
}

// TicketNumber reads the number at the end of a ticket's name, t-<id>-#.
func TicketNumber(name string) (int64, bool) {
	if !strings.HasPrefix(name, ticketPrefix) || len(name) < len(ticketPrefix)+digits {
		return 0, false
	}
	return ParseNumber(name[len(name)-digits:], "")
}

// digits is the length of the number at the end of a sequential node's name.
const digits = 10

// FormatNumber writes a number as the servers do in the name of a sequential node.
func FormatNumber(n int64) string {
	if n < 0 {
		return fmt.Sprintf("%0*d", digits, n)
	}
	s := strconv.FormatInt(n, 10)
	return "0000000000"[:max(0, digits-len(s))] + s
}

// ParseNumber reads a name that consists of a prefix and ten digits.
func ParseNumber(name, prefix string) (int64, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok || len(text) != digits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// ChildrenEver is the number of children that a node has had in its life, removed ones included.
func ChildrenEver(stat framework.Stat) int64 {
	return (int64(stat.Cversion) + int64(stat.NumChildren)) / 2
}
