package interop

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// valuePeer is another library that reads, writes and watches a value's node.
type valuePeer struct {
	do                    func(Command) []string
	get, set, watch, wait string // names of commands
}

// testConfig lets a Value and another library use one node.
func testConfig(t *testing.T, ctx context.Context, client *framework.Client, peer valuePeer) {
	path := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)
	node := path + "/value"
	v := config.New(client, node, codec.Text())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	limit := int(deadline.Milliseconds())
	theySee := func(text string) {
		t.Helper()
		require.Equal(t, []string{text}, peer.do(Command{Do: peer.wait, Node: node, Part: text, Wait: &limit}))
		require.Equal(t, []string{text}, peer.do(Command{Do: peer.get, Node: node}))
	}
	weSee := func(text string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) { require.Equal(c, text, v.Get()) }, deadline,
			10*time.Millisecond)
	}
	require.NoError(t, v.Set(ctx, "ours"))
	peer.do(Command{Do: peer.watch, Node: node})
	theySee("ours")
	peer.do(Command{Do: peer.set, Node: node, Part: "theirs"})
	weSee("theirs")
	theySee("theirs")
	before := v.Current().Version
	peer.do(Command{Do: peer.set, Node: node, Part: "theirs again"})
	require.ErrorIs(t, v.Set(ctx, "too late", config.WithExpectedVersion(before)), framework.ErrConflict)
	weSee("theirs again")
	require.NoError(t, v.Set(ctx, "ours again", config.WithExpectedVersion(v.Current().Version)))
	theySee("ours again")
	records, err := v.History(ctx)
	require.NoError(t, err)
	require.Equal(t, "theirs again", string(records[1].Data))
	require.True(t, records[1].Foreign)

	type settings struct{ X, Y int }
	require.NoError(t, client.MakeDirs(ctx, path+"/billing"))
	peer.do(Command{Do: peer.set, Node: path + "/billing/x", Part: "1"})
	tree := config.NewTree[settings](client, config.SpringContexts(path, "billing"))
	s, err := tree.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, settings{X: 1}, s.Value)
}

func connectTest(t *testing.T) (context.Context, *framework.Client, []string) {
	t.Helper()
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	t.Cleanup(cancel)
	client, err := framework.Connect(ctx, framework.Config{Servers: servers},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return ctx, client, servers
}

// TestConfigWithCurator checks that Curator's SharedValue and NodeCache, and a Value, can read,
// write and watch the same node.
func TestConfigWithCurator(t *testing.T) {
	peer := startCurator(t, CuratorConfig)
	ctx, client, servers := connectTest(t)
	do := func(c Command) []string {
		answer, err := peer.Do(ctx, c)
		require.NoError(t, err)
		return answer.Participants
	}
	do(Command{Do: "open", Servers: strings.Join(servers, ",")})
	testConfig(t, ctx, client, valuePeer{do: do, get: "get", set: "set", watch: "watch", wait: "await"})
}

// kazooClient opens a client of kazoo until the end of the test, and returns a function that sends
// it a command. That one may be called in any goroutine. It returns the answer as a function to be
// called in the test's goroutine, which fails the test if kazoo has failed.
func kazooClient(t *testing.T, ctx context.Context, servers []string) func(Command) func() []string {
	t.Helper()
	peer, name := kazoo.get(t), t.Name()
	ask := func(c Command) func() []string {
		c.Client = name
		answer, err := peer.Do(ctx, c)
		return func() []string {
			t.Helper()
			require.NoError(t, err)
			return answer.Participants
		}
	}
	ask(Command{Do: "open", Servers: strings.Join(servers, ","), Timeout: 10_000})()
	t.Cleanup(func() { _, _ = peer.Do(context.Background(), Command{Do: "close", Client: name}) })
	return ask
}

// TestConfigWithKazoo checks that kazoo and a Value can read, write and watch the same node.
func TestConfigWithKazoo(t *testing.T) {
	ctx, client, servers := connectTest(t)
	ask := kazooClient(t, ctx, servers)
	do := func(c Command) []string { return ask(c)() }
	testConfig(t, ctx, client, valuePeer{do: do, get: "get-value", set: "set-value", watch: "watch-value",
		wait: "await-value"})
}

// TestCountersWithKazoo checks that no sum is returned twice when both libraries add to the same
// counter concurrently: as text, and with the bytes of Curator's SharedCount.
func TestCountersWithKazoo(t *testing.T) {
	ctx, client, servers := connectTest(t)
	ask := kazooClient(t, ctx, servers)
	for part, option := range map[string]ids.CounterOption{"text": ids.WithText(), "curator": ids.WithSharedCount()} {
		t.Run(part, func(t *testing.T) {
			path := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)
			c := ids.NewCounter(client, path, option)
			defer func() { require.NoError(t, c.Close(ctx)) }()
			require.NoError(t, c.Set(ctx, 1000))
			const each = 50
			theirs := make(chan func() []string, 1)
			go func() { theirs <- ask(Command{Do: "count", Node: path, Part: part, Rounds: each}) }()
			sums := map[string]bool{}
			for range each {
				sum, err := c.Add(ctx, 1)
				require.NoError(t, err)
				sums[strconv.FormatInt(sum, 10)] = true
			}
			for _, sum := range (<-theirs)() {
				require.False(t, sums[sum], "%s was the sum of two additions", sum)
				sums[sum] = true
			}
			require.Len(t, sums, 2*each)
			sum, err := c.Get(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1000+2*each, sum)
		})
	}
}
