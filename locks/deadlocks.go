package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
)

// Deadlock is what Deadlocks has found: requests that wait for each other.
type Deadlock struct {
	// Cycle begins with the youngest request; see DeadlockError.
	Cycle []DeadlockedRequest `json:"cycle"`
	// Lasting says that the request which would have to fail only reports (DeadlockReport): the
	// deadlock lasts until one of the locks is released or taken away.
	Lasting bool `json:"lasting"`
}

// Deadlocks finds the deadlocks among the requests that wait for locks at and below root. It only
// reads. A request is seen after it has waited for about a second under a lease; see
// WithDeadlockMode. Deadlocks reports a deadlock once all its requests have confirmed it, and waits
// for that up to four seconds. In the default mode most deadlocks end by then.
//
// It looks at 100,000 nodes, and at 2000 requests. With more of them it returns what it has found,
// and an error that wraps framework.ErrTooLarge. It leaves out directories that it may not read.
func Deadlocks(ctx context.Context, client *framework.Client, root string) ([]Deadlock, error) {
	if client == nil {
		return nil, errors.New("deadlocks: the client is nil")
	}
	requested, truncated := waitgraph.RequestedLocks(ctx, client, root, maxList)
	if truncated != nil && !errors.Is(truncated, framework.ErrTooLarge) {
		return nil, failure.Wrap("deadlocks", root, truncated)
	}
	found, err := searchDeadlocks(ctx, client, requested)
	return found, failure.Wrap("deadlocks", root, cmp.Or(err, truncated))
}

// DeadlocksAt is Deadlocks among the requests that wait for the locks at these paths, for the locks
// that the callers of those requests hold, and so on. It does not look for locks below them.
func DeadlocksAt(ctx context.Context, client *framework.Client, paths ...string) (found []Deadlock, err error) {
	if client == nil {
		return nil, errors.New("deadlocks: the client is nil")
	}
	found, err = searchDeadlocks(ctx, client, paths)
	if err != nil {
		err = fmt.Errorf("deadlocks of %d locks: %w", len(paths), err)
	}
	return found, err
}

func searchDeadlocks(ctx context.Context, client *framework.Client, locks []string) (found []Deadlock, err error) {
	err = recipe.OnSession(ctx, client, func(s *framework.Session) error {
		cycles, err := waitgraph.Search(ctx, s, client.Config().Root, locks)
		found = nil
		for _, d := range cycles {
			found = append(found, Deadlock{deadlockedRequests(d.Cycle), d.Lasting})
		}
		return err
	})
	return found, err
}
