package scheduler

import (
	"context"
	"iter"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// Find yields the paths of the schedulers at and below root, a directory before its children,
// names in their order. It takes for a scheduler a directory that has jobs, and a record of changes
// or members. Nothing is written. It lists up to a thousand directories in one request.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on.
// Otherwise an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie
// below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return findUpTo(ctx, client, root, maxFind)
}

func findUpTo(ctx context.Context, client *framework.Client, root string, most int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for found, err := range recipe.Find(ctx, client, []string{root}, most,
			recipe.Layout{Recognize: joblayout.HasLayout, Own: joblayout.OwnNodes()}) {
			if !yield(found.Path, err) {
				return
			}
		}
	}
}
