package monitor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// A queue has a dead letter, until it is put back.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	zk, err := zktest.New() // a service gives the addresses of its ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer zk.Close()
	client, err := framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	mails := queue.New(client, "/app/mails", codec.Bytes(), queue.WithMaxAttempts(1))
	if err := mails.Put(ctx, []byte("a mail")); err != nil {
		log.Fatal(err)
	}
	mail, err := mails.Take(ctx)
	if err == nil {
		err = mail.Nack(ctx, 0, fmt.Errorf("no such address"))
	}
	if err != nil {
		log.Fatal(err)
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
