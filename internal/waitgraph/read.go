package waitgraph

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxRequests bounds one graph.
const maxRequests = 2000

// countingReader reads on a session, and counts the requests.
type countingReader struct {
	s     *framework.Session
	count func(requests int)
}

// nodesPerRequest is how many nodes a request is taken to read: GetAll divides large answers.
const nodesPerRequest = 250

func (r countingReader) GetAll(ctx context.Context, paths ...string) ([]framework.Node, error) {
	r.count(1 + len(paths)/nodesPerRequest)
	return r.s.GetAll(ctx, paths...)
}

func (r countingReader) ListAll(ctx context.Context, paths ...string) ([]primitives.Listing, error) {
	r.count(1 + len(paths)/nodesPerRequest)
	return primitives.Of(r.s).ListAll(ctx, paths...)
}

// readGraph reads the requests that wait for these locks, then the requests that wait for the locks
// that the first ones hold, and so on. It leaves out requests that it may not read: so it may miss
// a deadlock, and sees none that is not there.
func readGraph(ctx context.Context, r countingReader, root string, locks []string) (*graph, error) {
	g := &graph{root: root, locks: map[string]bool{}}
	for len(locks) > 0 && !g.truncated {
		requests, err := g.readRequests(ctx, r, g.unreadLocks(locks))
		if err != nil {
			return nil, err
		}
		locks = nil
		for _, a := range requests {
			for _, h := range a.Held {
				locks = append(locks, h.Lock)
			}
		}
		g.requests = append(g.requests, requests...)
		g.truncated = g.truncated || len(g.requests) >= maxRequests
	}
	if len(g.requests) == 0 {
		return g, nil
	}
	for _, read := range []func(context.Context, countingReader) error{g.readNamedNodes, g.readWriters, g.readPermits} {
		if err := read(ctx, r); err != nil {
			return nil, err
		}
	}
	g.addEdges()
	g.findCycles()
	return g, nil
}

// unreadLocks returns, in order and each once, the locks whose requests have not been read. It
// marks them as read.
func (g *graph) unreadLocks(locks []string) (unread []string) {
	for _, lock := range locks {
		if !g.locks[lock] {
			g.locks[lock] = true
			unread = append(unread, lock)
		}
	}
	slices.Sort(unread)
	return unread
}

// readRequests reads the records of the requests that wait for some locks. It skips nodes that are
// no records.
func (g *graph) readRequests(ctx context.Context, r countingReader, locks []string) (requests []*vertex, err error) {
	dirs := make([]string, len(locks))
	for i, lock := range locks {
		dirs[i] = lock + recipe.LockRequestsSuffix
	}
	lists, err := listReadable(ctx, r, dirs)
	if err != nil {
		return nil, err
	}
	var of, paths []string // the locks of the records, and the records
	for i, names := range lists {
		if g.truncated = len(g.requests)+len(paths) >= maxRequests; g.truncated {
			break
		}
		for _, name := range names {
			if recipe.IsLockRequestName(name) {
				of, paths = append(of, locks[i]), append(paths, znode.Join(dirs[i], name))
			}
		}
	}
	nodes, err := r.GetAll(ctx, paths...)
	for i, n := range nodes {
		if n.Err != nil || n.Stat.EphemeralOwner == 0 {
			continue
		}
		if rec, err := parseRecord(n.Data, g.root); err == nil && rec.Lock == of[i] {
			requests = append(requests, &vertex{record: rec, path: paths[i], number: n.Stat.Czxid,
				session: n.Stat.EphemeralOwner})
		}
	}
	return requests, err
}

// listReadable lists the children of some nodes. A node that does not exist, or may not be read,
// has none.
func listReadable(ctx context.Context, r countingReader, paths []string) ([][]string, error) {
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

// readNamedNodes reads the nodes that the requests name. It drops the requests whose node in line
// has gone, and the holds whose node has gone. A node of the same name that another transaction has
// created does not count.
func (g *graph) readNamedNodes(ctx context.Context, r countingReader) error {
	var paths []string
	for _, a := range g.requests {
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
	var requests []*vertex
	g.holders = map[string][]*vertex{}
	for _, a := range g.requests {
		if a.Node != "" && stats[a.Node].Czxid != a.Zxid {
			continue
		}
		a.Held = slices.DeleteFunc(a.Held, func(h Held) bool { return stats[h.Node].Czxid != h.Zxid })
		for _, h := range a.Held {
			a.carried = a.carried || stats[h.Node].EphemeralOwner != a.session
			if of := g.holders[h.Lock]; len(of) == 0 || of[len(of)-1] != a {
				g.holders[h.Lock] = append(of, a)
			}
		}
		requests = append(requests, a)
	}
	g.requests = requests
	return nil
}

// readWriters reads the writers of the lines in which readers request: a reader waits for a reader
// that holds the lock if a writer stands between the two.
func (g *graph) readWriters(ctx context.Context, r countingReader) error {
	g.writers = map[string][]queuedWriter{}
	var locks []string
	for _, a := range g.requests {
		if p, ok := waitline.PositionOf(a.Node); ok && p.Kind.IsShared() {
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
		if p, ok := waitline.PositionOf(paths[i]); ok && n.Err == nil {
			g.writers[of[i]] = append(g.writers[of[i]], queuedWriter{p, n.Stat.Czxid})
		}
	}
	return err
}

// readPermits reads the numbers of permits of the semaphores for which requests wait.
func (g *graph) readPermits(ctx context.Context, r countingReader) error {
	g.permits = map[string]permitCount{}
	var locks, paths []string
	for _, a := range g.requests {
		if a.Permits > 0 && !slices.Contains(locks, a.Lock) {
			locks, paths = append(locks, a.Lock), append(paths, znode.Join(a.Lock, waitline.PermitsPart))
		}
	}
	nodes, err := r.GetAll(ctx, paths...)
	for i, n := range nodes {
		if n.Err == nil {
			g.permits[locks[i]] = permitCount{waitline.PermitsIn(n.Data), n.Stat.Mzxid}
		}
	}
	return err
}
