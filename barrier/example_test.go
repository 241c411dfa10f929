package barrier_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/zktest"
)

func ExampleDoubleBarrier_Enter() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	phase := barrier.NewDoubleBarrier(client, "/phase", 3) // in a cluster, each member makes its own
	var members sync.WaitGroup
	for i := range 3 {
		members.Go(func() {
			for range 2 {
				round, err := phase.Enter(ctx) // all three, or nobody
				if err != nil {
					log.Fatal(err)
				}
				if i == 0 {
					fmt.Println("inside round", round.Number())
				}
				if err := round.Leave(ctx); err != nil { // when all have left
					log.Fatal(err)
				}
			}
		})
	}
	members.Wait()
	// Output:
	// inside round 1
	// inside round 2
}

func ExampleGate_Hold() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	gate := barrier.NewGate(client, "/maintenance")
	lease, err := gate.Hold(ctx) // falls with this process
	if err != nil {
		fmt.Println(err)
		return
	}
	raised, _ := gate.Raised(ctx)
	fmt.Println("raised:", raised)
	_ = lease.Release(ctx)
	fmt.Println(gate.Wait(ctx))
	// Output:
	// raised: true
	// <nil>
}

func ExampleLatch() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	shards := barrier.NewLatch(client, "/loaded", 2)
	for _, shard := range []string{"shard-1", "shard-2", "shard-2"} { // a retry counts once
		if err := shards.CountDown(ctx, shard); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(shards.Wait(ctx))
	// Output: <nil>
}
