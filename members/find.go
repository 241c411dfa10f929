package members

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

const (
	maxFind   = 20_000 // nodes that Find looks at
	findChunk = 100    // directories whose data Find reads in one request
)

// hasMembers reports whether a directory with these children may be a group: it has a member or a
// cordon.
func hasMembers(children []string) bool {
	return slices.ContainsFunc(children, func(name string) bool {
		return strings.HasPrefix(name, cordonPrefix) ||
			strings.HasPrefix(name, znode.ProtectedPrefix) && strings.HasSuffix(name, "-"+memberName)
	})
}

// Find yields the paths of the groups at and below root, a directory before its children, names in
// their order. It takes for a group a directory without data that has a member of this package or a
// cordon: so it does not find empty groups, nor those that only Curator's members are in. Nothing
// is written.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on.
// Otherwise an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie
// below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		found := recipe.Find(ctx, client, []string{root}, maxFind, recipe.Layout{Recognize: hasMembers})
		for chunk, err := range recipe.Chunks(found, findChunk) {
			if err != nil {
				if !yield("", err) {
					return
				}
				continue
			}
			paths := make([]string, len(chunk))
			for i, f := range chunk {
				paths[i] = f.Path
			}
			nodes, err := recipe.GetMany(ctx, client, paths)
			if err != nil {
				yield("", failure.Wrap("find groups", root, err))
				return
			}
			for i, node := range nodes {
				switch {
				case errors.Is(node.Err, framework.ErrNoNode), len(node.Data) > 0: // gone, or no group
				case node.Err != nil && !yield("", failure.Wrap("find groups", paths[i], node.Err)):
					return
				case node.Err == nil && !yield(paths[i], nil):
					return
				}
			}
		}
	}
}
