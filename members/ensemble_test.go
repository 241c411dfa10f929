package members_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/members"
)

// TestMembersOnRealServers has a client on each server. The watchers on all servers receive the
// changes of each client in one order.
func TestMembersOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root := "/members-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	connect := func(i int) (*members.Group, *framework.Client) {
		server := servers[i%len(servers)]
		c, err := framework.Connect(ctx, framework.Config{Servers: []string{server}, Root: root,
			Identity: fmt.Sprint("client ", i)}, framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return members.New(c, path), c
	}
	var groups []*members.Group
	var watchers []*watched
	for i := range max(3, len(servers)) {
		g, _ := connect(i)
		groups = append(groups, g)
		w := &watched{t: t, done: make(chan struct{})}
		watchers = append(watchers, w)
		go func() {
			defer close(w.done)
			for view, err := range g.Follow(ctx) {
				w.mu.Lock()
				if w.err = err; err == nil {
					w.add(view)
				}
				w.mu.Unlock()
			}
		}()
	}
	// awaitAll waits until all watchers show a state.
	awaitAll := func(what string, shows func(members.View) bool) {
		t.Helper()
		for i, w := range watchers {
			require.Eventually(t, func() bool { return w.failed() == nil && w.count() > 0 && shows(w.view()) },
				time.Minute, time.Millisecond, "%s, on server %d", what, i)
		}
	}
	find := func(v members.View, id string) members.Member {
		for _, m := range v.Members {
			if m.ID == id {
				return m
			}
		}
		return members.Member{}
	}

	var drains atomic.Int32
	release := make(chan struct{})
	first, err := groups[0].Join(ctx, "a", members.Info{Version: "1.4", Metadata: map[string]string{"zone": "x"}},
		members.WithDrain(func(ctx context.Context, _ members.Cordon) error {
			select {
			case <-release:
				drains.Add(1)
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
	require.NoError(t, err)
	dying, dyingClient := connect(1)
	_, err = dying.Join(ctx, "b", members.Info{})
	require.NoError(t, err)
	awaitAll("both have joined", func(v members.View) bool {
		return len(v.Members) == 2 && find(v, "a").Info.Version == "1.4" && find(v, "a").Info.Metadata["zone"] == "x"
	})

	for load := range 20 {
		require.NoError(t, first.Update(ctx, func(i *members.Info) { i.Load = float64(load + 1) }))
		view, err := groups[load%len(groups)].Inspect(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, find(view, "a").Info.Load, float64(load+1), "a list is behind a sync")
	}
	awaitAll("the last load", func(v members.View) bool { return find(v, "a").Info.Load == 20 })

	require.NoError(t, groups[1].Cordon(ctx, "a", members.WithReason("new kernel")))
	awaitAll("cordoned", func(v members.View) bool {
		return find(v, "a").State == members.Cordoned && find(v, "a").Cordon.Reason == "new kernel"
	})
	require.ErrorContains(t, first.Healthy(ctx), "the member is cordoned")
	drained := make(chan error, 1)
	go func() { drained <- groups[2].Drain(ctx, "a") }()
	awaitAll("draining", func(v members.View) bool { return find(v, "a").State == members.Draining })
	require.Empty(t, drained, "its work has not ended")
	close(release)
	require.NoError(t, <-drained)
	require.EqualValues(t, 1, drains.Load())
	awaitAll("drained", func(v members.View) bool { return find(v, "a").State == members.Drained })
	require.NoError(t, groups[2].Uncordon(ctx, "a"))
	awaitAll("back in service", func(v members.View) bool {
		return find(v, "a").State == members.Active &&
			len(v.Cordons) == 0
	})
	require.Eventually(t, func() bool { return first.Healthy(ctx) == nil }, time.Minute, time.Millisecond)

	require.NoError(t, dyingClient.Close(ctx)) // its session ends
	awaitAll("one has gone", func(v members.View) bool { return len(v.Members) == 1 })
	require.NoError(t, first.Leave(ctx))
	awaitAll("all have gone", func(v members.View) bool { return len(v.Members) == 0 })
	cancel()
	for _, w := range watchers {
		<-w.done
		require.NoError(t, w.failed(), "a watch ends silently")
	}
}
