package election

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestLeadersListTheirLinesAtDifferentTimes: the preferred candidates of 200 elections are due at
// one moment and not in line. Their leaders do not list the lines again in one step.
func TestLeadersListTheirLinesAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leaders, lists = 200, 3
		m := zktest.Start(t).Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second})
		s, err := m.Session(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		at := map[time.Time]int{} // how many lists began at one time, without the first of each leader
		var all sync.WaitGroup
		for range leaders {
			_, changed, err := s.WatchExists(t.Context(), "/missing")
			require.ErrorIs(t, err, framework.ErrNoNode)
			listed := 0
			w := &preferredWatch{seen: map[string]*preferredCandidate{"n": {due: time.Now()}},
				listWaiting: func(context.Context) ([]waitline.Entry, error) {
					mu.Lock()
					defer mu.Unlock()
					if listed++; listed > 1 {
						at[time.Now()]++
					}
					return nil, nil
				}}
			all.Go(func() {
				defer changed.Stop()
				_ = w.waitForChangeOrDue(ctx, s, changed)
			})
		}
		time.Sleep(lists * retryHandOver)
		cancel()
		all.Wait()
		total := 0
		for _, n := range at {
			total += n
			require.Less(t, n, leaders/10)
		}
		require.GreaterOrEqual(t, total, leaders, "each leader lists again")
	})
}
