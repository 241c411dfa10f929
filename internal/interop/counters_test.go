package interop

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// TestCountersWithCurator: both libraries add to one DistributedAtomicLong at once, and no sum is given twice; each reads what the other wrote to a SharedCount.
func TestCountersWithCurator(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	defer cancel()
	peer := startCurator(t, CuratorCounters)
	client, err := framework.Connect(ctx, framework.Config{Servers: servers}, framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer client.Close(context.Background())
	do := func(c Command) []string {
		answer, err := peer.Do(ctx, c)
		require.NoError(t, err)
		return answer.Participants
	}
	do(Command{Do: "open", Servers: strings.Join(servers, ",")})
	path := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)

	long := ids.NewCounter(client, path+"/long")
	defer func() { require.NoError(t, long.Close(ctx)) }()
	require.NoError(t, long.Set(ctx, 1<<40))
	require.Eventually(t, func() bool { // Curator's server may lag behind ours
		return slices.Equal([]string{strconv.Itoa(1 << 40)}, do(Command{Do: "read", Node: path + "/long"}))
	}, deadline, time.Millisecond)
	const each = 50
	var mu sync.Mutex
	sums := map[string]bool{}
	note := func(sum string) {
		mu.Lock()
		defer mu.Unlock()
		require.False(t, sums[sum], "%s was the sum of two additions", sum)
		sums[sum] = true
	}
	var both sync.WaitGroup
	var theirs int
	both.Go(func() {
		answer, err := peer.Do(ctx, Command{Do: "add", Node: path + "/long", Rounds: each})
		if err != nil {
			t.Error(err)
		}
		theirs = len(answer.Participants)
		for _, sum := range answer.Participants {
			note(sum)
		}
	})
	for range each {
		sum, err := long.Add(ctx, 1)
		require.NoError(t, err)
		note(strconv.FormatInt(sum, 10))
	}
	both.Wait()
	require.Positive(t, theirs)
	sum, err := long.Get(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1<<40+each+theirs, sum)

	short := ids.NewCounter(client, path+"/short", ids.WithSharedCount())
	defer func() { require.NoError(t, short.Close(ctx)) }()
	require.Equal(t, []string{"7"}, do(Command{Do: "share", Node: path + "/short", Rounds: 3}))
	sum, err = short.Add(ctx, -20)
	require.NoError(t, err)
	require.EqualValues(t, -10, sum)
	require.Equal(t, []string{"-10"}, do(Command{Do: "share", Node: path + "/short", Rounds: 1}))
	sum, err = short.Get(ctx)
	require.NoError(t, err)
	require.EqualValues(t, -9, sum)
}
