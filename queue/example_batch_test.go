package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
)

// A poll takes what is there, some at a time, and goes on with something else when the queue is
// empty.
func ExampleQueue_TryTake() {
	ctx := context.Background()
	client, done := connect(ctx)
	defer done()

	rows := queue.New(client, "/rows", codec.Text(), queue.WithMaxInFlight(10))
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

// Two workers send mails. What fails comes again after a second, two, four and so on, or when the
// handler says; ten attempts at most. When ctx ends, mails that are being sent may be finished for
// up to ten seconds.
func ExampleQueue_Work() {
	client, done := connect(context.Background())
	defer done()
	ctx, cancel := context.WithCancel(context.Background()) // mostly of signal.NotifyContext
	defer cancel()

	mails := queue.New(client, "/mails", codec.Text(), queue.WithMaxAttempts(10),
		queue.WithRetry(queue.RetryPolicy{Min: time.Second, Max: time.Hour, Jitter: 0.2}))
	defer mails.Close(context.Background())
	if err := mails.Put(ctx, "ann"); err != nil {
		log.Fatal(err)
	}
	err := mails.Work(ctx, 2, func(ctx context.Context, d *queue.Delivery[string]) error {
		if d.Value == "nobody" {
			return queue.Permanent(errors.New("no such address"))
		}
		fmt.Println("sent to", d.Value)
		cancel()
		return nil
	}, queue.WithGrace(10*time.Second), queue.WithProcessingTimeout(time.Minute))
	fmt.Println(err)
	// Output:
	// sent to ann
	// <nil>
}
