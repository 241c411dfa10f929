package queue

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// goldenRecords are records of the first release: later ones must read them.
var goldenRecords = []string{
	`{"v":2,"recipe":"queue","order":"parallel"}`,
	`{"v":2,"recipe":"queue","order":"strict"}`,
	`{"v":2,"recipe":"queue","order":"strict","capacity":5,"dedup":60000}`,
	`{"v":2,"recipe":"queue","order":"parallel","retry":{"min":1000,"max":60000,"factor":2,"jitter":0.5}}`,
}

func TestRecordsOfThisReleaseStayReadable(t *testing.T) {
	for _, text := range goldenRecords {
		want, err := queuelayout.DecodeRecord([]byte(text))
		require.NoError(t, err)
		in(t, func(t *testing.T, w *world) {
			opts := []Option{WithOrder(Order(want.Order))}
			if want.Capacity > 0 {
				opts = append(opts, WithCapacity(want.Capacity), WithDedup(want.DedupWindow()))
			}
			if want.Retry != nil {
				opts = append(opts, WithRetry(RetryPolicy{Min: time.Second, Max: time.Minute, Jitter: 0.5}))
			}
			w.member("a", opts...).put("x")
			n, _ := w.Node(testPath)
			require.Equal(t, text, string(n.Data))
		})
	}
}

// TestQueueNodes: a queue in use has these nodes, with these bytes. What the first release has
// written, later ones have to read.
func TestQueueNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithCapacity(100), WithDedup(time.Minute), segmentSize(2))
		a.put("first", "second")
		require.NoError(t, a.Put(t.Context(), "urgent", WithPriority(9)))
		require.NoError(t, a.Put(t.Context(), "named", WithID("id"), WithHeaders(map[string]string{"for": "ann"})))
		require.NoError(t, a.Put(t.Context(), "delayed", WithDelay(time.Hour)))
		require.Equal(t, "urgent", a.take().Value)
		require.Equal(t, "first", a.take().Value)
		require.NoError(t, a.take().Nack(t.Context(), time.Minute, fmt.Errorf("why")))
		require.Equal(t, strings.TrimSpace(goldenTree), w.drawn(testPath))
	})
}

const goldenTree = `
. persistent {"v":2,"recipe":"queue","order":"parallel","capacity":100,"dedup":60000}
ids persistent 0
ids/0000000000 persistent
ids/0000000000/<shard> persistent
ids/0000000000/<shard>/<hash> persistent
ids/0000000000/<shard> persistent
in persistent 25
items persistent
items/0000000000 persistent closed
items/0000000000/i-0000000000 persistent 1 0 first
items/0000000001 persistent
items/0000000001/i-0000000000 persistent 1 35 {"id":"id","headers":{"for":"ann"}}named
lanes persistent
lanes/9 persistent
lanes/9/0000000000 persistent
lanes/9/0000000000/i-0000000000 persistent 1 10 {"prio":9}urgent
later persistent
later/<hour> container
later/<hour>/<second> container
later/<hour>/<second>/i-0000000000 persistent 1 42 {"tries":1,"err":"why","put":<ms>}second
later/<hour> container
later/<hour>/<second> container
later/<hour>/<second>/i-0000000000 persistent 1 0 delayed
lock container
lock/<line> ephemeral
out persistent
places persistent
places/<uuid> persistent 20
tickets persistent
tickets/9 persistent
tickets/9/0000000000 persistent
tickets/9/0000000000/t-<id>-0000000000 ephemeral a
tickets/items persistent
tickets/items/0000000000 persistent
tickets/items/0000000000/t-<id>-0000000000 ephemeral a
tickets/items/0000000001 persistent
writers container
writers/<uuid> container <count>
writers/<uuid>/<session> ephemeral
`

// masks are what differs from run to run.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`^later/\d{10}/\d{10}`), "later/<hour>/<second>"},
	{regexp.MustCompile(`^later/\d{10}`), "later/<hour>"},
	{regexp.MustCompile(`^(ids/\d+)/\d{10}/[\w-]{22}`), "$1/<shard>/<hash>"},
	{regexp.MustCompile(`^(ids/\d+)/\d{10} persistent`), "$1/<shard> persistent"},
	{regexp.MustCompile(`"put":\d{12,}`), `"put":<ms>`},
	{regexp.MustCompile(`^lock/\S+`), "lock/<line>"},
	{regexp.MustCompile(`t-[0-9a-f]{8}\.[0-9a-f]+-`), "t-<id>-"},
	{regexp.MustCompile(`^places/[0-9a-f-]{36}`), "places/<uuid>"},
	{regexp.MustCompile(`^writers/[0-9a-f-]{36}/[0-9a-f]+`), "writers/<uuid>/<session>"},
	{regexp.MustCompile(`^writers/[0-9a-f-]{36} container \d+`), "writers/<uuid> container <count>"},
}

// drawn is the tree below a node, a line for each: the path, the kind and the data. Equal lines are
// drawn once.
func (w *world) drawn(root string) string {
	var lines []string
	for _, n := range w.Tree(root) {
		path := strings.TrimPrefix(strings.TrimPrefix(n.Path, root), "/")
		if path == "" {
			path = "."
		}
		data := string(n.Data)
		if strings.HasPrefix(path, "lock/") {
			data = "" // the line's own
		}
		if len(data) > 1 && data[0] == 1 {
			data = fmt.Sprintf("%d %d %s", data[0], data[1], data[2:])
		}
		line := strings.TrimSpace(path + " " + n.Mode.String() + " " + data)
		for _, m := range masks {
			line = m.what.ReplaceAllString(line, m.with)
		}
		if len(lines) == 0 || lines[len(lines)-1] != line {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestQueueOfFirstReleaseIsReadable: these nodes are as the first release has left them, with
// nobody there.
func TestQueueOfFirstReleaseIsReadable(t *testing.T) {
	for _, order := range []Order{Parallel, Strict} {
		t.Run(string(order), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				for _, line := range strings.Split(strings.TrimSpace(fmt.Sprintf(goldenLeft, order)), "\n") {
					path, data, _ := strings.Cut(line, " ")
					path = strings.TrimSuffix(testPath+"/"+path, "/.")
					require.NoError(t, a.client.MakeDirs(t.Context(), path[:strings.LastIndex(path, "/")]))
					require.NoError(t, a.client.Create(t.Context(), path, bytesOf(data), framework.Persistent))
				}
				_, err := a.client.Set(t.Context(), testPath+"/items/0000000003", []byte("closed"),
					framework.AnyVersion)
				require.NoError(t, err)
				var got []string
				for range 5 {
					d := a.take()
					got = append(got, fmt.Sprint(d.Value, " ", d.Attempt, " ", d.ID))
					a.ack(d)
				}
				require.Equal(t, []string{"given back 3 ", "urgent 1 ", "one 1 ", "two 1 x", "three 1 "}, got)
				a.put("more")
				require.Equal(t, []string{"more"}, a.drain(1))
				for letter, err := range a.DeadLetters(t.Context()) {
					require.NoError(t, err)
					require.Equal(t, "bad 5 bad",
						fmt.Sprint(string(letter.Data), " ", letter.Attempts, " ", letter.LastError))
				}
			})
		})
	}
}

// goldenLeft has a closed segment before the open one.
const goldenLeft = `
. {"v":2,"recipe":"queue","order":"%s"}
items
tickets
lanes
later
items/0000000003
items/0000000003/i-0000000000 1 0 one
items/0000000003/i-0000000001 1 10 {"id":"x"}two
tickets/items
tickets/items/0000000003
items/0000000004
items/0000000004/i-0000000000 1 0 three
tickets/items/0000000004
tickets/redo
tickets/redo/0000000000
tickets/4
tickets/4/0000000000
lanes/redo
lanes/redo/0000000000
lanes/redo/0000000000/i-0000000000 1 23 {"tries":2,"err":"why"}given back
lanes/4
lanes/4/0000000000
lanes/4/0000000000/i-0000000000 1 10 {"prio":4}urgent
dead
dead/0000000000
dead/0000000000/i-0000000000 1 23 {"tries":5,"err":"bad"}bad
`

// bytesOf is the data of a line of goldenLeft: an item begins with two bytes, written as numbers.
func bytesOf(text string) []byte {
	var version, length byte
	if n, _ := fmt.Sscanf(text, "%d %d ", &version, &length); n == 2 {
		return append([]byte{version, length}, strings.SplitN(text, " ", 3)[2]...)
	}
	return []byte(text)
}
