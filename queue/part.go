package queue

import (
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// part is what belongs together in a transaction of the writer's: all of it happens, or nothing.
type part struct {
	session *framework.Session // that it belongs to, or nil for any
	guard   *locks.Lease       // that it happens under, or nil
	ops     []framework.Op
	with    []framework.Op // the caller's own, which come last: if one is refused the error is ErrRefused
	puts    []put
	adds    int    // items that a bounded queue counts
	first   bool   // it is from the first in line for room
	desk    *desk  // that claims an item for the first time by it, or nil
	id      string // that nothing with it was put lately, or ""

	// then is called once with the outcome, in the order of the parts, by a goroutine that must not be held up.
	// The results are those of ops; nil when the reply was lost and the marker showed that the part was done.
	then func(results []framework.OpResult, err error)

	size  int
	state partState // guarded by the writer's mutex
}

// again is a copy of a part that was refused, to be written anew.
func (p *part) again() *part {
	return &part{session: p.session, guard: p.guard, ops: p.ops, with: p.with, puts: p.puts, adds: p.adds, desk: p.desk, id: p.id}
}

// put is one item for the end of a line, or for later.
type put struct {
	line  line
	after time.Duration
	due   time.Time // of after, once it was tried
	data  []byte
}

type partState int

const (
	partQueued partState = iota
	partSent
	partDone
)

// Bytes of a transaction.
const (
	maxTransaction = 512 << 10
	maxParts       = 1000
	opOverhead     = 200 // a path, an ACL, lengths
)

func (p *part) measure() {
	p.size = len(p.ops) * opOverhead
	for _, w := range p.puts {
		p.size += len(w.data) + opOverhead
	}
	for _, op := range p.with {
		p.size += op.Size() + opOverhead
	}
}

// assembly is a transaction made of parts.
type assembly struct {
	ops    []framework.Op
	owners []owner // of the operations
}

// owner tells whom an operation of a transaction belongs to: a part, a line's check, a guard, a desk, the ids, the room; or the
// marker, if it is empty.
type owner struct {
	part  *part
	own   bool   // one of part.ops
	with  bool   // one of part.with
	index int    // in part.with
	later string // the directory of an item for later
	line  *line
	guard *locks.Lease
	desk  *desk
	ids   bool
	room  bool
}

func (a *assembly) add(o owner, op framework.Op) {
	a.ops = append(a.ops, op)
	a.owners = append(a.owners, o)
}

// assemble puts first what the parts have in common, each thing once, then the parts in order.
func (w *writer) assemble(parts []*part) *assembly {
	a := &assembly{}
	a.add(owner{}, framework.SetOp(w.marker, w.mark(), w.version))
	guards, desks, lines, ids := map[*locks.Lease]bool{}, map[*desk]bool{}, map[string]bool{}, false
	for _, p := range parts {
		if p.guard != nil && !guards[p.guard] {
			guards[p.guard] = true
			a.add(owner{guard: p.guard}, p.guard.Guard())
		}
		if p.desk != nil && !desks[p.desk] {
			desks[p.desk] = true
			for _, op := range p.desk.claiming() {
				a.add(owner{desk: p.desk}, op)
			}
		}
		for _, u := range p.puts {
			if u.after == 0 && !lines[u.line.dir] {
				lines[u.line.dir] = true
				a.add(owner{line: &u.line}, u.line.checkOpen(w.tails[u.line.dir]))
			}
		}
		ids = ids || p.id != ""
	}
	if ids && w.remembers() {
		a.add(owner{ids: true}, w.ids.checkOpen())
	}
	if n := adding(parts); n > 0 && w.bounded() {
		a.add(owner{room: true}, w.room.use(n))
	}
	for _, p := range parts {
		w.addPart(a, p)
	}
	return a
}

func (w *writer) addPart(a *assembly, p *part) {
	for _, op := range p.ops {
		a.add(owner{part: p, own: true}, op)
	}
	if p.id != "" && w.remembers() {
		for _, op := range w.ids.ops(p.id) {
			a.add(owner{part: p, ids: true}, op)
		}
	}
	for i := range p.puts {
		u := &p.puts[i]
		if u.after > 0 {
			if u.due.IsZero() {
				u.due = w.q.clock.now().Add(u.after)
			}
			dir := w.laterDir(u.due)
			a.add(owner{part: p, later: dir}, framework.CreateOp(framework.Join(dir, itemPrefix), u.data, framework.PersistentSequential))
			continue
		}
		a.add(owner{part: p, line: &u.line}, framework.CreateOp(u.line.appending(w.tails[u.line.dir]), u.data, framework.PersistentSequential))
	}
	for i, op := range p.with {
		a.add(owner{part: p, with: true, index: i}, op)
	}
}

// adding is how many items parts add to a bounded queue.
func adding(parts []*part) (n int) {
	for _, p := range parts {
		n += p.adds
	}
	return n
}

// results divides the results among the parts, each in the order of its own operations.
func (a *assembly) results(all []framework.OpResult) map[*part][]framework.OpResult {
	by := map[*part][]framework.OpResult{}
	for i, o := range a.owners {
		if o.own && i < len(all) {
			by[o.part] = append(by[o.part], all[i])
		}
	}
	return by
}

// filled are the lines of which an item got a number at the bound or beyond.
func (a *assembly) filled(all []framework.OpResult, bound int64) (full []line) {
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
