package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// askGraph is a look at asks that wait for each other: at their records, and at the nodes that the records name.
//
// An ask waits for each holder of its lock: for the nodes before its own in the line that records name as held. Such an ask is stuck if one of
// those holders is. A semaphore's ask waits for so many permits of any holders: it is stuck if the permits that are left without the stuck holders'
// are too few, or if an ask before it in the line is stuck.
//
// The look is not of one moment. The cycle is certain if each ask of it has confirmed that it still waited, and that its caller still held,
// after the last transaction by which the cycle came about: see certainCycle.
type askGraph struct {
	root  string
	asks  []*seenAsk
	locks map[string]bool // whose asks have been read

	holders map[string][]*seenAsk       // by the lock that is held for them
	writers map[string][]seenContender  // writers in the lines of readers that ask
	permits map[string]seenPermitRecord // of semaphores
	edges   map[*seenAsk]map[*seenAsk]int64
}

// seenAsk is one ask whose place in the line is still there.
type seenAsk struct {
	askRecord
	path    string // of the record
	number  int64  // the transaction that created the record
	session int64
	carried bool // it counts on locks of another session
}

type seenContender struct {
	waitline.Position
	zxid int64
}

type seenPermitRecord struct {
	permits int
	zxid    int64 // of the last change
}

// Bounds of one look.
const (
	maxAsks     = 2000
	maxAskReads = 500 // nodes in one request
)

// askReader reads what a look needs: a session.
type askReader interface {
	Children(ctx context.Context, path string) ([]string, framework.Stat, error)
	GetAll(ctx context.Context, paths ...string) ([]framework.Node, error)
}

// lookFrom reads the asks that wait for these locks, those that wait for what is held for these asks, and so on.
func lookFrom(ctx context.Context, s askReader, root string, locks []string) (*askGraph, error) {
	g := &askGraph{root: root, locks: map[string]bool{}}
	for len(locks) > 0 && len(g.asks) < maxAsks {
		lock := locks[0]
		locks = locks[1:]
		if g.locks[lock] {
			continue
		}
		g.locks[lock] = true
		asks, err := readAsks(ctx, s, root, lock)
		if err != nil {
			return nil, err
		}
		for _, a := range asks {
			for _, h := range a.Held {
				locks = append(locks, h.Lock)
			}
		}
		g.asks = append(g.asks, asks...)
	}
	if len(g.asks) == 0 {
		return g, nil
	}
	return g, g.readNamedNodes(ctx, s)
}

// readAsks reads the records of the asks that wait for a lock. It skips what is no record.
func readAsks(ctx context.Context, s askReader, root, lock string) (asks []*seenAsk, err error) {
	dir := lock + askDirSuffix
	names, _, err := s.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if isAskName(name) {
			paths = append(paths, znode.Join(dir, name))
		}
	}
	nodes, err := readInBatches(ctx, s, paths)
	for i, n := range nodes {
		if n.Err != nil || n.Stat.EphemeralOwner == 0 {
			continue
		}
		if r, err := parseAskRecord(n.Data, root); err == nil && r.Lock == lock {
			asks = append(asks, &seenAsk{askRecord: r, path: paths[i], number: n.Stat.Czxid, session: n.Stat.EphemeralOwner})
		}
	}
	return asks, err
}

// readInBatches reads many nodes.
func readInBatches(ctx context.Context, s askReader, paths []string) (all []framework.Node, err error) {
	for batch := range slices.Chunk(paths, maxAskReads) {
		nodes, err := s.GetAll(ctx, batch...)
		if err != nil {
			return nil, err
		}
		all = append(all, nodes...)
	}
	return all, nil
}

// readNamedNodes reads the nodes that the asks name. It keeps the asks whose place is still there, and of what they hold what is still there: the
// nodes that these transactions created, not others of the same names.
func (g *askGraph) readNamedNodes(ctx context.Context, s askReader) error {
	var paths []string
	for _, a := range g.asks {
		if a.Node != "" {
			paths = append(paths, a.Node)
		}
		for _, h := range a.Held {
			paths = append(paths, h.Node)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	nodes, err := readInBatches(ctx, s, paths)
	if err != nil {
		return err
	}
	stats := map[string]framework.Stat{}
	for i, n := range nodes {
		if n.Err == nil {
			stats[paths[i]] = n.Stat
		}
	}
	var asks []*seenAsk
	g.holders = map[string][]*seenAsk{}
	for _, a := range g.asks {
		if a.Node != "" && stats[a.Node].Czxid != a.Zxid {
			continue
		}
		a.Held = slices.DeleteFunc(a.Held, func(h heldLock) bool { return stats[h.Node].Czxid != h.Zxid })
		for _, h := range a.Held {
			a.carried = a.carried || stats[h.Node].EphemeralOwner != a.session
			if of := g.holders[h.Lock]; len(of) == 0 || of[len(of)-1] != a {
				g.holders[h.Lock] = append(of, a)
			}
		}
		asks = append(asks, a)
	}
	g.asks = asks
	if err := g.readWriters(ctx, s); err != nil {
		return err
	}
	if err := g.readPermits(ctx, s); err != nil {
		return err
	}
	g.addEdges()
	return nil
}

// readWriters reads the writers in the lines in which readers ask: a reader waits for the readers that hold if a writer is between them.
func (g *askGraph) readWriters(ctx context.Context, s askReader) error {
	g.writers = map[string][]seenContender{}
	for _, a := range g.asks {
		p, ok := positionOf(a.Node)
		if _, known := g.writers[a.Lock]; !ok || known || !p.Kind.IsShared() {
			continue
		}
		names, _, err := s.Children(ctx, a.Lock)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		var writers []seenContender
		var paths []string
		for _, name := range names {
			if p, ok := waitline.ParsePosition(name); ok && !p.Kind.IsShared() {
				writers = append(writers, seenContender{Position: p})
				paths = append(paths, znode.Join(a.Lock, name))
			}
		}
		nodes, err := readInBatches(ctx, s, paths)
		if err != nil {
			return err
		}
		for i, n := range nodes {
			writers[i].zxid = n.Stat.Czxid // 0 if it is gone
		}
		g.writers[a.Lock] = slices.DeleteFunc(writers, func(w seenContender) bool { return w.zxid == 0 })
	}
	return nil
}

// readPermits reads the numbers of permits of the semaphores for which asks wait.
func (g *askGraph) readPermits(ctx context.Context, s askReader) error {
	g.permits = map[string]seenPermitRecord{}
	var locks, paths []string
	for _, a := range g.asks {
		if a.Permits > 0 && !slices.Contains(locks, a.Lock) {
			locks, paths = append(locks, a.Lock), append(paths, znode.Join(a.Lock, waitline.PermitsPart))
		}
	}
	nodes, err := readInBatches(ctx, s, paths)
	for i, n := range nodes {
		if n.Err == nil {
			g.permits[locks[i]] = seenPermitRecord{permitsIn(n.Data), n.Stat.Mzxid}
		}
	}
	return err
}

// addEdges finds which ask waits for which. Each edge has the last transaction by which it came about.
func (g *askGraph) addEdges() {
	g.edges = map[*seenAsk]map[*seenAsk]int64{}
	for _, a := range g.asks {
		g.edges[a] = map[*seenAsk]int64{}
		for _, b := range g.holders[a.Lock] {
			if zxid := g.waitsForHolder(a, b); zxid != 0 {
				g.edges[a][b] = zxid
			}
		}
		if a.Permits == 0 {
			continue
		}
		for _, b := range g.asks { // the line of the semaphore's waiters
			if b.Lock == a.Lock && b.Permits > 0 && isAhead(b.Node, a.Node) {
				g.edges[a][b] = max(g.edges[a][b], a.Zxid, b.Zxid)
			}
		}
	}
}

// waitsForHolder returns the transaction since when a waits for what is held for b, or 0 if it does not.
func (g *askGraph) waitsForHolder(a, b *seenAsk) (zxid int64) {
	for _, h := range b.Held {
		if h.Lock != a.Lock {
			continue
		}
		dir, _ := znode.Split(h.Node)
		switch {
		case a.Permits > 0: // any permit
			if dir == znode.Join(a.Lock, waitline.LeasesPart) {
				zxid = max(zxid, h.Zxid)
			}
		case a.Node == "": // a claim
			if h.Node == a.Lock {
				zxid = max(zxid, h.Zxid)
			}
		case a.Slice && h.Node == a.Node: // another turn
			zxid = max(zxid, h.Zxid)
		case dir == a.Lock:
			zxid = max(zxid, g.waitsBehind(a, h))
		}
	}
	return zxid
}

// waitsBehind returns the transaction since when a waits in line for the holder of a node, or 0 if it does not.
func (g *askGraph) waitsBehind(a *seenAsk, h heldLock) int64 {
	place, inLine := positionOf(a.Node)
	holder, ok := positionOf(h.Node)
	switch {
	case !inLine || !ok || !holder.IsBefore(place):
		return 0
	case holder.Blocks(place):
		return max(a.Zxid, h.Zxid)
	}
	for _, w := range g.writers[a.Lock] { // between two readers
		if holder.Blocks(w.Position) && w.Blocks(place) {
			return max(a.Zxid, h.Zxid, w.zxid)
		}
	}
	return 0
}

// positionOf is the position in line of a node.
func positionOf(node string) (waitline.Position, bool) {
	_, name := znode.Split(node)
	return waitline.ParsePosition(name)
}

// isAhead reports whether a node is before another one in their line.
func isAhead(node, of string) bool {
	p, ok := positionOf(node)
	q, also := positionOf(of)
	return ok && also && p.IsBefore(q)
}

// askSet is a set of asks.
type askSet map[*seenAsk]bool

// cycleOf returns the deadlock that an ask is in, of these asks: each of them is stuck as long as the others wait, and each waits for each other, perhaps by
// way of others. It is empty if there is none.
func (g *askGraph) cycleOf(me *seenAsk, among askSet) askSet {
	for {
		stuck := g.stuckAmong(among)
		if !stuck[me] {
			return nil
		}
		cycle := g.reachableFrom(me, stuck, func(a, b *seenAsk) bool { return g.edges[a][b] != 0 })
		back := g.reachableFrom(me, stuck, func(a, b *seenAsk) bool { return g.edges[b][a] != 0 })
		for a := range cycle {
			if !back[a] {
				delete(cycle, a)
			}
		}
		if len(cycle) == len(among) {
			return cycle
		}
		among = cycle
	}
}

// stuckAmong returns those that are stuck as long as all of these wait.
func (g *askGraph) stuckAmong(among askSet) askSet {
	stuck := askSet{}
	for a := range among {
		stuck[a] = true
	}
	for changed := true; changed; {
		changed = false
		for a := range stuck {
			if !g.isStuck(a, stuck) {
				delete(stuck, a)
				changed = true
			}
		}
	}
	return stuck
}

// isStuck reports whether an ask cannot be granted as long as these wait.
func (g *askGraph) isStuck(a *seenAsk, stuck askSet) bool {
	taken := map[string]bool{}
	for b := range g.edges[a] {
		if !stuck[b] {
			continue
		}
		if a.Permits == 0 || b.Lock == a.Lock && b.Permits > 0 && isAhead(b.Node, a.Node) {
			return true
		}
		for _, h := range b.Held {
			if dir, _ := znode.Split(h.Node); dir == znode.Join(a.Lock, waitline.LeasesPart) {
				taken[h.Node] = true
			}
		}
	}
	permits := g.permits[a.Lock].permits
	return a.Permits > 0 && permits > 0 && permits-len(taken) < a.Permits
}

// reachableFrom returns the asks of a set that one reaches, itself included.
func (g *askGraph) reachableFrom(from *seenAsk, within askSet, edge func(a, b *seenAsk) bool) askSet {
	reached := askSet{from: true}
	for ahead := []*seenAsk{from}; len(ahead) > 0; ahead = ahead[1:] {
		for b := range within {
			if !reached[b] && edge(ahead[0], b) {
				reached[b] = true
				ahead = append(ahead, b)
			}
		}
	}
	return reached
}

// completedBy is the last transaction by which a cycle came about.
func (g *askGraph) completedBy(cycle askSet) (zxid int64) {
	for a := range cycle {
		zxid = max(zxid, a.number, a.Zxid)
		if a.Permits > 0 {
			zxid = max(zxid, g.permits[a.Lock].zxid)
		}
		for b, edge := range g.edges[a] {
			if cycle[b] {
				zxid = max(zxid, edge)
			}
		}
	}
	return zxid
}

// certainCycle returns the cycle that an ask is in if it is certain. present says that the ask is known to wait now; otherwise it must have
// confirmed that like the others.
//
// When each ask of a cycle has confirmed that it still waited, for a caller that still held, after the last transaction by which the cycle came
// about, then all of it existed together right after that transaction: also each node that the look has found, since it is older.
func (g *askGraph) certainCycle(me *seenAsk, cycle askSet, present bool) askSet {
	for len(cycle) > 0 {
		completed := g.completedBy(cycle)
		confirmed := askSet{}
		for a := range cycle {
			if a.Seen >= completed || present && a == me {
				confirmed[a] = true
			}
		}
		if len(confirmed) == len(cycle) {
			return cycle
		}
		if !confirmed[me] {
			return nil
		}
		cycle = g.cycleOf(me, confirmed) // there may be a smaller one
	}
	return nil
}

// youngestAsk returns the ask of a cycle that fails. Asks that count on locks of other sessions come first: they are the only ones that what
// others claim to hold can harm. Asks that only report come last.
func youngestAsk(cycle askSet) *seenAsk {
	var found *seenAsk
	for a := range cycle {
		if found == nil || compareByTurn(a, found) > 0 {
			found = a
		}
	}
	return found
}

func compareByTurn(a, b *seenAsk) int {
	return cmp.Or(compareBool(!a.Report, !b.Report), compareBool(a.carried, b.carried), cmp.Compare(a.number, b.number))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// describeCycle lists a cycle from one of its asks on: the shortest way back to it, or all asks if permits are in play.
func (g *askGraph) describeCycle(from *seenAsk, cycle askSet) []DeadlockedAsk {
	path := g.shortestCycle(from, cycle)
	rest := []*seenAsk{}
	for a := range cycle {
		if !slices.Contains(path, a) {
			rest = append(rest, a)
		}
	}
	if slices.ContainsFunc(path, func(a *seenAsk) bool { return a.Permits > 0 }) {
		slices.SortFunc(rest, func(a, b *seenAsk) int { return cmp.Compare(a.number, b.number) })
		path = append(path, rest...)
	}
	wanted := map[string]bool{}
	for _, a := range path {
		wanted[a.Lock] = true
	}
	out := make([]DeadlockedAsk, len(path))
	for i, a := range path {
		d := DeadlockedAsk{Path: a.Lock, Holds: []string{}, Owner: printableExcerpt([]byte(a.Owner)), Host: printableExcerpt([]byte(a.Host)), PID: a.PID, Since: a.Since, Node: a.Node, Number: a.number}
		for _, h := range a.Held {
			if wanted[h.Lock] && !slices.Contains(d.Holds, h.Lock) {
				d.Holds = append(d.Holds, h.Lock)
			}
		}
		out[i] = d
	}
	return out
}

// shortestCycle is the shortest way from an ask back to itself.
func (g *askGraph) shortestCycle(from *seenAsk, cycle askSet) []*seenAsk {
	before := map[*seenAsk]*seenAsk{}
	for ahead := []*seenAsk{from}; len(ahead) > 0; ahead = ahead[1:] {
		a := ahead[0]
		if g.edges[a][from] != 0 {
			path := []*seenAsk{a}
			for a != from {
				a = before[a]
				path = append(path, a)
			}
			slices.Reverse(path)
			return path
		}
		for b := range g.edges[a] {
			if cycle[b] && b != from && before[b] == nil {
				before[b] = a
				ahead = append(ahead, b)
			}
		}
	}
	return []*seenAsk{from}
}
