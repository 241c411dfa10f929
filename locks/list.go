package locks

import (
	"context"
	"errors"
	"iter"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxList is how many nodes List looks at, beside those of the locks themselves.
const maxList = 100_000

// List yields a report of every lock at and below root: a directory before its children, names in
// their order. It reads up to a thousand paths together, with few requests: about 10 for 1,000
// locks of 5 nodes. It does not descend into the nodes of a lock. It descends into other nodes in
// the lock's directory, and reports their locks apart. It does not descend into the directories in
// which a queue keeps its items: "items", "lanes", "dead", "later" and "ids" beside each other, as
// package queue makes them. A lock with one of these names is reported all the same.
//
// The servers do not know what an ephemeral node is for: List reports a single one as a claim.
//
// List yields an error for a directory that it may not read, or that has more than 250,000 children
// (framework.ErrNoAuth, framework.ErrTooLarge), and goes on. After any other error it ends, as it
// does when it has looked at 100,000 nodes (framework.ErrTooLarge). It leaves out nodes that vanish
// meanwhile, and perhaps those that are created meanwhile.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[Report, error] {
	return listUpTo(ctx, client, root, maxList)
}

func listUpTo(ctx context.Context, client *framework.Client, root string, most int) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		if client == nil {
			yield(Report{}, errors.New("list: the client is nil"))
			return
		}
		l := &lockLister{client: client, queueItems: map[string]bool{}}
		inspect := func(paths []string) ([]recipe.Visit[Report], error) { return l.inspectMany(ctx, paths) }
		for v, err := range recipe.Walk(ctx, "list", []string{root}, most, inspect) {
			if err == nil {
				err = failure.Wrap("list", v.Path, v.Err)
			}
			switch {
			case err != nil:
				goesOn := errors.Is(v.Err, framework.ErrNoAuth) || errors.Is(v.Err, framework.ErrTooLarge)
				if !yield(Report{}, err) || !goesOn {
					return
				}
			case v.Found.Kind != NoLock && !yield(v.Found, nil):
				return
			}
		}
	}
}

// lockLister inspects the paths of a tree, many at once.
type lockLister struct {
	client     *framework.Client
	queueItems map[string]bool // paths with the name and the place of a directory with a queue's items
}

// inspectMany inspects the first of some paths together.
func (l *lockLister) inspectMany(ctx context.Context, paths []string) ([]recipe.Visit[Report], error) {
	nodes := newBulkReader(l.client)
	prepared, err := nodes.readAhead(ctx, paths)
	if err != nil {
		return nil, err
	}
	visits := make([]recipe.Visit[Report], prepared)
	for n, path := range paths[:prepared] {
		i := newInspection(nodes, path)
		err := i.inspectPath(ctx)
		visits[n] = recipe.Visit[Report]{Found: i.report, Err: err, Below: i.below}
		if l.queueItems[path] && i.report.Kind == NoLock {
			visits[n].Below = nil // a long queue would use up the nodes to inspect, and hide the locks behind it
		}
		l.rememberQueueItems(i.below)
	}
	return visits, nil
}

// rememberQueueItems remembers those of a directory's children that have a queue's items, if the
// directory is a queue.
func (l *lockLister) rememberQueueItems(children []string) {
	names := make([]string, len(children))
	for i, path := range children {
		_, names[i] = znode.Split(path)
	}
	if !queuelayout.IsQueue(names) {
		return
	}
	for i, path := range children {
		if queuelayout.HoldsItems(names[i]) {
			l.queueItems[path] = true
		}
	}
}
