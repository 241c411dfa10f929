package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Deadlock is what Deadlocks has found: asks that wait for each other.
type Deadlock struct {
	// Cycle begins with the youngest ask; see DeadlockError.
	Cycle []DeadlockedAsk `json:"cycle"`
	// Lasting says that the ask which would have to fail only reports (DeadlockReport): the
	// deadlock lasts until one of the locks is released or taken away.
	Lasting bool `json:"lasting"`
}

// maxUncertainLooks is how often Deadlocks looks at a cycle that is not certain.
const maxUncertainLooks = 4

// Deadlocks finds the deadlocks among the asks that wait for locks at and below root. It only
// reads. An ask is seen after it has waited for about a second under a lease; see WithDeadlockMode.
// Deadlocks reports a deadlock once all its asks have confirmed it, and waits for that up to four
// seconds. In the default mode most deadlocks end by then.
//
// It looks at 100,000 nodes, and at 2000 asks. With more of them it returns what it has found, and
// an error that wraps framework.ErrTooLarge. It leaves out directories that it may not read.
func Deadlocks(ctx context.Context, client *framework.Client, root string) ([]Deadlock, error) {
	if client == nil {
		return nil, errors.New("deadlocks: the client is nil")
	}
	var found []Deadlock
	err := recipe.OnSession(ctx, client, func(s *framework.Session) error {
		locks, left := awaitedLocks(ctx, s, root)
		if left != nil && !errors.Is(left, framework.ErrTooLarge) {
			return left
		}
		var err error
		if found, err = searchDeadlocks(ctx, s, client.Config().Root, locks); err == nil {
			err = left
		}
		return err
	})
	return found, failure.Wrap("deadlocks", root, err)
}

// DeadlocksAt is Deadlocks among the asks that wait for the locks at these paths, for the locks
// that the callers of those asks hold, and so on. It does not look for locks below them.
func DeadlocksAt(ctx context.Context, client *framework.Client, paths ...string) (found []Deadlock, err error) {
	if client == nil {
		return nil, errors.New("deadlocks: the client is nil")
	}
	err = recipe.OnSession(ctx, client, func(s *framework.Session) (err error) {
		found, err = searchDeadlocks(ctx, s, client.Config().Root, paths)
		return err
	})
	if err != nil {
		err = fmt.Errorf("deadlocks of %d locks: %w", len(paths), err)
	}
	return found, err
}

// searchDeadlocks looks for deadlocks among the asks that wait for some locks, until it has seen no
// cycle that is not certain, a few times.
func searchDeadlocks(ctx context.Context, s *framework.Session, root string,
	locks []string) (found []Deadlock, err error) {
	for range maxUncertainLooks {
		g, failed := readAskGraph(ctx, sessionReads{s, func(int) {}}, root, locks)
		if failed != nil {
			return nil, failed
		}
		if g.truncated {
			err = fmt.Errorf("%w: more than %d asks, the others are left out", framework.ErrTooLarge, maxAsks)
		}
		deadlocks, uncertain := g.deadlocks()
		found = deadlocks
		if !uncertain {
			return found, err
		}
		if failed := recipe.Pause(ctx, lookInterval); failed != nil {
			return nil, failed
		}
	}
	return found, err
}

// awaitedLocks are the locks at and below root that have records of asks.
func awaitedLocks(ctx context.Context, s *framework.Session, root string) (locks []string, err error) {
	ahead := []string{root}
	if _, err := s.Exists(ctx, root+askDirSuffix); err == nil && root != "/" {
		locks = append(locks, root)
	}
	for looked := 0; len(ahead) > 0; looked++ {
		path := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if looked == maxList {
			return locks, fmt.Errorf("%w: of more than %d nodes the others are left out, from %s on",
				framework.ErrTooLarge, maxList, path)
		}
		names, _, err := s.Children(ctx, path)
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			lock, isDir := strings.CutSuffix(name, askDirSuffix)
			switch {
			case isDir && lock != "":
				locks = append(locks, znode.Join(path, lock))
			case !strings.HasPrefix(name, znode.ProtectedPrefix): // contenders have no children
				ahead = append(ahead, znode.Join(path, name))
			}
		}
	}
	slices.Sort(locks)
	return locks, nil
}

// deadlocks returns the certain deadlocks of the graph. uncertain says that there may be more.
func (g *askGraph) deadlocks() (found []Deadlock, uncertain bool) {
	all, reported := askSet{}, askSet{}
	for _, a := range g.asks {
		all[a] = true
	}
	for _, a := range g.asks {
		cycle := g.cycleOf(a, all)
		if len(cycle) == 0 || reported[a] {
			continue
		}
		certain := g.certainCycle(a, cycle, false)
		if len(certain) == 0 {
			uncertain = true
			continue
		}
		for b := range certain {
			reported[b] = true
		}
		youngest := g.youngestAsk(certain)
		found = append(found, Deadlock{g.describeCycle(youngest, certain), youngest.Report})
	}
	return found, uncertain
}
