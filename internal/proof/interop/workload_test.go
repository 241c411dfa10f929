package interop

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

const (
	each   = 3  // contenders of each library
	rounds = 15 // of each contender
)

// TestCountersUnderLocksWithPeers lets contenders of all libraries add to numbers that only the
// lock protects.
func TestCountersUnderLocksWithPeers(t *testing.T) {
	for _, r := range exclusive {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, r)
			add := work{section: Add, nodes: s.numbers(2), rounds: rounds}
			var all concurrentWorkers
			for _, team := range libraries {
				if team.supports(r) {
					all.add(s, team, r, add)
				}
			}
			require.NoError(t, all.work(s))
			s.sync()
			for _, n := range add.nodes {
				got, err := number(s.ctx, s.client, n)
				require.NoError(t, err)
				require.Equal(t, len(all)*rounds, got)
			}
			s.awaitNoNodes()
		})
	}
}

// concurrentWorkers are contenders, each with its work.
type concurrentWorkers []worker

type worker struct {
	contender
	work work
}

func (c *concurrentWorkers) add(s *testPath, team library, r role, w work) {
	for range each {
		*c = append(*c, worker{team.newContender(s.t, r, s.path), w})
	}
}

// work runs all of them concurrently.
func (c concurrentWorkers) work(s *testPath) error {
	errs := make([]error, len(c))
	var wg sync.WaitGroup
	for i, w := range c {
		wg.Go(func() { errs[i] = w.contender.work(s.ctx, w.work) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// numbers creates nodes that hold 0.
func (s *testPath) numbers(n int) (nodes []string) {
	s.t.Helper()
	dir := s.path + "-numbers"
	require.NoError(s.t, s.client.MakeDirs(s.ctx, dir))
	for i := range n {
		nodes = append(nodes, znode.Join(dir, strconv.Itoa(i)))
		require.NoError(s.t, s.client.Create(s.ctx, nodes[i], []byte("0"), framework.Persistent))
	}
	return nodes
}
