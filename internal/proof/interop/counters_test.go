package interop

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestCountersWithCurator checks that no sum is returned twice when both libraries add to the same
// DistributedAtomicLong concurrently, and that each reads what the other has written to a
// SharedCount.
func TestCountersWithCurator(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	defer cancel()
	peer := startCurator(t, CuratorCounters)
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
	path := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)

	long := ids.NewCounter(client, path+"/long")
	defer func() { require.NoError(t, long.Close(ctx)) }()
	require.NoError(t, long.Set(ctx, 1<<40))
	poll(t, func() string { return "Curator, whose server may lag behind ours, reads the sum" }, func() bool {
		return slices.Equal([]string{strconv.Itoa(1 << 40)}, do(Command{Do: "read", Node: path + "/long"}))
	})
	const each = 50
	var mu sync.Mutex
	sums := map[string]bool{}
	note := func(sum string) {
		mu.Lock()
		defer mu.Unlock()
		assert.False(t, sums[sum], "%s was the sum of two additions", sum)
		sums[sum] = true
	}
	var both sync.WaitGroup
	defer both.Wait() // also if the test ends early: it reports errors to it
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

// BenchmarkCountersBesideCurator lets 32 goroutines of one Lockstep client add to a counter, and 32
// threads of one Curator client to another one, by turns on the same server. It reports the ratio
// of Lockstep's additions to Curator's, with Curator's usual retries and with retries without a
// pause.
func BenchmarkCountersBesideCurator(b *testing.B) {
	servers := ensemble.Shared(b)
	const threads, turn = 32, 2 * time.Second
	ctx := b.Context()
	peer := startCurator(b, CuratorCounters)
	client, err := framework.Connect(ctx, framework.Config{Servers: servers},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(b, err)
	defer client.Close(context.Background())
	_, err = peer.Do(ctx, Command{Do: "open", Servers: strings.Join(servers, ",")})
	require.NoError(b, err)
	path := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)
	counter := ids.NewCounter(client, path+"/ours")
	defer counter.Close(context.Background())
	ours := func() (added int) {
		var all sync.WaitGroup
		var sum atomic.Int64
		end := time.Now().Add(turn)
		for range threads {
			all.Go(func() {
				for time.Now().Before(end) {
					if _, err := counter.Add(ctx, 1); err != nil {
						b.Error(err)
						return
					}
					sum.Add(1)
				}
			})
		}
		all.Wait()
		return int(sum.Load())
	}
	theirs := func(retry string) int {
		wait := int(turn.Milliseconds())
		answer, err := peer.Do(ctx, Command{Do: "contend", Node: path + "/" + strings.ReplaceAll(retry, " ", "-"),
			Spec: Spec{Permits: threads}, Wait: &wait, Part: retry})
		require.NoError(b, err)
		added, err := strconv.Atoi(answer.Participants[0])
		require.NoError(b, err)
		return added
	}
	ours()
	theirs("usual") // warm up
	theirs("at once")
	var sums [3]int
	rounds := 0
	for b.Loop() {
		sums[0] += ours()
		sums[1] += theirs("usual")
		sums[2] += theirs("at once")
		rounds++
	}
	b.ReportMetric(float64(sums[0])/float64(rounds)/turn.Seconds(), "adds/s")
	b.ReportMetric(float64(sums[0])/float64(max(1, sums[1])), "x-usual")
	b.ReportMetric(float64(sums[0])/float64(max(1, sums[2])), "x-at-once")
}
