package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// testTimedOutAcquiresLeaveNothing runs ten thousand acquires that time out, on one session and behind a waiter. They must leave no
// node and no watch.
func testTimedOutAcquiresLeaveNothing(t *testing.T, env *testEnv) {
	for try := 0; !timedOutAcquiresLeaveNothing(t, env, try); try++ {
		require.Less(t, try, 4, "the holder was lost during each try")
	}
}

// timedOutAcquiresLeaveNothing returns false if the machine stalled for so long that the holder was lost meanwhile.
func timedOutAcquiresLeaveNothing(t *testing.T, env *testEnv, try int) bool {
	const tries, goroutines = 10000, 40
	steady := env.clientConfig(0, 1, 2)
	steady.SessionTimeout = maxSessionTimeout
	r := &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), try)}
	holder, err := r.lock("the holder", mustConnect(t, steady))
	require.NoError(t, err)
	next, err := r.startWaiter("the waiter", mustConnect(t, steady))
	if errors.Is(err, errNoWait) && holder.hasEnded() {
		return false
	}
	require.NoError(t, err)
	c := mustConnect(t, steady)
	m := locks.NewMutex(c, r.path)
	require.NoError(t, runConcurrently(goroutines, func(int) error {
		for range tries / goroutines {
			err := lockUntilTimeout(t.Context(), m)
			if holder.hasEnded() {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	if holder.hasEnded() {
		awaitGrant(t, next).release(t.Context())
		return false
	}
	awaitTwoContenders(t, c, r.path)
	eventually(t, func() error { // a server that is behind the client's may still have watches of nodes that are gone
		return checkWatches(t, env, c, holder.lease.Node())
	})
	holder.release(t.Context())
	awaitGrant(t, next).release(t.Context())
	return true
}

// lockUntilTimeout waits for the lock, which is held, for a random time.
func lockUntilTimeout(ctx context.Context, m *locks.Mutex) error {
	ctx, cancel := context.WithTimeout(ctx, randomBelow(40*time.Millisecond))
	defer cancel()
	_, err := m.Lock(ctx)
	return mismatch("a wait that ends with its context", ctx.Err() != nil && err != nil, err)
}

// awaitTwoContenders waits until only the holder and the waiter are left.
func awaitTwoContenders(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	eventually(t, func() error {
		names, _, err := c.Children(t.Context(), path)
		return errors.Join(err, mismatch("two contenders", len(names) == 2, names))
	})
}

// checkWatches returns an error if a session watches a node of the lock that is gone, or one node twice. The waiter's watch on held must be
// reported, otherwise the servers' report was misread.
func checkWatches(t *testing.T, env *testEnv, c *framework.Client, held string) error {
	t.Helper()
	dir, _ := znode.Split(held)
	seen := map[string]bool{}
	for path, session := range serverWatches(t, env) {
		if above, _ := znode.Split(path); above != dir {
			continue
		}
		if seen[path+session] {
			return fmt.Errorf("session %s watches %s twice", session, path)
		}
		seen[path+session] = true
		if _, err := c.Exists(t.Context(), path); err != nil {
			return fmt.Errorf("session %s watches a node that is gone: %w", session, err)
		}
	}
	return mismatch("one watch or more, of at most two nodes and two sessions", len(seen) > 0 && len(seen) <= 4, seen)
}

// serverWatches yields what the servers report as "wchp": each watched path, followed by an indented line for each session that
// watches it.
func serverWatches(t *testing.T, env *testEnv) iter.Seq2[string, string] {
	return func(yield func(path, session string) bool) {
		for i := range env.Size() {
			answer, err := env.FourLetter(i, "wchp")
			require.NoError(t, err)
			path := ""
			for line := range strings.Lines(answer) {
				session, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
				if !indented {
					path = session
				} else if !yield(path, session) {
					return
				}
			}
		}
	}
}
