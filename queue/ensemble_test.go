package queue

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestQueueOnRealServers lets producers and consumers with own sessions work, and consumers die
// with what they have.
func TestQueueOnRealServers(t *testing.T) {
	for _, order := range []Order{Parallel, Strict} {
		t.Run(string(order), func(t *testing.T) {
			servers := ensemble.Shared(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			r := &crowd{t: t, history: newHistory(order),
				config: framework.Config{Servers: servers,
					Root: "/queue-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)}}
			r.run(ctx)
		})
	}
}

// rush is one run on real servers.
type crowd struct {
	*history
	t      *testing.T
	config framework.Config
}

const (
	rushProducers = 4
	rushConsumers = 6
	rushItems     = 250 // of each producer
	rushDeaths    = 5   // of each consumer
)

func (r *crowd) run(ctx context.Context) {
	var producers, consumers sync.WaitGroup
	for p := range rushProducers {
		producers.Go(func() { r.produce(ctx, p) })
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	for i := range rushConsumers {
		consumers.Go(func() {
			for life := 0; working.Err() == nil; life++ {
				r.live(working, rand.New(rand.NewPCG(uint64(i), uint64(life))), life < rushDeaths)
			}
		})
	}
	producers.Wait()
	require.Eventually(r.t, func() bool { _, acked := r.counts(); return acked == rushProducers*rushItems },
		2*time.Minute, 20*time.Millisecond)
	stop()
	consumers.Wait()
	r.check(r.t)
	r.requireEmpty(ctx)
}

func (r *crowd) open() (*framework.Client, *Queue[string]) {
	c, err := framework.Connect(context.Background(), r.config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	return c, New(c, "/q", codec.Text(), WithOrder(r.order), segmentSize(50), WithPrefetch(1))
}

func (r *crowd) produce(ctx context.Context, p int) {
	c, q := r.open()
	defer c.Close(context.Background())
	defer q.Close(context.Background())
	for i := range rushItems {
		v := fmt.Sprintf("%d-%04d", p, i)
		r.putting(v)
		r.putEnded(q.Put(ctx, v), v)
	}
}

// live takes until the consumer dies, if it is to, or the end.
func (r *crowd) live(ctx context.Context, random *rand.Rand, dies bool) {
	c, q := r.open()
	defer q.Close(context.Background())
	defer c.Close(context.Background()) // first: nothing is given back
	for d, err := range q.Deliveries(ctx) {
		if err != nil {
			r.fault("take: %v", err)
			return
		}
		r.start(d)
		if dies && random.IntN(20) == 0 {
			return
		}
		r.ackEnded(d.Value, d.Ack(context.Background()))
	}
}

func (r *crowd) requireEmpty(ctx context.Context) {
	c, q := r.open()
	defer c.Close(context.Background())
	defer q.Close(context.Background())
	n, err := q.Len(ctx)
	require.NoError(r.t, err)
	require.Zero(r.t, n)
}
