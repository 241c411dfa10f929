//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// recordStall writes into the history what the servers hold at paths without progress, and where the processes' goroutines are. It fails if the servers
// disagree.
func (env *testEnv) recordStall(missing []string) error {
	var paths []string
	for _, name := range missing {
		if path, _, _ := strings.Cut(name, " "); strings.HasPrefix(path, "/") && env.observer != nil {
			paths = append(paths, path)
			env.logNodes(path)
		}
	}
	disagreement := env.checkServersAgree(paths)
	env.sendOrder(orderGoroutines)
	for began := time.Now(); len(env.history.notResting(orderGoroutines)) > 0 && time.Since(began) < waitLimit/8; {
		time.Sleep(10 * time.Millisecond)
	}
	return disagreement
}

// checkServersAgree fails if the servers hold different nodes below the paths: then ZooKeeper itself has lost or invented a transaction, and no client library
// can keep its promises. It tells such a run from one in which Lockstep failed.
func (env *testEnv) checkServersAgree(paths []string) error {
	differences := settledDifferences(env.readServers(paths), env.readServers(paths))
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("the servers disagree: %s", strings.Join(differences, ", "))
}

// workloadPaths returns the paths that the clients use.
func workloadPaths() []string {
	paths := map[string]bool{}
	for _, w := range workloads {
		paths[w.path] = true
	}
	return slices.Sorted(maps.Keys(paths))
}

// logNodes writes all nodes below a path into the history.
func (env *testEnv) logNodes(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit/4)
	defer cancel()
	names, st, err := env.observer.Children(ctx, path)
	env.history.logHarness(fmt.Sprintf("node %s: %d children, owner %x, %v", path, len(names), st.EphemeralOwner, err))
	for _, name := range names {
		env.logNodes(znode.Join(path, name))
	}
}

// nodeTree is which nodes a server holds: the transactions that created them, by path.
type nodeTree map[string]int64

// readServers returns each server's nodes below the paths, behind a sync. It leaves out servers that cannot be read, and says so in the history.
func (env *testEnv) readServers(paths []string) map[int]nodeTree {
	trees := map[int]nodeTree{}
	for i := range env.Size() {
		tree := nodeTree{}
		if err := tree.readServer(env.Addr(i), paths); err != nil {
			env.history.logHarness(fmt.Sprintf("server %d cannot be read: %v", i, err))
			continue
		}
		trees[i] = tree
	}
	return trees
}

func (tree nodeTree) readServer(addr string, paths []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit/8)
	defer cancel()
	c, err := connect(ctx, []string{addr})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }() // it holds nothing
	s, err := c.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Sync(ctx, "/"); err != nil {
		return err
	}
	for _, path := range paths {
		if err := tree.readNode(ctx, s, path); err != nil {
			return err
		}
	}
	return nil
}

// readNode reads a node and those below it.
func (tree nodeTree) readNode(ctx context.Context, s *framework.Session, path string) error {
	names, st, err := s.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	tree[path] = st.Czxid
	for _, name := range names {
		if err := tree.readNode(ctx, s, znode.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// settledDifferences returns where servers differ in nodes that were not created or deleted on any of them between two looks.
func settledDifferences(before, after map[int]nodeTree) (differences []string) {
	paths := map[string]bool{}
	for _, trees := range []map[int]nodeTree{before, after} {
		for _, tree := range trees {
			for path := range tree {
				paths[path] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		settled, created := true, map[int64]bool{}
		var says []string
		for _, i := range slices.Sorted(maps.Keys(before)) {
			now, read := after[i]
			settled = settled && read && now[path] == before[i][path]
			created[before[i][path]] = true
			says = append(says, fmt.Sprintf("%x on %d", before[i][path], i))
		}
		if settled && len(created) > 1 {
			differences = append(differences, fmt.Sprintf("%s was created by %s", path, strings.Join(says, ", by ")))
		}
	}
	return differences
}

func TestServersThatDisagreeAreReported(t *testing.T) {
	same := nodeTree{"/a": 1, "/a/b": 2}
	require.Empty(t, settledDifferences(map[int]nodeTree{0: same, 1: same}, map[int]nodeTree{0: same, 1: same}))
	lost := nodeTree{"/a": 1}
	require.Equal(t, []string{"/a/b was created by 2 on 0, by 0 on 1"},
		settledDifferences(map[int]nodeTree{0: same, 1: lost}, map[int]nodeTree{0: same, 1: lost}))
	require.Empty(t, settledDifferences(map[int]nodeTree{0: same, 1: lost}, map[int]nodeTree{0: same, 1: same}), "it came meanwhile")
	require.Empty(t, settledDifferences(map[int]nodeTree{0: same}, map[int]nodeTree{0: same, 1: lost}), "one server was read")
}
