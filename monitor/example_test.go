package monitor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// A queue has a dead letter, until it is put back.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	mails := queue.New(client, "/app/mails", codec.Bytes(), queue.WithMaxAttempts(1))
	if err := mails.Put(ctx, []byte("a mail")); err != nil {
		fmt.Println(err)
		return
	}
	mail, err := mails.Take(ctx)
	if err == nil {
		err = mail.Nack(ctx, 0, fmt.Errorf("no such address"))
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	m := monitor.New(client, "/lockstep/monitors/app", "/app", monitor.WithInterval(time.Second),
		monitor.WithHysteresis(1, 1),
		monitor.WithOnEvent(10*time.Second, func(ctx context.Context, e monitor.Event) error {
			fmt.Println(e.Path, e.Kind, e.Problem)
			if e.Kind == monitor.Ends {
				cancel()
				return nil
			}
			_, err := mails.Requeue(ctx)
			return err
		}))
	_ = m.Run(ctx) // until ctx ends
	// Output:
	// /app/mails begins dead letters
	// /app/mails ends dead letters
}
