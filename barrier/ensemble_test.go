package barrier_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestRoundsOnRealServers lets members with own sessions, on all servers, enter and leave together;
// some die inside by closing their session, and are replaced.
func TestRoundsOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	const members, rounds = 6, 40
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root := "/barrier-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	connect := func() *framework.Client {
		c, err := framework.Connect(ctx, framework.Config{Servers: servers, Root: root},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		return c
	}
	var entered atomic.Int64
	var all sync.WaitGroup
	for i := range int64(members) {
		c := connect()
		all.Go(func() {
			defer func() { _ = c.Close(context.Background()) }()
			b := barrier.NewDoubleBarrier(c, path, members)
			for round := range int64(rounds) {
				entered.Add(1)
				r, err := b.Enter(ctx)
				if err != nil || r.Number() != round+1 || entered.Load() < (round+1)*members {
					t.Errorf("round %d: %v, or too early", round+1, err)
					return
				}
				if round%members == i && round%4 == 0 {
					_ = c.Close(context.Background()) // it dies inside
					c = connect()
					b = barrier.NewDoubleBarrier(c, path, members)
				} else if err := r.Leave(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c := connect()
	defer c.Close(ctx)
	session, err := c.Session(ctx)
	require.NoError(t, err)
	require.NoError(t, session.Sync(ctx, path), "its server may be behind the members'")
	names, _, err := c.Children(ctx, path)
	require.NoError(t, err)
	in := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "in-") })
	require.GreaterOrEqual(t, in, 0)
	names, _, err = c.Children(ctx, path+"/"+names[in])
	require.NoError(t, err)
	require.Empty(t, names)
}

// TestGateAndLatchOnRealServers raises, lowers and counts on one server, and waits on another.
func TestGateAndLatchOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root := "/barrier-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	var clients []*framework.Client
	for i := range 2 {
		c, err := framework.Connect(ctx, framework.Config{Servers: servers[i%len(servers):][:1], Root: root},
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		defer c.Close(context.Background())
		clients = append(clients, c)
	}
	near, far := barrier.NewGate(clients[0], path), barrier.NewGate(clients[1], path)
	for range 20 {
		require.NoError(t, near.Raise(ctx))
		done := make(chan error, 1)
		go func() { done <- far.Wait(ctx) }()
		up, err := far.Raised(ctx)
		require.NoError(t, err)
		require.True(t, up, "it is seen on every server")
		require.NoError(t, near.Lower(ctx))
		require.NoError(t, <-done)
		require.NoError(t, far.Wait(ctx))
	}
	a, b := barrier.NewLatch(clients[0], "/latch", 3), barrier.NewLatch(clients[1], "/latch", 3)
	for range 5 {
		done := make(chan error, 1)
		go func() { done <- b.Wait(ctx) }()
		for _, id := range []string{"x", "x", "y", "z"} {
			require.NoError(t, a.CountDown(ctx, id))
		}
		require.NoError(t, <-done)
		require.ErrorIs(t, b.CountDown(ctx, "late"), barrier.ErrTooMany)
		require.NoError(t, a.Reset(ctx))
	}
}
