package scheduler

import (
	"context"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// ownNodes are the nodes that a scheduler keeps in its directory.
var ownNodes = []string{"changes", "election", "election~term", "election~waiting", "jobs", "members", "removed"}

// OwnNodes returns the names of the nodes that a scheduler keeps in its directory. Another scheduler below it cannot have them.
func OwnNodes() []string { return slices.Clone(ownNodes) }

// Find yields the paths of the schedulers at and below root, a directory before its children, names in their order. It takes for a scheduler
// what has jobs and a record of changes or members. Nothing is written.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on. Otherwise an error is the last: it wraps
// framework.ErrTooLarge when more than 20,000 nodes lie below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return findUpTo(ctx, client, root, maxFind)
}

func findUpTo(ctx context.Context, client *framework.Client, root string, most int) iter.Seq2[string, error] {
	return recipe.Find(ctx, client, root, most, func(children []string) bool {
		has := func(name string) bool { return slices.Contains(children, name) }
		return has("jobs") && (has("changes") || has("members"))
	}, ownNodes)
}
