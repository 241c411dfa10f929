package waitgraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// maxUncertainScans is how often Search reads a cycle that is not certain.
const maxUncertainScans = 4

// Search finds the certain deadlocks among the requests that wait for some locks, for the locks
// that the callers of those requests hold, and so on. It scans again, a few times, while it sees a
// cycle that is not certain. If there are too many requests, it also returns an error that wraps
// framework.ErrTooLarge.
func Search(ctx context.Context, s *framework.Session, root string, locks []string) (found []Deadlock, err error) {
	for range maxUncertainScans {
		g, failed := readGraph(ctx, countingReader{s, func(int) {}}, root, locks)
		if failed != nil {
			return nil, failed
		}
		if g.truncated {
			err = fmt.Errorf("%w: more than %d lock requests, the others are left out",
				framework.ErrTooLarge, maxRequests)
		}
		var uncertain bool
		if found, uncertain = g.deadlocks(); !uncertain {
			return found, err
		}
		if failed := recipe.Pause(ctx, scanInterval); failed != nil {
			return nil, failed
		}
	}
	return found, err
}

// RequestedLocks returns the locks at and below root that have records of requests. It lists at
// most so many directories. If there are more, it also returns an error that wraps
// framework.ErrTooLarge. It leaves out directories that it may not read, and does not search the
// items of queues.
func RequestedLocks(ctx context.Context, client *framework.Client, root string, maxDirectories int) ([]string, error) {
	roots := []string{root}
	if root != "/" {
		roots = append(roots, root+recipe.LockRequestsSuffix)
	}
	var locks []string
	var truncated error
	for found, err := range recipe.Find(ctx, client, roots, maxDirectories,
		recipe.Layout{Recognize: recipe.HasLockRequests}, queueLayout) {
		switch {
		case errors.Is(err, framework.ErrTooLarge):
			truncated = err
		case err != nil && !errors.Is(err, framework.ErrNoAuth):
			return nil, err
		case err == nil && found.Layout == 0:
			lock, ok := strings.CutSuffix(found.Path, recipe.LockRequestsSuffix)
			if ok && !strings.HasSuffix(lock, "/") {
				locks = append(locks, lock)
			}
		}
	}
	slices.Sort(locks)
	return slices.Compact(locks), truncated
}

// queueLayout keeps the search out of the items of queues, of which there may be millions.
var queueLayout = recipe.Layout{Recognize: queuelayout.IsQueue, Own: queuelayout.ItemDirs}
