package workflow_test

import (
	"context"
	"errors"
	"fmt"

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

// workOnSales executes sales until ctx ends. Each member calls it.
func workOnSales(ctx context.Context, client *framework.Client) error {
	flows := workflow.New(client, "/shop/sales")
	defer flows.Close(ctx)
	if err := flows.Register(Sale.Function(sell)); err != nil {
		return err
	}
	return flows.Work(ctx)
}

// order starts a sale, once for each id however often it is called, and returns its result.
func order(ctx context.Context, client *framework.Client, id string, item int) (string, error) {
	flows := workflow.New(client, "/shop/sales")
	defer flows.Close(ctx)
	sale, err := Sale.Start(ctx, flows, id, item)
	if err != nil {
		return "", err
	}
	return sale.Wait(ctx)
}

// An order is charged, cannot be shipped, and is refunded.
func ExampleWithPermanentErrors() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- workOnSales(working, client) }()
	fmt.Println(order(ctx, client, "sale-1", 7))
	stop()
	fmt.Println(<-ended)
	// Output:
	// charging for item 7
	// refunding charge 12
	// refunded <nil>
	// <nil>
}
