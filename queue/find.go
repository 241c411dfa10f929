package queue

import (
	"context"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxFind is how many nodes Find looks at.
const maxFind = 20_000

// ownNodes are the nodes below a queue's.
var ownNodes = []string{
	itemsDir, ticketsDir, lanesDir, deadDir, laterDir, writersDir, lockDir, roomDir, pausedNode, placesDir, inNode, outNode, idsDir, cancelsDir, claimedNode,
	droppedNode,
}

// Find yields the paths of the queues at and below root, a directory before its children, names in their order. Nothing is written. It does
// not find queues in Curator's layout.
//
// It yields an error for a directory that it may not read (framework.ErrNoAuth), and goes on. Otherwise an error is the last: it wraps
// framework.ErrTooLarge when more than 20,000 nodes lie below root, the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	return recipe.Find(ctx, client, root, maxFind, func(children []string) bool {
		has := func(name string) bool { return slices.Contains(children, name) }
		return has(itemsDir) && (has(ticketsDir) || has(deadDir) || has(laterDir))
	}, ownNodes)
}
