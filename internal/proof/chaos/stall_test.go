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

// recordStall writes into the history which nodes the servers have at paths without progress, and
// the stacks of the processes' goroutines. It returns an error if the servers have different nodes.
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

// checkServersAgree returns an error if the servers have different nodes below the paths. Then
// ZooKeeper itself has lost or invented a transaction, and no client library can keep its promises.
// The error distinguishes such a run from one in which Lockstep failed. A server that cannot be
// read is an error, too: all faults are undone, so each server must answer, and the others do not
// show what it has.
func (env *testEnv) checkServersAgree(paths []string) error {
	return compareServers(env.Size(), func(i int) (nodeTree, error) {
		tree := nodeTree{}
		return tree, tree.readServer(env.Addr(i), paths)
	})
}

// compareServers reads n servers twice and compares what they have.
func compareServers(n int, read func(server int) (nodeTree, error)) error {
	before, err := readServers(n, read)
	if err != nil {
		return err
	}
	after, err := readServers(n, read)
	if err != nil {
		return err
	}
	differences := settledDifferences(before, after)
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
	env.history.logHarness(fmt.Sprintf("node %s: %d children, owner %v, %v", path, len(names), st.EphemeralOwner, err))
	for _, name := range names {
		env.logNodes(znode.Join(path, name))
	}
}

// nodeTree is the set of nodes that a server has: by path, the transaction that created the node.
type nodeTree map[string]int64

// readServers returns what each server has. Its error names all servers that cannot be read.
func readServers(n int, read func(server int) (nodeTree, error)) (map[int]nodeTree, error) {
	trees := map[int]nodeTree{}
	var unread error
	for i := range n {
		tree, err := read(i)
		if err != nil {
			unread = errors.Join(unread,
				fmt.Errorf("server %d cannot be read, so it is not known whether the servers agree: %w", i, err))
		}
		trees[i] = tree
	}
	return trees, unread
}

// readServer adds a server's nodes below the paths, after a sync.
func (tree nodeTree) readServer(addr string, paths []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit/2)
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

// settledDifferences returns the nodes that some servers have and others do not, without nodes that
// were created or deleted on any of them between the two readings.
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
	require.Empty(t, settledDifferences(map[int]nodeTree{0: same, 1: lost}, map[int]nodeTree{0: same, 1: same}),
		"the node was created between the readings")
}

// TestServersThatCannotBeReadAreReported checks that a server that cannot be read at either reading
// is not left out of the comparison.
func TestServersThatCannotBeReadAreReported(t *testing.T) {
	same, away := nodeTree{"/a": 1}, errors.New("away")
	for failing := range 6 {
		readings := 0
		err := compareServers(3, func(server int) (nodeTree, error) {
			defer func() { readings++ }()
			if readings == failing {
				return nil, away
			}
			return same, nil
		})
		require.ErrorIs(t, err, away)
		require.ErrorContains(t, err, fmt.Sprintf("server %d cannot be read", failing%3))
	}
	require.NoError(t, compareServers(3, func(int) (nodeTree, error) { return same, nil }))
}
