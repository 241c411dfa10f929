package queue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	type mail struct{ To string }
	mails := queue.New(client, "/mails", codec.JSON[mail](), queue.WithOrder(queue.Strict))
	defer mails.Close(ctx)
	if err := mails.PutBatch(ctx, []mail{{"ann"}, {"bob"}}); err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range mails.Deliveries(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Value.To, d.Attempt)
		if d.Value.To == "ann" && d.Attempt == 1 {
			_ = d.Nack(ctx, 0, fmt.Errorf("mailbox full")) // comes again, first in line
			continue
		}
		if err := d.Ack(ctx); err != nil {
			fmt.Println(err) // somebody else may have it
		}
		if d.Value.To == "bob" {
			break
		}
	}
	// Output:
	// ann 1
	// ann 2
	// bob 1
}

func ExampleWithHeaders() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	mails := queue.New(client, "/mails", codec.Text())
	defer mails.Close(ctx)
	if err := mails.Put(ctx, "hello", queue.WithHeaders(map[string]string{"tenant": "7"})); err != nil {
		fmt.Println(err)
		return
	}
	d, err := mails.Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Value, d.Headers["tenant"], d.Enqueued.IsZero())
	_ = d.Ack(ctx)
	// Output: hello 7 false
}

// A result is stored together with the acknowledgement: both or neither, however often the item is
// worked on.
func ExampleDelivery_AckWith() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	orders := queue.New(client, "/orders", codec.Text())
	defer orders.Close(ctx)
	// The record of the order, and the order's place in the queue: both or neither.
	record := framework.CreateOp("/order-7", []byte("new"), framework.Persistent)
	if err := orders.Put(ctx, "7", queue.WithOps(record)); err != nil {
		fmt.Println(err)
		return
	}
	d, err := orders.Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.AckWith(ctx, framework.SetOp("/order-7", []byte("done"), 1)); err != nil {
		fmt.Println(err, errors.Is(err, framework.ErrRefused)) // somebody else has changed the record: not done
	}
	if err := d.AckWith(ctx, framework.SetOp("/order-7", []byte("done"), 0)); err != nil {
		fmt.Println(err)
		return
	}
	data, _, _ := client.Get(ctx, "/order-7")
	fmt.Println(string(data))
	// Output:
	// ack /orders/items/0000000000/i-0000000000: an operation of the caller was refused: transaction refused by operation 0, set /order-7: bad version true
	// done
}
