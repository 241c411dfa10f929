package recipe

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/znode"
)

const (
	foundAtOnce = 1000    // directories in one request
	pathBytes   = 400_000 // of the paths in one request; the client's root is added to each
)

// Find yields the paths at and below root that recognize takes for a recipe's, a directory before its children, names in their order.
// recognize gets a directory's children. own are the children that belong to the recipe: Find does not descend into them, nor into contenders of
// locks and members, which have no children and names with a UUID. Find lists up to a thousand directories in one request.
//
// Find yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on. Any other error is the last. It wraps
// framework.ErrTooLarge when Find has looked at most nodes, and names the first node that is left out.
func Find(ctx context.Context, client *framework.Client, root string, most int, recognize func(children []string) bool, own []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if client == nil {
			yield("", errors.New("find: the client is nil"))
			return
		}
		f := &treeFinder{client: client, recognize: recognize, own: own, atOnce: foundAtOnce, ahead: []directoryVisit{{path: root}}}
		for len(f.ahead) > 0 {
			last := len(f.ahead) - 1
			next := f.ahead[last]
			switch {
			case !next.listed && f.looked == most:
				yield("", fmt.Errorf("find %s: %w: of more than %d nodes the others are left out, from %s on; look below a deeper path",
					root, framework.ErrTooLarge, most, next.path))
				return
			case !next.listed:
				if err := f.listAhead(ctx, most-f.looked); err != nil {
					yield("", failure.Wrap("find", next.path, err))
					return
				}
				continue
			}
			f.ahead = f.ahead[:last]
			switch {
			case next.err != nil:
				if !yield("", failure.Wrap("find", next.path, next.err)) || !errors.Is(next.err, framework.ErrNoAuth) {
					return
				}
			case next.found && !yield(next.path, nil):
				return
			}
		}
	}
}

// directoryVisit is a directory of a search, and the result once it is listed.
type directoryVisit struct {
	path   string
	listed bool
	found  bool
	err    error
}

// treeFinder searches a tree.
type treeFinder struct {
	client    *framework.Client
	recognize func(children []string) bool
	own       []string
	ahead     []directoryVisit // the next one is the last
	looked    int
	atOnce    int
}

// listAhead lists the next directories together, at most so many, and puts the children of each behind it.
func (f *treeFinder) listAhead(ctx context.Context, most int) error {
	var paths []string
	first, bytes := len(f.ahead), 0
	for ; first > 0 && len(paths) < min(most, f.atOnce); first-- {
		next := f.ahead[first-1]
		if next.listed {
			continue
		}
		if bytes += len(next.path); bytes > pathBytes && len(paths) > 0 {
			break
		}
		paths = append(paths, next.path)
	}
	lists, err := ListAll(ctx, f.client, paths...)
	if errors.Is(err, framework.ErrTooLarge) && len(paths) > 1 {
		f.atOnce = len(paths) / 2
		return nil
	}
	if err != nil {
		return err
	}
	f.looked += len(paths)
	var known []directoryVisit // in the order of the search
	for _, next := range slices.Backward(f.ahead[first:]) {
		if next.listed {
			known = append(known, next)
			continue
		}
		list := lists[0]
		lists = lists[1:]
		known = append(known, f.visitDirectory(next.path, list)...)
	}
	slices.Reverse(known)
	f.ahead = append(f.ahead[:first], known...)
	return nil
}

// visitDirectory returns a listed directory and the children to list next. A missing directory has no children.
func (f *treeFinder) visitDirectory(path string, list primitives.Listing) []directoryVisit {
	v := directoryVisit{path: path, listed: true}
	if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
		v.err = list.Err
		return []directoryVisit{v}
	}
	v.found = f.recognize(list.Names)
	all := []directoryVisit{v}
	slices.Sort(list.Names)
	for _, name := range list.Names {
		if strings.HasPrefix(name, znode.ProtectedPrefix) { // one of several contenders or members, which have no children
			continue
		}
		if !v.found || !slices.Contains(f.own, name) {
			all = append(all, directoryVisit{path: znode.Join(path, name)})
		}
	}
	return all
}
