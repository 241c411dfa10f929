package workflow

import (
	"context"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// ownNodes are the nodes that Workflows keeps in its directory.
var ownNodes = []string{"ended", "failed", "kept", "queues", "runs", "sweeper"}

// hasLayout reports whether a directory with these children is one of Workflows: it has queues of
// kinds or runs, and one more of the nodes of Workflows.
func hasLayout(children []string) bool {
	own := 0
	for _, name := range children {
		if slices.Contains(ownNodes, name) {
			own++
		}
	}
	return own > 1 && (slices.Contains(children, "queues") || slices.Contains(children, "runs"))
}

// Find yields the paths of Workflows at and below root, a directory before its children, names in
// their order. It takes for one a directory with queues of kinds or runs, and one more of the nodes
// of Workflows. Nothing is written. It lists up to a thousand directories in one request.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on.
// Otherwise an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie
// below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for found, err := range recipe.Find(ctx, client, []string{root}, maxFind,
			recipe.Layout{Recognize: hasLayout, Own: ownNodes}) {
			if !yield(found.Path, err) {
				return
			}
		}
	}
}
