package ids_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/zktest"
)

func ExampleSequence() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	orders := ids.NewSequence(client, "/ids/orders")
	defer func() { _ = orders.Close(ctx) }()
	for range 2 {
		id, err := orders.Next(ctx) // from memory, but for the first of a block
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
}

func ExampleCounter() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	visits := ids.NewCounter(client, "/counters/visits")
	defer func() { _ = visits.Close(ctx) }()
	sum, err := visits.Add(ctx, 3)
	fmt.Println(sum, err)
	fmt.Println(visits.CompareAndSet(ctx, 4, 0))
	// Output:
	// 3 <nil>
	// set /counters/visits: counter has another number: it is 3, 4 was expected
}

func ExampleWorker() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	events := ids.NewWorker(client, "/ids/events", 1024)
	defer func() { _ = events.Close(ctx) }()
	many := make([]int64, 3)
	if err := events.Fill(ctx, many); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(many[0] < many[1], events.Parse(many[1]).Slot < 1024)
	// Output:
	// true true
}
