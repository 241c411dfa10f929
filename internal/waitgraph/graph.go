package waitgraph

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// graph is a wait-for graph of requests, as one series of reads has shown it: their records, and
// the nodes that the records name.
//
// A request waits for each holder of its lock: for the nodes before its own in the line that
// records name as held. It is stuck if one of those holders is stuck. A semaphore's request waits
// for a number of permits of any holders: it is stuck if the stuck holders leave too few permits,
// or if a request before it in the line is stuck.
//
// The reads are not of one moment. A cycle is certain if each of its requests has confirmed that it
// still waited, and that its caller still held its locks, after the last transaction that made the
// cycle: see certainCycle.
type graph struct {
	root      string
	requests  []*vertex
	locks     map[string]bool // the locks whose requests have been read
	truncated bool            // there are maxRequests, or more

	records map[string]*vertex        // requests by their records' paths
	holders map[string][]*vertex      // requests by the locks that their callers hold
	writers map[string][]queuedWriter // writers in the lines of requesting readers
	permits map[string]permitCount    // of semaphores
	edges   edgeSet                   // which request waits for which; see addEdges
	back    edgeSet                   // the same from the other end
	cycles  map[*vertex]vertexSet     // of the requests in deadlocks
}

// edgeSet are pairs of requests.
type edgeSet map[*vertex]map[*vertex]int64

// vertex is one request of a graph.
type vertex struct {
	record
	path    string // of the record
	number  int64  // the transaction that created the record
	session framework.SessionID
	carried bool // it names locks of another session as held (WithHeldLocks)
}

// queuedWriter is a contender of a graph's line.
type queuedWriter struct {
	waitline.Position
	zxid int64 // the transaction that created its node
}

// permitCount is the number of permits of a graph's semaphore.
type permitCount struct {
	permits int
	zxid    int64 // of the last change
}

// Waiter describes a request of a deadlock.
type Waiter struct {
	Path   string   // of the lock that it waits for
	Holds  []string // the locks of the deadlock that its caller holds
	Owner  string   // Owner, Host and PID are of the requesting process
	Host   string
	PID    int
	Since  time.Time // when it began to wait, by its own clock
	Node   string    // in the line, or ""
	Number int64     // rises from request to request
}

// Deadlock is a cycle of requests that wait for each other. It begins with the victim.
type Deadlock struct {
	Cycle   []Waiter
	Lasting bool // the victim only reports the deadlock
}

// addEdges finds which request waits for which. The value of an edge is the last of the
// transactions that made it.
func (g *graph) addEdges() {
	g.edges, g.back, g.records = edgeSet{}, edgeSet{}, map[string]*vertex{}
	for _, a := range g.requests {
		g.records[a.path] = a
		g.edges[a], g.back[a] = map[*vertex]int64{}, map[*vertex]int64{}
	}
	waiting := map[string][]*vertex{} // in the lines of semaphores
	for _, a := range g.requests {
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

// addEdge records that a has waited for b since a transaction, or later if it is known to. 0 is
// none.
func (g *graph) addEdge(a, b *vertex, zxid int64) {
	if zxid = max(zxid, g.edges[a][b]); zxid != 0 {
		g.edges[a][b], g.back[b][a] = zxid, zxid
	}
}

// waitsForHolder returns the transaction since which a has waited for a lock that b's caller holds,
// or 0 if it does not wait for one.
func (g *graph) waitsForHolder(a, b *vertex) (zxid int64) {
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
func (g *graph) waitsBehind(a *vertex, h Held) int64 {
	own, inLine := waitline.PositionOf(a.Node)
	holder, ok := waitline.PositionOf(h.Node)
	switch {
	case !inLine || !ok || !holder.IsBefore(own):
		return 0
	case holder.Blocks(own):
		return max(a.Zxid, h.Zxid)
	}
	for _, w := range g.writers[a.Lock] { // between two readers
		if holder.Blocks(w.Position) && w.Blocks(own) {
			return max(a.Zxid, h.Zxid, w.zxid)
		}
	}
	return 0
}

// isAhead reports whether a node is before another one in their line.
func isAhead(node, of string) bool {
	p, ok := waitline.PositionOf(node)
	q, also := waitline.PositionOf(of)
	return ok && also && p.IsBefore(q)
}

// vertexSet is a set of requests.
type vertexSet map[*vertex]bool

// findCycles finds the deadlock of each request that is in one. All requests of a deadlock have the
// same.
func (g *graph) findCycles() {
	g.cycles = map[*vertex]vertexSet{}
	all := vertexSet{}
	for _, a := range g.requests {
		all[a] = true
	}
	stuck := g.stuckAmong(all)
	for _, a := range g.requests {
		if !stuck[a] || g.cycles[a] != nil {
			continue
		}
		cycle := g.cycleOf(a, stuck)
		for b := range cycle {
			g.cycles[b] = cycle
		}
	}
}

// cycleOf returns the requests of the deadlock that contains me, among some requests: each is stuck
// as long as the others wait, and each reaches each other along the edges. It is empty if me is in
// no deadlock.
func (g *graph) cycleOf(me *vertex, among vertexSet) vertexSet {
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

// stuckAmong returns the requests that are stuck as long as all the given ones wait.
func (g *graph) stuckAmong(among vertexSet) vertexSet {
	stuck := vertexSet{}
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

// isStuck reports whether a request cannot be granted as long as the stuck ones wait.
func (g *graph) isStuck(a *vertex, stuck vertexSet) bool {
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

// reachableFrom returns the requests of a set that one request reaches along some edges, itself
// included.
func reachableFrom(from *vertex, within vertexSet, edges edgeSet) vertexSet {
	reached := vertexSet{from: true}
	for ahead := []*vertex{from}; len(ahead) > 0; ahead = ahead[1:] {
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
func (g *graph) completedBy(cycle vertexSet) (zxid int64) {
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

// certainCycle returns the cycle of a request if it is certain, or a smaller one that is. waitsNow
// says that the request is known to wait now; otherwise it must have confirmed that like the
// others.
//
// If each request of a cycle has confirmed that it still waited, for a caller that still held its
// locks, after the last transaction that made the cycle, then the whole cycle existed right after
// that transaction: also each node that was read, since it is older.
func (g *graph) certainCycle(me *vertex, cycle vertexSet, waitsNow bool) vertexSet {
	for len(cycle) > 0 {
		completed := g.completedBy(cycle)
		confirmed := vertexSet{}
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

// awaited returns the requests of a cycle whose callers hold a lock that another one waits for.
// Every cycle has such requests. The others only stand in a semaphore's line before one of them:
// their failure would end nothing.
func (g *graph) awaited(cycle vertexSet) vertexSet {
	awaited := vertexSet{}
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

// victim returns the request of a cycle that has to fail, one of the awaited ones. It prefers
// requests that name locks of other sessions as held, also if such a request only reports: a wrong
// text of WithHeldLocks fails no other request. Among the others it chooses one that only reports
// if all do.
func (g *graph) victim(cycle vertexSet) *vertex {
	var found *vertex
	for a := range g.awaited(cycle) {
		if found == nil || compareVictims(a, found) > 0 {
			found = a
		}
	}
	return found
}

// compareVictims orders requests: the last one has to fail.
func compareVictims(a, b *vertex) int {
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

// describeCycle lists a cycle from one of its requests on: the shortest way back to that request,
// and the other awaited requests too if one waits for permits.
func (g *graph) describeCycle(from *vertex, cycle vertexSet) []Waiter {
	path := g.shortestCycle(from, cycle)
	rest := []*vertex{}
	for a := range g.awaited(cycle) {
		if !slices.Contains(path, a) {
			rest = append(rest, a)
		}
	}
	if slices.ContainsFunc(path, func(a *vertex) bool { return a.Permits > 0 }) {
		slices.SortFunc(rest, func(a, b *vertex) int { return cmp.Compare(a.number, b.number) })
		path = append(path, rest...)
	}
	wanted := map[string]bool{}
	for _, a := range path {
		wanted[a.Lock] = true
	}
	out := make([]Waiter, len(path))
	for i, a := range path {
		d := Waiter{Path: a.Lock, Holds: []string{}, Owner: a.Identity, Host: a.Host, PID: a.PID, Since: a.Since,
			Node: a.Node, Number: a.number}
		for _, h := range a.Held {
			if wanted[h.Lock] && !slices.Contains(d.Holds, h.Lock) {
				d.Holds = append(d.Holds, h.Lock)
			}
		}
		out[i] = d
	}
	return out
}

// shortestCycle returns the shortest way from a request back to itself.
func (g *graph) shortestCycle(from *vertex, cycle vertexSet) []*vertex {
	before := map[*vertex]*vertex{}
	for ahead := []*vertex{from}; len(ahead) > 0; ahead = ahead[1:] {
		a := ahead[0]
		if g.edges[a][from] != 0 {
			path := []*vertex{a}
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
	return []*vertex{from}
}

// deadlocks returns the certain deadlocks of the graph. uncertain says that there may be more.
func (g *graph) deadlocks() (found []Deadlock, uncertain bool) {
	all, reported := vertexSet{}, vertexSet{}
	for _, a := range g.requests {
		all[a] = true
	}
	for _, a := range g.requests {
		cycle := g.cycleOf(a, all)
		if len(cycle) == 0 || reported[a] {
			continue
		}
		certain := g.certainCycle(a, cycle, false)
		if len(certain) == 0 {
			uncertain = true
			continue
		}
		for b := range certain {
			reported[b] = true
		}
		victim := g.victim(certain)
		found = append(found, Deadlock{g.describeCycle(victim, certain), victim.Report})
	}
	return found, uncertain
}
