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
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// TestAClientCannotHoldTooMuch has one client ask for 30,000 locks. The servers could not close a session that holds them: the transaction would be
// longer than they accept, and the ensemble would not serve any more. So the client is refused in time, closes, and the ensemble goes on.
func TestAClientCannotHoldTooMuch(t *testing.T) {
	a := &arena{ensemble.Private(t, ensemble.Config{NoFsync: true, Patience: patience, HeapMB: 1024})}
	cfg := framework.Config{Servers: a.Addrs(), SessionTimeout: longTimeout}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	require.NoError(t, s.Err(), "the session lives on")
	require.NoError(t, client.Close(ctx))

	time.Sleep(5 * time.Second) // servers that cannot write the transaction fail now
	for _, server := range a.Addrs() {
		cfg.Servers = []string{server}
		next, err := framework.Connect(ctx, cfg)
		require.NoError(t, err, "server %s takes no session any more", server)
		lease, err := locks.NewMutex(next, "/locks/00000").Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, lease.Release(ctx))
		require.NoError(t, next.Close(ctx))
	}
}
