package recipe

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Visit is what a Walk has read of one node.
type Visit[T any] struct {
	Path  string
	Found T
	// Err is why the node could not be read.
	Err error
	// Below are the paths to visit next, in order.
	Below []string

	read bool
}

// visitedAtOnce is how many nodes a Walk reads before it visits what is below one of them.
const visitedAtOnce = 1000

// Walk visits the nodes of a tree: root after root, and each node before those below it. read reads
// several nodes at once. It may leave out the last ones, which it is then asked for again. Walk
// fills in the paths of the visits.
//
// Walk ends with an error of read, or when ctx ends. It reads no more than maxNodes. If there are
// more, the error wraps framework.ErrTooLarge and names the first node that Walk has not read. op
// names the operation in errors.
func Walk[T any](ctx context.Context, op string, roots []string, maxNodes int,
	read func(paths []string) ([]Visit[T], error)) iter.Seq2[Visit[T], error] {
	return func(yield func(Visit[T], error) bool) {
		var ahead []Visit[T] // a stack: the next node is the last
		for _, root := range slices.Backward(roots) {
			ahead = append(ahead, Visit[T]{Path: root})
		}
		for left := maxNodes; len(ahead) > 0; {
			last := len(ahead) - 1
			next := ahead[last]
			switch {
			case ctx.Err() != nil:
				yield(next, failure.Wrap(op, next.Path, failure.Ended(ctx)))
				return
			case next.read:
				ahead = ahead[:last]
				if !yield(next, nil) {
					return
				}
			case left == 0:
				yield(next, fmt.Errorf("%s %s: %w: there are more than %d nodes; the search ended before %s; "+
					"search below a deeper path", op, roots[0], framework.ErrTooLarge, maxNodes, next.Path))
				return
			default:
				var n int
				var err error
				if ahead, n, err = visitNext(ahead, min(left, visitedAtOnce), read); err != nil {
					yield(next, failure.Wrap(op, next.Path, err))
					return
				}
				left -= n
			}
		}
	}
}

// visitNext reads the next nodes, no more than limit, and puts what is below each of them right
// behind it in the order of the walk. It returns how many it has read.
func visitNext[T any](ahead []Visit[T], limit int, read func([]string) ([]Visit[T], error)) ([]Visit[T], int, error) {
	var paths []string
	first := len(ahead)
	for ; first > 0 && len(paths) < limit; first-- {
		if next := ahead[first-1]; !next.read {
			paths = append(paths, next.Path)
		}
	}
	visits, err := read(paths)
	if err != nil {
		return ahead, 0, err
	}
	done := 0
	var inOrder []Visit[T]
	for _, next := range slices.Backward(ahead[first:]) {
		if next.read || done == len(visits) {
			inOrder = append(inOrder, next)
			continue
		}
		v := visits[done]
		v.Path, v.read = next.Path, true
		inOrder = append(inOrder, v)
		for _, path := range v.Below {
			inOrder = append(inOrder, Visit[T]{Path: path})
		}
		done++
	}
	slices.Reverse(inOrder)
	return append(ahead[:first], inOrder...), done, nil
}
