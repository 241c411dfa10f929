package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/queue"
)

// A poll takes what is there, some at a time, and goes on with something else when the queue is empty.
func ExampleQueue_TryTake() {
	ctx := context.Background()
	client, done := connect(ctx)
	defer done()

	rows := queue.New(client, "/rows", queue.Text(), queue.WithWindow(10))
	defer rows.Close(ctx)
	if err := rows.PutBatch(ctx, []string{"a", "b", "c", "d"}); err != nil {
		log.Fatal(err)
	}
	batch, err := rows.TakeBatch(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range batch {
		fmt.Println(d.Value)
	}
	if err := queue.AckAll(ctx, batch...); err != nil { // in one transaction
		log.Fatal(err)
	}
	for {
		d, err := rows.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			fmt.Println("nothing now")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Value)
		if err := d.Ack(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a
	// b
	// c
	// d
	// nothing now
}
