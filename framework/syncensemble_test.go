package framework_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestSyncShowsWritesOfAllServers writes over each server and reads over each server. On a busy
// machine, some reads from the leader behind ZooKeeper's own sync show the value before.
func TestSyncShowsWritesOfAllServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	node := "/sync-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	var sessions []*framework.Session
	for _, server := range servers {
		c, err := framework.Connect(ctx, framework.Config{Servers: []string{server}},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		s, err := c.Session(ctx)
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	var pairs sync.WaitGroup
	for writer, w := range sessions {
		for reader, r := range sessions {
			node := fmt.Sprint(node, "-", writer, "-", reader)
			require.NoError(t, w.Create(ctx, node, nil, framework.Persistent))
			pairs.Go(func() {
				for i := range 300 {
					written, err := w.Set(ctx, node, nil, framework.AnyVersion)
					if !assert.NoError(t, err) || !assert.NoError(t, r.Sync(ctx, node)) {
						return
					}
					_, read, err := r.Get(ctx, node)
					if !assert.NoError(t, err) ||
						!assert.GreaterOrEqual(t, read.Version, written.Version,
							"round %d: written over server %d, read over server %d", i, writer, reader) {
						return
					}
				}
			})
		}
	}
	pairs.Wait()
}
