package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// writeRequest is what belongs together in a transaction of the writer's: all of it happens, or nothing.
type writeRequest struct {
	session *framework.Session // that it belongs to, or nil for any
	guard   *locks.Lease       // that it happens under, or nil
	ops     []framework.Op
	with    []framework.Op // the caller's own, which come last: if one is refused the error is ErrRefused
	puts    []itemPut
	adds    int             // items that a bounded queue counts
	first   bool            // it is from the first in line for room
	desk    *strictConsumer // that claims an item for the first time by it, or nil
	id      string          // that nothing with it was put lately, or ""

	// then is called once with the outcome, in the order of the parts, by a goroutine that must not be held up.
	// The results are those of ops; nil when the reply was lost and the marker showed that the part was done.
	then func(results []framework.OpResult, err error)

	size  int
	state requestState // guarded by the writer's mutex
}

// retryCopy is a copy of a part that was refused, to be written anew.
func (p *writeRequest) retryCopy() *writeRequest {
	return &writeRequest{session: p.session, guard: p.guard, ops: p.ops, with: p.with, puts: p.puts, adds: p.adds, desk: p.desk, id: p.id}
}

// itemPut is one item for the end of a line, or for later.
type itemPut struct {
	line  itemLine
	after time.Duration
	due   time.Time // of after, once it was tried
	data  []byte
}

type requestState int

const (
	partQueued requestState = iota
	partSent
	partDone
)

// Bytes of a transaction.
const (
	maxTransaction = 512 << 10
	maxParts       = 1000
	opOverhead     = 200 // a path, an ACL, lengths
)

func (p *writeRequest) measureSize() {
	p.size = len(p.ops) * opOverhead
	for _, w := range p.puts {
		p.size += len(w.data) + opOverhead
	}
	for _, op := range p.with {
		p.size += op.Size() + opOverhead
	}
}

// transaction is a transaction made of parts.
type transaction struct {
	ops    []framework.Op
	owners []opOwner // of the operations
}

// opOwner tells whom an operation of a transaction belongs to: a part, a line's check, a guard, a strict consumer, the ids, the room; or the
// marker, if it is empty.
type opOwner struct {
	part  *writeRequest
	own   bool   // one of part.ops
	with  bool   // one of part.with
	index int    // in part.with
	later string // the directory of an item for later
	line  *itemLine
	guard *locks.Lease
	desk  *strictConsumer
	ids   bool
	room  bool
}

func (a *transaction) add(o opOwner, op framework.Op) {
	a.ops = append(a.ops, op)
	a.owners = append(a.owners, o)
}

// assemble puts first what the parts have in common, each thing once, then the parts in order.
func (w *writer) assemble(parts []*writeRequest) *transaction {
	a := &transaction{}
	a.add(opOwner{}, framework.SetOp(w.marker, w.nextMark(), w.version))
	guards, desks, lines, ids := map[*locks.Lease]bool{}, map[*strictConsumer]bool{}, map[string]bool{}, false
	for _, p := range parts {
		if p.guard != nil && !guards[p.guard] {
			guards[p.guard] = true
			a.add(opOwner{guard: p.guard}, p.guard.Guard())
		}
		if p.desk != nil && !desks[p.desk] {
			desks[p.desk] = true
			for _, op := range p.desk.firstClaimOps() {
				a.add(opOwner{desk: p.desk}, op)
			}
		}
		for _, u := range p.puts {
			if u.after == 0 && !lines[u.line.dir] {
				lines[u.line.dir] = true
				a.add(opOwner{line: &u.line}, u.line.checkOpen(w.tails[u.line.dir]))
			}
		}
		ids = ids || p.id != ""
	}
	if ids && w.remembers() {
		a.add(opOwner{ids: true}, w.ids.checkOpen())
	}
	if n := itemsAdded(parts); n > 0 && w.bounded() {
		a.add(opOwner{room: true}, w.room.useOps(n))
	}
	for _, p := range parts {
		w.addPart(a, p)
	}
	return a
}

func (w *writer) addPart(a *transaction, p *writeRequest) {
	for _, op := range p.ops {
		a.add(opOwner{part: p, own: true}, op)
	}
	if p.id != "" && w.remembers() {
		for _, op := range w.ids.rememberOps(p.id) {
			a.add(opOwner{part: p, ids: true}, op)
		}
	}
	for i := range p.puts {
		u := &p.puts[i]
		if u.after > 0 {
			if u.due.IsZero() {
				u.due = w.q.clock.now().Add(u.after)
			}
			dir := w.delayDir(u.due)
			a.add(opOwner{part: p, later: dir}, framework.CreateOp(framework.Join(dir, itemPrefix), u.data, framework.PersistentSequential))
			continue
		}
		a.add(opOwner{part: p, line: &u.line}, framework.CreateOp(u.line.appendPath(w.tails[u.line.dir]), u.data, framework.PersistentSequential))
	}
	for i, op := range p.with {
		a.add(opOwner{part: p, with: true, index: i}, op)
	}
}

// itemsAdded is how many items parts add to a bounded queue.
func itemsAdded(parts []*writeRequest) (n int) {
	for _, p := range parts {
		n += p.adds
	}
	return n
}

// results divides the results among the parts, each in the order of its own operations.
func (a *transaction) results(all []framework.OpResult) map[*writeRequest][]framework.OpResult {
	by := map[*writeRequest][]framework.OpResult{}
	for i, o := range a.owners {
		if o.own && i < len(all) {
			by[o.part] = append(by[o.part], all[i])
		}
	}
	return by
}

// fullSegments are the lines of which an item got a number at the bound or beyond.
func (a *transaction) fullSegments(all []framework.OpResult, bound int64) (full []itemLine) {
	seen := map[string]bool{}
	for i, o := range a.owners {
		if o.part == nil || o.line == nil || i >= len(all) || seen[o.line.dir] {
			continue
		}
		_, name := framework.Split(all[i].Path)
		if n, ok := parseNumber(name, itemPrefix); ok && n >= bound-1 {
			seen[o.line.dir] = true
			full = append(full, *o.line)
		}
	}
	return full
}

// What one put may hold, of what the codec makes. With headers, names and ACLs that is less than the servers' limit.
const (
	maxBatch      = 1000
	maxBatchBytes = 500_000
)

// newPutRequest makes the part that puts items.
func (q *engine) newPutRequest(how putting, items [][]byte) (*writeRequest, error) {
	p := &writeRequest{adds: len(items), id: how.header.ID, with: how.with}
	if p.id != "" && len(items) > 1 {
		return nil, fmt.Errorf("%w: WithID is for single items, not for a batch of %d", ErrOption, len(items))
	}
	to, ops := q.putTarget(how.header.Priority, how.after)
	p.ops = ops
	for _, data := range items {
		to.data = data
		p.puts = append(p.puts, to)
	}
	return p, nil
}

// putTarget is where an item of a priority goes, and whom to tell.
func (q *engine) putTarget(priority int, after time.Duration) (itemPut, []framework.Op) {
	switch {
	case after > 0:
		return itemPut{after: after}, []framework.Op{q.signalDelayedOp()}
	case priority > 0:
		return itemPut{line: q.laneNamed(strconv.Itoa(priority))}, []framework.Op{q.signalLanesOp()}
	}
	return itemPut{line: q.base}, nil
}

// putAndWait writes a part and waits, also for room unless the queue refuses.
func (q *engine) putAndWait(ctx context.Context, p *writeRequest) error {
	_, err := q.writer.do(ctx, p)
	if !errors.Is(err, ErrFull) || q.refuses || p.adds > q.storedRecord().Capacity {
		return err
	}
	return q.roomLine.put(ctx, p)
}
