package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// A poll takes what is there, some at a time, and goes on with something else when the queue is
// empty.
func ExampleQueue_TryTake() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	rows := queue.New(client, "/rows", codec.Text(), queue.WithMaxInFlight(10))
	defer rows.Close(ctx)
	if err := rows.PutBatch(ctx, []string{"a", "b", "c", "d"}); err != nil {
		fmt.Println(err)
		return
	}
	batch, err := rows.TakeBatch(ctx, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range batch {
		fmt.Println(d.Value)
	}
	if err := queue.AckAll(ctx, batch...); err != nil { // in one transaction
		fmt.Println(err)
		return
	}
	for {
		d, err := rows.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			fmt.Println("nothing now")
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Value)
		if err := d.Ack(ctx); err != nil {
			fmt.Println(err)
			return
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
	ctx, cancel := context.WithCancel(context.Background()) // mostly of signal.NotifyContext
	defer cancel()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	mails := queue.New(client, "/mails", codec.Text(), queue.WithMaxAttempts(10),
		queue.WithRetry(queue.RetryPolicy{Min: time.Second, Max: time.Hour, Jitter: 0.2}))
	defer mails.Close(context.Background())
	if err := mails.Put(ctx, "ann"); err != nil {
		fmt.Println(err)
		return
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
