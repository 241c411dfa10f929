package locks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxList is how many nodes List looks at, beside those of the locks themselves.
const maxList = 100_000

// listedAtOnce is how many paths List reads together.
const listedAtOnce = 1000

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
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[*Report, error] {
	return listUpTo(ctx, client, root, maxList)
}

func listUpTo(ctx context.Context, client *framework.Client, root string, most int) iter.Seq2[*Report, error] {
	return func(yield func(*Report, error) bool) {
		if client == nil {
			yield(nil, errors.New("list: the client is nil"))
			return
		}
		l := &lockLister{client: client, ahead: []listedPath{{path: root}}}
		for len(l.ahead) > 0 {
			last := len(l.ahead) - 1
			switch next := l.ahead[last]; {
			case ctx.Err() != nil:
				yield(nil, failure.Wrap("list", next.path, failure.Ended(ctx)))
				return
			case next.done:
				l.ahead = l.ahead[:last]
				if !next.yieldTo(yield) {
					return
				}
			case l.looked == most:
				yield(nil, fmt.Errorf("list %s: %w: of more than %d nodes the others are left out, from %s on; look "+
					"below a deeper path",
					root, framework.ErrTooLarge, most, next.path))
				return
			default:
				if err := l.inspectNext(ctx, min(most-l.looked, listedAtOnce)); err != nil {
					yield(nil, failure.Wrap("list", next.path, err))
					return
				}
			}
		}
	}
}

// listedPath is a path to inspect, and the report of its lock once it was inspected.
type listedPath struct {
	path       string
	queueItems bool // it has the name and the place of a directory with a queue's items
	done       bool
	report     *Report
	err        error
}

// yieldTo yields what was found, and reports whether to go on.
func (l listedPath) yieldTo(yield func(*Report, error) bool) bool {
	switch {
	case errors.Is(l.err, framework.ErrNoAuth), errors.Is(l.err, framework.ErrTooLarge):
		return yield(nil, failure.Wrap("list", l.path, l.err))
	case l.err != nil:
		yield(nil, failure.Wrap("list", l.path, l.err))
		return false
	}
	return l.report.Kind == NoLock || yield(l.report, nil)
}

// lockLister inspects the paths of a tree in order, many at once.
type lockLister struct {
	client *framework.Client
	ahead  []listedPath // the next one is the last
	looked int          // how many paths were inspected
}

// inspectNext inspects the next paths together, no more than most of them, and adds the paths below
// each of them behind it.
func (l *lockLister) inspectNext(ctx context.Context, most int) error {
	var paths []string
	first := len(l.ahead)
	for ; first > 0 && len(paths) < most; first-- {
		if next := l.ahead[first-1]; !next.done {
			paths = append(paths, next.path)
		}
	}
	nodes := newBulkReader(l.client)
	prepared, err := nodes.readAhead(ctx, paths)
	if err != nil {
		return err
	}
	var found []listedPath // in the order of the list
	for _, next := range slices.Backward(l.ahead[first:]) {
		if next.done || prepared == 0 {
			found = append(found, next)
			continue
		}
		prepared--
		l.looked++
		i := newInspection(nodes, next.path)
		err := i.inspectPath(ctx)
		found = append(found, listedPath{path: next.path, done: true, report: i.report, err: err})
		if next.queueItems && i.report.Kind == NoLock {
			continue // a long queue would use up the nodes that are looked at, and hide the locks behind it
		}
		found = append(found, pathsBelow(i)...)
	}
	slices.Reverse(found)
	l.ahead = append(l.ahead[:first], found...)
	return nil
}

// pathsBelow returns the paths to inspect below one that was inspected.
func pathsBelow(i *pathInspection) (paths []listedPath) {
	var names []string
	for _, path := range i.below {
		_, name := znode.Split(path)
		names = append(names, name)
	}
	isQueue := recipe.HasQueueLayout(names)
	for n, path := range i.below {
		paths = append(paths, listedPath{path: path, queueItems: isQueue && recipe.HoldsQueueItems(names[n])})
	}
	return paths
}
