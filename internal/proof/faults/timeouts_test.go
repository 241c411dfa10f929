package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// testTimedOutAcquiresLeaveNothing runs ten thousand acquires that time out, with one session,
// behind a waiter in line. They must leave no node and no watch.
func testTimedOutAcquiresLeaveNothing(t *testing.T, env *testEnv) {
	for try := 0; !timedOutAcquiresLeaveNothing(t, env, try); try++ {
		require.Less(t, try, 4, "the holder was lost during each try")
	}
}

// timedOutAcquiresLeaveNothing returns false if the machine stalled for so long that the holder was
// lost meanwhile.
func timedOutAcquiresLeaveNothing(t *testing.T, env *testEnv, try int) bool {
	const tries, goroutines = 10000, 40
	steady := env.clientConfig(0, 1, 2)
	steady.SessionTimeout = maxSessionTimeout
	history := &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), try)}
	holder, err := history.lock("the holder", mustConnect(t, steady))
	require.NoError(t, err)
	next, err := history.startWaiter("the waiter", mustConnect(t, steady))
	if errors.Is(err, errNoWait) && holder.hasEnded() {
		return false
	}
	require.NoError(t, err)
	c := mustConnect(t, steady)
	m := locks.NewMutex(c, history.path)
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
	awaitTwoContenders(t, c, history.path)
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

// awaitTwoContenders waits until the lock has two nodes only: those of the holder and of the
// waiter.
func awaitTwoContenders(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	eventually(t, func() error {
		names, _, err := c.Children(t.Context(), path)
		return errors.Join(err, mismatch("two contenders", len(names) == 2, names))
	})
}

// checkWatches returns an error if a session watches a node of the lock that does not exist, or the
// same node twice. The waiter's watch on held must be reported, otherwise the servers' report was
// misread.
func checkWatches(t *testing.T, env *testEnv, c *framework.Client, held string) error {
	t.Helper()
	dir, _ := znode.Split(held)
	seen := map[string]bool{}
	watches, err := serverWatches(env)
	if err != nil {
		return err
	}
	for _, w := range watches {
		path, session := w[0], w[1]
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

// serverWatches returns the pairs of path and session that the servers report as "wchp": each
// watched path, followed by an indented line for each session that watches it. On a slow machine an
// answer may take too long.
func serverWatches(env *testEnv) (watches [][2]string, err error) {
	for i := range env.Size() {
		answer, err := env.FourLetter(i, "wchp")
		if err != nil {
			return nil, err
		}
		path := ""
		for line := range strings.Lines(answer) {
			session, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
			if indented {
				watches = append(watches, [2]string{path, session})
			} else {
				path = session
			}
		}
	}
	return watches, nil
}
