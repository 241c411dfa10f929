package lockstep_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	mails := queue.New(client, "/mails", codec.Text())
	err := lockstep.Run(ctx, client, []lockstep.Part{
		lockstep.Lead(election.New(client, "/billing"), func(ctx context.Context, term *election.Term) error {
			if err := mails.Put(ctx, "the bills are ready"); err != nil {
				return err
			}
			<-ctx.Done() // the next leader begins after this function
			return nil
		}),
		lockstep.Go("mails", func(ctx context.Context) error {
			return mails.Work(ctx, 8, func(_ context.Context, d *queue.Delivery[string]) error {
				fmt.Println(d.Value)
				cancel() // in a service, SIGTERM ends it
				return nil
			})
		}),
	}, lockstep.WithGrace(20*time.Second))
	fmt.Println("the service has ended:", err)
	// Output:
	// the bills are ready
	// the service has ended: <nil>
}
