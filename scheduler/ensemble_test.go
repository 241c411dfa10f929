package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestTicksOnRealServers lets members with skewed clocks run a tick each second, and the leader go
// twice.
func TestTicksOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root := "/scheduler-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	var mu sync.Mutex
	ran := map[string]int{}
	leads := make(chan int, 100)
	stops := map[int]context.CancelFunc{}
	var all sync.WaitGroup
	var last *Scheduler
	var lastClient *framework.Client
	for i := range 4 {
		c, err := framework.Connect(ctx, framework.Config{Servers: servers, Root: root},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		skew := time.Duration(i-2) * 700 * time.Millisecond
		lastClient = c
		last = New(c, testPath, WithNow(func() time.Time { return time.Now().Add(skew) }), WithOnEvent(func(e Event) {
			if e.Kind == EventLeading {
				leads <- i
			}
		}))
		require.NoError(t, last.Add(Job{Name: "j", Spec: "* * * * * *", Run: func(_ context.Context, r Run) error {
			mu.Lock()
			defer mu.Unlock()
			ran[r.ID[:16]]++
			return errors.New("recorded")
		}}))
		running, stop := context.WithCancel(ctx)
		defer stop()
		stops[i] = stop
		s := last
		all.Go(func() {
			if err := s.Run(running); err != nil {
				t.Errorf("member %d: %v", i, err)
			}
		})
	}
	fired := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			state, err := last.State(ctx, "j")
			return err == nil && state.Fired >= n && state.LastRun != nil
		}, 2*time.Minute, 20*time.Millisecond)
	}
	fired(1)
	stops[<-leads]()
	fired(4)
	stops[<-leads]()
	fired(7)
	for _, stop := range stops {
		stop()
	}
	all.Wait()
	session, err := lastClient.Session(ctx)
	require.NoError(t, err)
	require.NoError(t, session.Sync(ctx, testPath), "its server may be behind the others'")
	state, err := last.State(ctx, "j")
	require.NoError(t, err)
	require.Equal(t, parsed(t, "* * * * * *", nil).findDueTicks(state.Registered, state.Last).count, state.Due())
	require.Equal(t, "recorded", state.LastRun.Error)
	require.Nil(t, state.Running)
	require.EqualValues(t, state.Fired, len(ran))
	for tick, n := range ran {
		require.Equal(t, 1, n, tick)
	}
}
