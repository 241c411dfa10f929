package locks

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Bounds of one graph.
const (
	maxAsks     = 2000
	maxAskReads = 500 // nodes in one request
)

// askReader is the part of a session that reads a graph.
type askReader interface {
	Children(ctx context.Context, path string) ([]string, framework.Stat, error)
	GetAll(ctx context.Context, paths ...string) ([]framework.Node, error)
}

// readAskGraph reads the asks that wait for these locks, then the asks that wait for the locks that the first ones hold, and so on.
func readAskGraph(ctx context.Context, s askReader, root string, locks []string) (*askGraph, error) {
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
	for _, read := range []func(context.Context, askReader) error{g.readNamedNodes, g.readWriters, g.readPermits} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	g.addEdges()
	return g, nil
}

// readAsks reads the records of the asks that wait for a lock. It skips nodes that are no records.
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

// readInBatches reads any number of nodes, maxAskReads in one request.
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

// readNamedNodes reads the nodes that the asks name. It drops the asks whose place has gone, and the holds whose node has gone. A node of the same
// name that another transaction has created does not count.
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
	return nil
}

// readWriters reads the writers of the lines in which readers ask: a reader waits for a reader that holds the lock if a writer stands between the two.
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
