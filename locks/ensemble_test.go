package locks_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// TestContentionOnRealServers lets clients with own sessions, on all servers, add to a number that
// only the lock protects.
func TestContentionOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	const clients, rounds = 8, 30
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root := "/locks-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	number, last := 0, int64(0)
	var wg sync.WaitGroup
	for range clients {
		c, err := framework.Connect(ctx, framework.Config{Servers: servers, Root: root},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		defer c.Close(ctx)
		m := locks.NewMutex(c, path)
		wg.Go(func() {
			for range rounds {
				err := increment(ctx, m, &number, &last)
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, clients*rounds, number)
}

func increment(ctx context.Context, m *locks.Mutex, number *int, last *int64) error {
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	before := *number
	if l.Token() <= *last {
		return fmt.Errorf("token %d after %d", l.Token(), *last)
	}
	*last = l.Token()
	time.Sleep(time.Millisecond)
	*number = before + 1
	return l.Release(ctx)
}
