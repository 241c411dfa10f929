package interop

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/queue/curatorqueue"
)

// TestSimpleQueueWithCurator checks that each library takes the other's items in order, and that
// each item is taken once when both take concurrently.
func TestSimpleQueueWithCurator(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	peer := startCurator(t, CuratorQueue)
	client, err := framework.Connect(ctx, framework.Config{Servers: servers},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer client.Close(context.Background())
	do := func(c Command) []string {
		answer, err := peer.Do(ctx, c)
		require.NoError(t, err)
		return answer.Participants
	}
	do(Command{Do: "open", Servers: strings.Join(servers, ",")})
	path := fmt.Sprintf("/interop-queue-%d", os.Getpid())
	ours := curatorqueue.New(client, path)

	for _, item := range []string{"one", "two"} {
		require.NoError(t, ours.Put(ctx, []byte(item)))
	}
	do(Command{Do: "put", Node: path, Nodes: []string{"three", "four"}})
	require.Equal(t, []string{"one"}, do(Command{Do: "peek", Node: path}))
	require.Equal(t, []string{"one"}, do(Command{Do: "take", Node: path, Rounds: 1}))
	for _, want := range []string{"two", "three"} {
		got, err := ours.Take(ctx)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.Equal(t, []string{"four"}, do(Command{Do: "take", Node: path, Rounds: 1}))

	const each = 40
	var theirs, taken []string
	var both sync.WaitGroup
	defer func() { // also if the test ends early: they report errors to it
		cancel()
		both.Wait()
	}()
	both.Go(func() { // without do, which may be called in the test's goroutine only
		answer, err := peer.Do(ctx, Command{Do: "take", Node: path, Rounds: each})
		assert.NoError(t, err)
		theirs = answer.Participants
	})
	both.Go(func() {
		for range each {
			got, err := ours.Take(ctx)
			if !assert.NoError(t, err) {
				return
			}
			taken = append(taken, string(got))
		}
	})
	var put []string
	for i := range each {
		a, b := fmt.Sprintf("a%02d", i), fmt.Sprintf("b%02d", i)
		require.NoError(t, ours.Put(ctx, []byte(a)))
		do(Command{Do: "put", Node: path, Nodes: []string{b}})
		put = append(put, a, b)
	}
	both.Wait()
	require.ElementsMatch(t, put, slices.Concat(theirs, taken))
}
