package queue

import (
	"context"
	"iter"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// Find yields the paths of the queues at and below root, a directory before its children, names in
// their order. Nothing is written. It does not find queues in Curator's layout. It lists up to a
// thousand directories in one request.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on.
// Otherwise an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie
// below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for found, err := range recipe.Find(ctx, client, []string{root}, maxFind,
			recipe.Layout{Recognize: queuelayout.IsQueue, Own: queuelayout.OwnNames}) {
			if !yield(found.Path, err) {
				return
			}
		}
	}
}
