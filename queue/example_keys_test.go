package queue_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// Items with one key in order, one at a time, others side by side: strict queues, of which the key
// chooses one. The reasons are in docs/adr/0043-no-order-per-key.md.
func ExampleQueue_order_per_key() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	type event struct{ Account, What string }
	var shards []*queue.Queue[event]
	for i := range 4 { // the same number for ever
		shard := queue.New(client, fmt.Sprintf("/events/%d", i), codec.JSON[event](), queue.WithOrder(queue.Strict))
		defer shard.Close(ctx)
		shards = append(shards, shard)
	}
	put := func(e event) {
		key := fnv.New32a()
		key.Write([]byte(e.Account))
		if err := shards[key.Sum32()%uint32(len(shards))].Put(ctx, e); err != nil {
			log.Fatal(err)
		}
	}
	accounts := []string{"ann", "bob", "eve"}
	for _, account := range accounts {
		for _, what := range []string{"open", "pay", "close"} {
			put(event{account, what})
		}
	}

	// Each process takes from all shards. The locks of the queues spread the shards over the
	// processes.
	var mu sync.Mutex
	var left, consumers sync.WaitGroup
	left.Add(9)
	seen := map[string][]string{}
	takeInBackground, stop := context.WithCancel(ctx)
	for _, shard := range shards {
		consumers.Go(func() {
			for d, err := range shard.Deliveries(takeInBackground) {
				if err != nil {
					log.Fatal(err)
				}
				mu.Lock()
				seen[d.Value.Account] = append(seen[d.Value.Account], d.Value.What)
				mu.Unlock()
				if err := d.Ack(ctx); err != nil {
					log.Fatal(err)
				}
				left.Done()
			}
		})
	}
	left.Wait()
	stop()
	consumers.Wait()
	slices.Sort(accounts)
	for _, account := range accounts {
		fmt.Println(account, seen[account])
	}
	// Output:
	// ann [open pay close]
	// bob [open pay close]
	// eve [open pay close]
}
