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

// Layout says how to recognize the directories of a recipe.
type Layout struct {
	// Recognize reports whether a directory with these children is one of the recipe.
	Recognize func(children []string) bool
	// Own are the names of the children that belong to the recipe. Find does not search them.
	Own []string
}

// Found is a directory that Find has found.
type Found struct {
	Path string
	// Layout is the index of the directory's layout among the arguments of Find.
	Layout int
}

// Find yields the directories at and below some roots that have one of the layouts. It searches
// root after root, yields a directory before its children, and goes through children in the order
// of their names. It does not search the children that belong to a recipe. Nor does it search nodes
// with names of protected nodes: contenders and members, which have no children.
//
// For a directory that it may not read, Find yields an error that wraps framework.ErrNoAuth, and
// goes on. Any other error ends the search. Find lists no more than maxDirectories of them. If
// there are more, the last error wraps framework.ErrTooLarge and names the first directory that
// Find has not listed.
func Find(ctx context.Context, client *framework.Client, roots []string, maxDirectories int,
	layouts ...Layout) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		if client == nil {
			yield(Found{}, errors.New("find: the client is nil"))
			return
		}
		f := &treeFinder{client: client, layouts: layouts}
		for _, root := range slices.Backward(roots) {
			f.ahead = append(f.ahead, directoryVisit{path: root})
		}
		for len(f.ahead) > 0 {
			last := len(f.ahead) - 1
			next := f.ahead[last]
			switch {
			case !next.listed && f.listedCount == maxDirectories:
				yield(Found{}, fmt.Errorf(
					"find %s: %w: there are more than %d nodes; the search ended before %s; search below a deeper path",
					roots[0], framework.ErrTooLarge, maxDirectories, next.path))
				return
			case !next.listed:
				if err := f.listAhead(ctx, maxDirectories-f.listedCount); err != nil {
					yield(Found{}, failure.Wrap("find", next.path, err))
					return
				}
				continue
			}
			f.ahead = f.ahead[:last]
			switch {
			case next.err != nil:
				if !yield(Found{}, failure.Wrap("find", next.path, next.err)) ||
					!errors.Is(next.err, framework.ErrNoAuth) {
					return
				}
			case next.found && !yield(Found{next.path, next.layout}, nil):
				return
			}
		}
	}
}

// directoryVisit is a directory to search, and the result after it was listed.
type directoryVisit struct {
	path   string
	listed bool
	found  bool
	layout int
	err    error
}

// treeFinder searches a tree.
type treeFinder struct {
	client      *framework.Client
	layouts     []Layout
	ahead       []directoryVisit // a stack: the next directory is the last
	listedCount int              // how many directories were listed
}

// listedAtOnce is how many directories are listed before the children of one of them are searched.
const listedAtOnce = 1000

// listAhead lists the next directories, at most so many as limit says, and puts the children of
// each right behind it in the order of the search.
func (f *treeFinder) listAhead(ctx context.Context, limit int) error {
	var paths []string
	first := len(f.ahead)
	for ; first > 0 && len(paths) < min(limit, listedAtOnce); first-- {
		if next := f.ahead[first-1]; !next.listed {
			paths = append(paths, next.path)
		}
	}
	lists, err := ListMany(ctx, f.client, paths)
	if err != nil {
		return err
	}
	f.listedCount += len(paths)
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

// visitDirectory returns a listed directory and the children to list next. A missing directory has
// no children.
func (f *treeFinder) visitDirectory(path string, list primitives.Listing) []directoryVisit {
	v := directoryVisit{path: path, listed: true}
	if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
		v.err = list.Err
		return []directoryVisit{v}
	}
	var own []string
	for i, layout := range f.layouts {
		if v.found = layout.Recognize(list.Names); v.found {
			v.layout, own = i, layout.Own
			break
		}
	}
	all := []directoryVisit{v}
	slices.Sort(list.Names)
	for _, name := range list.Names {
		if strings.HasPrefix(name, znode.ProtectedPrefix) { // a contender or a member, which has no children
			continue
		}
		if !slices.Contains(own, name) {
			all = append(all, directoryVisit{path: znode.Join(path, name)})
		}
	}
	return all
}
