package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// TestLocksBeyondTheTransactionLimitAreRefused requests 30,000 locks with one client. A server
// closes a session in one transaction, and a transaction above the limit would stop the ensemble.
// So the client must refuse locks in time, and the ensemble must still serve after the client has
// closed.
func TestLocksBeyondTheTransactionLimitAreRefused(t *testing.T) {
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{NoFsync: true, Patience: waitLimit, HeapMB: 1024})}
	cfg := framework.Config{Servers: env.Addrs(), SessionTimeout: maxSessionTimeout}
	ctx, cancel := context.WithTimeout(t.Context(), 3*waitLimit)
	defer cancel()
	client, err := framework.Connect(ctx, cfg)
	require.NoError(t, err)
	var mu sync.Mutex
	held, refused := 0, 0
	var asks sync.WaitGroup
	const workers, wanted = 64, 30_000
	for w := range workers {
		asks.Go(func() {
			for i := w; i < wanted; i += workers {
				_, err := locks.NewMutex(client, fmt.Sprintf("/locks/%05d", i)).Lock(ctx)
				mu.Lock()
				switch {
				case err == nil:
					held++
				case errors.Is(err, framework.ErrTooLarge):
					refused++
				default:
					t.Errorf("lock %d: %v", i, err)
				}
				stop := refused >= 2*workers
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	asks.Wait()
	t.Logf("%d locks held, then %d refused", held, refused)
	require.Greater(t, held, 5_000)
	require.Positive(t, refused)
	s, err := client.Session(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Err(), "the session must survive")
	for err = client.Close(ctx); errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; {
		// so many nodes may take longer than a cleanup waits
		err = client.Close(ctx)
	}
	if err != nil { // or longer than the close of the session
		require.ErrorIs(t, err, framework.ErrUnconfirmed)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}

	time.Sleep(5 * time.Second) // servers that cannot write the transaction would fail within this time
	for _, server := range env.Addrs() {
		cfg.Servers = []string{server}
		next, err := framework.Connect(ctx, cfg)
		require.NoError(t, err, "server %s does not accept sessions", server)
		lease, err := locks.NewMutex(next, "/locks/00000").Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, lease.Release(ctx))
		require.NoError(t, next.Close(ctx))
	}
}
