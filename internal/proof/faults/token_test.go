package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
)

// testTokens compares tokens with the zxids of the transactions that created the leases' nodes,
// while the same sessions and others write.
func testTokens(t *testing.T, env *testEnv) {
	const clients, grants = 4, 40
	cfg := env.clientConfig(0, 1, 2)
	cfg.SessionTimeout = 20 * time.Second // beside other tests the machine may stall for longer than theirs
	require.NoError(t, mustConnect(t, cfg).MakeDirs(t.Context(), "/"+t.Name()))
	ctx, stop := context.WithTimeout(t.Context(), waitLimit)
	defer stop()
	var cs []*framework.Client
	for range clients {
		cs = append(cs, mustConnect(t, cfg))
	}
	written := make(chan error, 1)
	go func() {
		written <- runConcurrently(clients, func(i int) error {
			return keepWriting(ctx, cs[i], fmt.Sprintf("/%s/written-%d", t.Name(), i))
		})
	}()
	err := runConcurrently(clients, func(i int) error {
		return takeTokens(ctx, cs[i], fmt.Sprintf("/%s/lock-%d", t.Name(), i%2), grants)
	})
	stop()
	require.NoError(t, errors.Join(err, <-written))
}

// keepWriting creates a node and writes to it until ctx ends.
func keepWriting(ctx context.Context, c *framework.Client, path string) error {
	if err := c.CreateIfMissing(ctx, path, nil, framework.Persistent); err != nil { // also over a lost connection
		return err
	}
	for ctx.Err() == nil {
		if _, err := c.Set(ctx, path, []byte("x"), framework.AnyVersion); err != nil && ctx.Err() == nil &&
			!failure.IsTransient(err) {
			return err
		}
	}
	return nil
}

// takeTokens locks n times and checks that each token is the node's czxid, and that tokens rise.
func takeTokens(ctx context.Context, c *framework.Client, path string, n int) error {
	last := int64(0)
	for range n {
		lease, err := locks.NewMutex(c, path).Lock(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(checkTokenIsCzxid(ctx, c, lease),
			mismatch(fmt.Sprintf("a token above %#x", last), lease.Token() > last, lease.Token())); err != nil {
			return err
		}
		last = lease.Token()
		if err := lease.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}
