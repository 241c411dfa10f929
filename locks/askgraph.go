package locks

import (
	"cmp"
	"slices"

	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// askGraph is a wait-for graph of asks, as one series of reads has shown it: their records, and the
// nodes that the records name.
//
// An ask waits for each holder of its lock: for the nodes before its own in the line that records
// name as held. It is stuck if one of those holders is stuck. A semaphore's ask waits for a number
// of permits of any holders: it is stuck if the stuck holders leave too few permits, or if an ask
// before it in the line is stuck.
//
// The reads are not of one moment. A cycle is certain if each of its asks has confirmed that it
// still waited, and that its caller still held its locks, after the last transaction that made the
// cycle: see certainCycle.
type askGraph struct {
	root      string
	asks      []*seenAsk
	locks     map[string]bool // the locks whose asks have been read
	truncated bool            // there are maxAsks, or more

	records map[string]*seenAsk         // asks by their records' paths
	holders map[string][]*seenAsk       // asks by the locks that their callers hold
	writers map[string][]seenContender  // writers in the lines of readers that ask
	permits map[string]seenPermitRecord // of semaphores
	edges   askEdges                    // which ask waits for which; see addEdges
	back    askEdges                    // the same from the other end
	cycles  map[*seenAsk]askSet         // of the asks in deadlocks
}

// askEdges are pairs of asks.
type askEdges map[*seenAsk]map[*seenAsk]int64

// seenAsk is one ask of a graph.
type seenAsk struct {
	askRecord
	path    string // of the record
	number  int64  // the transaction that created the record
	session int64
	carried bool // it names locks of another session as held (WithHeldLocks)
}

// seenContender is a contender of a graph's line.
type seenContender struct {
	waitline.Position
	zxid int64 // the transaction that created its node
}

// seenPermitRecord is the number of permits of a graph's semaphore.
type seenPermitRecord struct {
	permits int
	zxid    int64 // of the last change
}

// addEdges finds which ask waits for which. The value of an edge is the last of the transactions
// that made it.
func (g *askGraph) addEdges() {
	g.edges, g.back, g.records = askEdges{}, askEdges{}, map[string]*seenAsk{}
	for _, a := range g.asks {
		g.records[a.path] = a
		g.edges[a], g.back[a] = map[*seenAsk]int64{}, map[*seenAsk]int64{}
	}
	waiting := map[string][]*seenAsk{} // in the lines of semaphores
	for _, a := range g.asks {
		for _, b := range g.holders[a.Lock] {
			g.addEdge(a, b, g.waitsForHolder(a, b))
		}
		if a.Permits > 0 {
			waiting[a.Lock] = append(waiting[a.Lock], a)
		}
	}
	for _, line := range waiting {
		for _, a := range line {
			for _, b := range line {
				if isAhead(b.Node, a.Node) {
					g.addEdge(a, b, max(a.Zxid, b.Zxid))
				}
			}
		}
	}
}

// addEdge notes that a has waited for b since a transaction, or later if it is known to. 0 is none.
func (g *askGraph) addEdge(a, b *seenAsk, zxid int64) {
	if zxid = max(zxid, g.edges[a][b]); zxid != 0 {
		g.edges[a][b], g.back[b][a] = zxid, zxid
	}
}

// waitsForHolder returns the transaction since which a has waited for a lock that b's caller holds,
// or 0 if it does not wait for one.
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

// waitsBehind returns the transaction since which a has waited in line for the holder of a node, or
// 0 if it does not wait for that holder.
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

// positionOf returns a node's position in its line.
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

// findCycles finds the deadlock of each ask that is in one. All asks of a deadlock have the same.
func (g *askGraph) findCycles() {
	g.cycles = map[*seenAsk]askSet{}
	all := askSet{}
	for _, a := range g.asks {
		all[a] = true
	}
	stuck := g.stuckAmong(all)
	for _, a := range g.asks {
		if !stuck[a] || g.cycles[a] != nil {
			continue
		}
		cycle := g.cycleOf(a, stuck)
		for b := range cycle {
			g.cycles[b] = cycle
		}
	}
}

// cycleOf returns the asks of the deadlock that contains me, among some asks: each is stuck as long
// as the others wait, and each reaches each other along the edges. It is empty if me is in no
// deadlock.
func (g *askGraph) cycleOf(me *seenAsk, among askSet) askSet {
	for {
		stuck := g.stuckAmong(among)
		if !stuck[me] {
			return nil
		}
		cycle, back := reachableFrom(me, stuck, g.edges), reachableFrom(me, stuck, g.back)
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

// stuckAmong returns the asks that are stuck as long as all the given ones wait.
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

// isStuck reports whether an ask cannot be granted as long as the stuck ones wait.
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

// reachableFrom returns the asks of a set that one ask reaches along some edges, itself included.
func reachableFrom(from *seenAsk, within askSet, edges askEdges) askSet {
	reached := askSet{from: true}
	for ahead := []*seenAsk{from}; len(ahead) > 0; ahead = ahead[1:] {
		for b := range edges[ahead[0]] {
			if within[b] && !reached[b] {
				reached[b] = true
				ahead = append(ahead, b)
			}
		}
	}
	return reached
}

// completedBy returns the last of the transactions that made a cycle.
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

// certainCycle returns the cycle of an ask if it is certain, or a smaller one that is. waitsNow
// says that the ask is known to wait now; otherwise it must have confirmed that like the others.
//
// If each ask of a cycle has confirmed that it still waited, for a caller that still held its
// locks, after the last transaction that made the cycle, then the whole cycle existed right after
// that transaction: also each node that was read, since it is older.
func (g *askGraph) certainCycle(me *seenAsk, cycle askSet, waitsNow bool) askSet {
	for len(cycle) > 0 {
		completed := g.completedBy(cycle)
		confirmed := askSet{}
		for a := range cycle {
			if a.Seen >= completed || waitsNow && a == me {
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

// awaitedAsks returns the asks of a cycle whose callers hold a lock that another one waits for.
// Every cycle has such asks. The others only stand in a semaphore's line before one of them: their
// failure would end nothing.
func (g *askGraph) awaitedAsks(cycle askSet) askSet {
	awaited := askSet{}
	for a := range cycle {
		for b := range g.edges[a] {
			if !cycle[b] {
				continue
			}
			if g.waitsForHolder(a, b) != 0 {
				awaited[b] = true
			}
		}
	}
	return awaited
}

// youngestAsk returns the ask of a cycle that has to fail, one of the awaited ones. It prefers asks
// that name locks of other sessions as held, also if such an ask only reports: a wrong text of
// WithHeldLocks fails no other ask. Among the others it chooses one that only reports if all do.
func (g *askGraph) youngestAsk(cycle askSet) *seenAsk {
	var found *seenAsk
	for a := range g.awaitedAsks(cycle) {
		if found == nil || compareByTurn(a, found) > 0 {
			found = a
		}
	}
	return found
}

// compareByTurn orders asks: the last one has to fail.
func compareByTurn(a, b *seenAsk) int {
	return cmp.Or(compareBool(a.carried, b.carried), compareBool(!a.Report, !b.Report), cmp.Compare(a.number, b.number))
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

// describeCycle lists a cycle from one of its asks on: the shortest way back to that ask, and the
// other awaited asks too if one waits for permits.
func (g *askGraph) describeCycle(from *seenAsk, cycle askSet) []DeadlockedAsk {
	path := g.shortestCycle(from, cycle)
	rest := []*seenAsk{}
	for a := range g.awaitedAsks(cycle) {
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
		d := DeadlockedAsk{Path: a.Lock, Holds: []string{}, Owner: printableExcerpt([]byte(a.Owner)),
			Host: printableExcerpt([]byte(a.Host)), PID: a.PID, Since: a.Since, Node: a.Node, Number: a.number}
		for _, h := range a.Held {
			if wanted[h.Lock] && !slices.Contains(d.Holds, h.Lock) {
				d.Holds = append(d.Holds, h.Lock)
			}
		}
		out[i] = d
	}
	return out
}

// shortestCycle returns the shortest way from an ask back to itself.
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
