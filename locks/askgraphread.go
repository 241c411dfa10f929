package locks

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxAsks bounds one graph.
const maxAsks = 2000

// sessionReads reads on a session, and counts the requests.
type sessionReads struct {
	s     *framework.Session
	count func(requests int)
}

// nodesPerRequest is how many nodes a request is taken to read: GetAll divides large answers.
const nodesPerRequest = 250

func (r sessionReads) GetAll(ctx context.Context, paths ...string) ([]framework.Node, error) {
	r.count(1 + len(paths)/nodesPerRequest)
	return r.s.GetAll(ctx, paths...)
}

func (r sessionReads) ListAll(ctx context.Context, paths ...string) ([]primitives.Listing, error) {
	r.count(1 + len(paths)/nodesPerRequest)
	return r.s.Primitives().ListAll(ctx, paths...)
}

// readAskGraph reads the asks that wait for these locks, then the asks that wait for the locks that
// the first ones hold, and so on. It leaves out asks that it may not read: so it may miss a
// deadlock, and sees none that is not there.
func readAskGraph(ctx context.Context, r sessionReads, root string, locks []string) (*askGraph, error) {
	g := &askGraph{root: root, locks: map[string]bool{}}
	for len(locks) > 0 && !g.truncated {
		asks, err := g.readAsks(ctx, r, g.unreadLocks(locks))
		if err != nil {
			return nil, err
		}
		locks = nil
		for _, a := range asks {
			for _, h := range a.Held {
				locks = append(locks, h.Lock)
			}
		}
		g.asks = append(g.asks, asks...)
		g.truncated = g.truncated || len(g.asks) >= maxAsks
	}
	if len(g.asks) == 0 {
		return g, nil
	}
	for _, read := range []func(context.Context, sessionReads) error{g.readNamedNodes, g.readWriters, g.readPermits} {
		if err := read(ctx, r); err != nil {
			return nil, err
		}
	}
	g.addEdges()
	g.findCycles()
	return g, nil
}

// unreadLocks returns, in order and each once, the locks whose asks have not been read. It marks
// them as read.
func (g *askGraph) unreadLocks(locks []string) (unread []string) {
	for _, lock := range locks {
		if !g.locks[lock] {
			g.locks[lock] = true
			unread = append(unread, lock)
		}
	}
	slices.Sort(unread)
	return unread
}

// readAsks reads the records of the asks that wait for some locks. It skips nodes that are no
// records.
func (g *askGraph) readAsks(ctx context.Context, r sessionReads, locks []string) (asks []*seenAsk, err error) {
	dirs := make([]string, len(locks))
	for i, lock := range locks {
		dirs[i] = lock + askDirSuffix
	}
	lists, err := listReadable(ctx, r, dirs)
	if err != nil {
		return nil, err
	}
	var of, paths []string // the locks of the records, and the records
	for i, names := range lists {
		if g.truncated = len(g.asks)+len(paths) >= maxAsks; g.truncated {
			break
		}
		for _, name := range names {
			if isAskName(name) {
				of, paths = append(of, locks[i]), append(paths, znode.Join(dirs[i], name))
			}
		}
	}
	nodes, err := r.GetAll(ctx, paths...)
	for i, n := range nodes {
		if n.Err != nil || n.Stat.EphemeralOwner == 0 {
			continue
		}
		if rec, err := parseAskRecord(n.Data, g.root); err == nil && rec.Lock == of[i] {
			asks = append(asks, &seenAsk{askRecord: rec, path: paths[i], number: n.Stat.Czxid,
				session: n.Stat.EphemeralOwner})
		}
	}
	return asks, err
}

// listReadable lists the children of some nodes. A node that does not exist, or may not be read,
// has none.
func listReadable(ctx context.Context, r sessionReads, paths []string) ([][]string, error) {
	lists, err := r.ListAll(ctx, paths...)
	names := make([][]string, len(lists))
	for i, l := range lists {
		if l.Err != nil && !errors.Is(l.Err, framework.ErrNoNode) && !errors.Is(l.Err, framework.ErrNoAuth) {
			return nil, failure.Wrap("list", paths[i], l.Err)
		}
		names[i] = l.Names
	}
	return names, err
}

// readNamedNodes reads the nodes that the asks name. It drops the asks whose place has gone, and
// the holds whose node has gone. A node of the same name that another transaction has created does
// not count.
func (g *askGraph) readNamedNodes(ctx context.Context, r sessionReads) error {
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
	nodes, err := r.GetAll(ctx, paths...)
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
	return nil
}

// readWriters reads the writers of the lines in which readers ask: a reader waits for a reader that
// holds the lock if a writer stands between the two.
func (g *askGraph) readWriters(ctx context.Context, r sessionReads) error {
	g.writers = map[string][]seenContender{}
	var locks []string
	for _, a := range g.asks {
		if p, ok := positionOf(a.Node); ok && p.Kind.IsShared() {
			locks = append(locks, a.Lock)
		}
	}
	slices.Sort(locks)
	locks = slices.Compact(locks)
	lists, err := listReadable(ctx, r, locks)
	if err != nil {
		return err
	}
	var of, paths []string // the locks of the writers, and the writers
	for i, names := range lists {
		for _, name := range names {
			if p, ok := waitline.ParsePosition(name); ok && !p.Kind.IsShared() {
				of, paths = append(of, locks[i]), append(paths, znode.Join(locks[i], name))
			}
		}
	}
	nodes, err := r.GetAll(ctx, paths...)
	for i, n := range nodes {
		if p, ok := positionOf(paths[i]); ok && n.Err == nil {
			g.writers[of[i]] = append(g.writers[of[i]], seenContender{p, n.Stat.Czxid})
		}
	}
	return err
}

// readPermits reads the numbers of permits of the semaphores for which asks wait.
func (g *askGraph) readPermits(ctx context.Context, r sessionReads) error {
	g.permits = map[string]seenPermitRecord{}
	var locks, paths []string
	for _, a := range g.asks {
		if a.Permits > 0 && !slices.Contains(locks, a.Lock) {
			locks, paths = append(locks, a.Lock), append(paths, znode.Join(a.Lock, waitline.PermitsPart))
		}
	}
	nodes, err := r.GetAll(ctx, paths...)
	for i, n := range nodes {
		if n.Err == nil {
			g.permits[locks[i]] = seenPermitRecord{permitsIn(n.Data), n.Stat.Mzxid}
		}
	}
	return err
}
