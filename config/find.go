package config

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// Find yields the paths of the values at and below root that have a history, a directory before its
// children, names in their order: those that a Value has written, also when the value was deleted
// later. It does not find nodes that only other programs have written. Nothing is written.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on.
// Otherwise an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie
// below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	hasRecords := func(children []string) bool {
		return slices.ContainsFunc(children, func(name string) bool { return strings.HasPrefix(name, recordPrefix) })
	}
	return func(yield func(string, error) bool) {
		for found, err := range recipe.Find(ctx, client, []string{root}, maxFind,
			recipe.Layout{Recognize: hasRecords}) {
			value, isPast := strings.CutSuffix(found.Path, pastSuffix)
			if (err != nil || isPast) && !yield(value, err) {
				return
			}
		}
	}
}
