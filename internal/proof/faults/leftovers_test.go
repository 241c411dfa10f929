package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// awaitNoContenders waits until none of the paths has a contender.
func awaitNoContenders(t *testing.T, c *framework.Client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		eventually(t, func() error {
			names, _, err := c.Children(t.Context(), path)
			if errors.Is(err, framework.ErrNoNode) {
				return nil
			}
			return errors.Join(err, mismatch("no contender at "+path, len(names) == 0, names))
		})
	}
}

// testKilledProcesses kills processes with SIGKILL at random points of their acquires. Their nodes
// must be removed when their sessions end.
func testKilledProcesses(t *testing.T, env *testEnv) {
	paths := []string{"/" + t.Name() + "/a", "/" + t.Name() + "/b"}
	c := mustConnect(t, env.clientConfig(0, 1, 2))
	left := 0
	for round := 0; round < 3 || left == 0; round++ { // later rounds find the nodes that earlier ones left
		require.Less(t, round, 12, "no process was killed while it had a node in a line")
		children := make([]*child, 3)
		for i := range children {
			children[i] = startChild(t, env, "acquirer", pathVariable+"="+paths[0]+","+paths[1])
		}
		for _, c := range children {
			c.readLine(t, "ready")
		}
		for _, c := range children {
			wait(t, randomBelow(200*time.Millisecond<<(round/3))) // on a slow machine it gets longer to ask
			c.kill()
		}
		syncWithOthers(t, c)
		for _, path := range paths {
			r, err := locks.Inspect(t.Context(), c, path)
			require.NoError(t, err)
			left += len(r.Holders) + len(r.Waiters)
		}
	}
	awaitNoContenders(t, c, paths...)
	for _, path := range paths {
		lease, err := locks.NewMutex(c, path).TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
	}
}

// connectionResets is a client whose connections are reset at random, often after the server has
// carried out a request and before its reply.
type connectionResets struct {
	client *framework.Client
	proxy  *ensemble.Proxy
	resets atomic.Int64
}

// resetUntil drops replies and resets the connection, repeatedly until ctx ends: the reply of a
// create, and sometimes that of the look-up that follows.
func (resets *connectionResets) resetUntil(ctx context.Context) {
	wait := func(d time.Duration) { <-time.After(d) }
	for ctx.Err() == nil {
		wait(randomBelow(80 * time.Millisecond))
		for again := true; again; again = rand.N(3) == 0 {
			resets.proxy.Hold(ensemble.Down)
			wait(randomBelow(15 * time.Millisecond))
			resets.proxy.Reset()
			resets.proxy.Release(ensemble.Down)
			resets.resets.Add(1)
			wait(randomBelow(20 * time.Millisecond))
		}
	}
}

// acquireOutcomes counts how acquires ended.
type acquireOutcomes struct{ granted, timedOut atomic.Int64 }

// testLostReplies ends contexts at random moments of acquires while replies are lost. The sessions
// survive, so only the client can clean up.
func testLostReplies(t *testing.T, env *testEnv) {
	const clients, goroutines, locksTried = 2, 6, 3
	var paths []string
	for i := range locksTried {
		paths = append(paths, fmt.Sprintf("/%s/%d", t.Name(), i))
	}
	resetClients := make([]*connectionResets, clients)
	for i := range resetClients {
		resetClients[i] = newConnectionResets(t, env, i)
	}
	var outcomes acquireOutcomes
	for round := 0; round < 4 || outcomes.granted.Load() == 0 || outcomes.timedOut.Load() == 0; round++ {
		require.Less(t, round, 16, "%d grants, %d timed out", outcomes.granted.Load(), outcomes.timedOut.Load())
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		require.NoError(t, runConcurrently(clients*(goroutines+1), func(i int) error {
			resets := resetClients[i%clients]
			if i < clients {
				resets.resetUntil(ctx)
				return nil
			}
			// on a slow machine they ask for longer
			return outcomes.acquireUntil(ctx, resets.client, paths, 60*time.Millisecond<<(round/4))
		}))
		cancel()
		awaitNoContenders(t, resetClients[round%clients].client, paths...)
	}
	for i, resets := range resetClients {
		session, err := resets.client.Session(t.Context())
		require.NoError(t, err)
		t.Logf("client %d: %d resets, %d sessions", i, resets.resets.Load(), session.Epoch())
	}
	t.Logf("%d grants, %d timed out", outcomes.granted.Load(), outcomes.timedOut.Load())
}

func newConnectionResets(t *testing.T, env *testEnv, i int) *connectionResets {
	t.Helper()
	resets := &connectionResets{proxy: env.newProxy(t, i)}
	cfg := config(resets.proxy.Addr())
	cfg.SessionTimeout = maxSessionTimeout
	resets.client = mustConnect(t, cfg)
	return resets
}

// acquireUntil acquires locks until ctx ends. It waits for each a random time below maxWait, and
// sometimes longer. A token must be the czxid of the lease's node, even if the reply of the create
// was lost.
func (outcomes *acquireOutcomes) acquireUntil(ctx context.Context, c *framework.Client, paths []string,
	maxWait time.Duration) error {
	for ctx.Err() == nil {
		limit := maxWait
		if rand.N(8) == 0 { // so that some are granted on a slow machine
			limit = max(maxWait, time.Second)
		}
		waiting, cancel := context.WithTimeout(ctx, randomBelow(limit))
		lease, err := locks.NewMutex(c, paths[rand.N(len(paths))]).Lock(waiting)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			outcomes.timedOut.Add(1)
			continue
		case err != nil:
			return err
		}
		outcomes.granted.Add(1)
		if err := checkTokenIsCzxid(ctx, c, lease); err != nil {
			return err
		}
		if err := lease.Release(ctx); err != nil && !errors.Is(err, framework.ErrUnconfirmed) {
			// then the client deletes the node later
			return err
		}
	}
	return nil
}

// checkTokenIsCzxid compares a lease's token with its node, unless ctx or the lease has ended.
func checkTokenIsCzxid(ctx context.Context, c *framework.Client, lease *locks.Lease) error {
	st, err := c.Exists(ctx, lease.Node())
	if ctx.Err() != nil || lease.Err() != nil {
		return nil
	}
	return errors.Join(err, mismatch(fmt.Sprintf("czxid %#x of %s", lease.Token(), lease.Node()), err != nil ||
		st.Czxid == lease.Token(), st.Czxid))
}
