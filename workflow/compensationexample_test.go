package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// ErrSoldOut says that an item cannot be sent, now or later.
var ErrSoldOut = errors.New("sold out")

// Sale has the number of an item as its input.
var Sale = workflow.NewKind[int, string]("sale")

// sell charges for an item and ships it. If it cannot be shipped, sell refunds the charge. The
// failure of "ship" is recorded: if this process dies before the refund is recorded, the next one
// refunds, and does not try to ship.
func sell(ctx context.Context, run *workflow.Run, item int) (string, error) {
	charge, err := workflow.Step(ctx, run, "charge", func(ctx context.Context, key workflow.Key) (string, error) {
		fmt.Println("charging for item", item) // with key.ID as the idempotency key
		return "charge 12", nil
	})
	if err != nil {
		return "", err
	}
	err = run.Do(ctx, "ship", func(ctx context.Context, key workflow.Key) error {
		return fmt.Errorf("item %d: %w", item, ErrSoldOut)
	}, workflow.WithPermanentErrors(ErrSoldOut))
	switch {
	case errors.Is(err, ErrSoldOut):
		return "refunded", run.Do(ctx, "refund", func(ctx context.Context, key workflow.Key) error {
			fmt.Println("refunding", charge)
			return nil
		})
	case err != nil:
		return "", err
	}
	return "shipped", nil
}

// An order is charged, cannot be shipped, and is refunded.
func ExampleWithPermanentErrors() {
	zk, err := zktest.New() // a server in memory; a service gives the addresses of its ensemble
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		log.Fatal(err)
	}
	flows := workflow.New(client, "/sales")
	if err := flows.Register(Sale.Function(sell)); err != nil {
		log.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- flows.Work(working) }()

	sale, err := Sale.Start(ctx, flows, "sale-1", 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sale.Wait(ctx))
	info, err := flows.Inspect(ctx, sale.ID())
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range info.Steps {
		fmt.Printf("%s %s%s\n", step.Name, step.Result, step.Error)
	}
	stop()
	fmt.Println(<-ended, flows.Close(ctx), client.Close(ctx))
	zk.Close()
	// Output:
	// charging for item 7
	// refunding charge 12
	// refunded <nil>
	// charge "charge 12"
	// ship item 7: sold out
	// refund null
	// <nil> <nil> <nil>
}
