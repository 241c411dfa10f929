package recipe

import (
	"context"
	"errors"
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
		list := func(paths []string) ([]Visit[int], error) {
			lists, err := ListMany(ctx, client, paths)
			visits := make([]Visit[int], len(lists))
			for i, l := range lists {
				visits[i] = visitDirectory(paths[i], l, layouts)
			}
			return visits, err
		}
		for v, err := range Walk(ctx, "find", roots, maxDirectories, list) {
			switch {
			case err == nil && v.Err != nil:
				err = failure.Wrap("find", v.Path, v.Err)
			case err == nil && v.Found < 0:
				continue
			}
			if err != nil {
				v = Visit[int]{}
			}
			if !yield(Found{v.Path, v.Found}, err) || err != nil && !errors.Is(err, framework.ErrNoAuth) {
				return
			}
		}
	}
}

// Chunks yields the values of a sequence in chunks of up to n, in their order, and each of its
// errors apart, behind the values that were before it.
func Chunks[T any](sequence iter.Seq2[T, error], n int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var chunk []T
		for value, err := range sequence {
			if err == nil {
				chunk = append(chunk, value)
			}
			if len(chunk) == n || err != nil && len(chunk) > 0 {
				if !yield(chunk, nil) {
					return
				}
				chunk = nil
			}
			if err != nil && !yield(nil, err) {
				return
			}
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}

// visitDirectory returns the layout that a listed directory has, or -1, and the children to list
// next. A missing directory has no children.
func visitDirectory(path string, list primitives.Listing, layouts []Layout) Visit[int] {
	v := Visit[int]{Found: -1}
	if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
		v.Err = list.Err
		return v
	}
	var own []string
	for i, layout := range layouts {
		if layout.Recognize(list.Names) {
			v.Found, own = i, layout.Own
			break
		}
	}
	slices.Sort(list.Names)
	for _, name := range list.Names {
		if strings.HasPrefix(name, znode.ProtectedPrefix) { // a contender or a member, which has no children
			continue
		}
		if !slices.Contains(own, name) {
			v.Below = append(v.Below, znode.Join(path, name))
		}
	}
	return v
}
