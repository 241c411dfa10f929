package workflow_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// Order is declared once, for those who start orders and for those who execute them.
var Order = workflow.NewKind[OrderInput, Receipt]("order")

type OrderInput struct{ Total int }

type Receipt struct{ Payment, ApprovedBy string }

// placeOrder pays an order and waits until somebody approves it.
func placeOrder(ctx context.Context, run *workflow.Run, order OrderInput) (Receipt, error) {
	payment, err := workflow.Step(ctx, run, "pay", func(ctx context.Context, key workflow.Key) (string, error) {
		fmt.Println("paying", order.Total) // with key.ID as the idempotency key
		return "payment 7", nil
	})
	if err != nil {
		return Receipt{}, err
	}
	by, err := workflow.Await[string](ctx, run, "approved", 0)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{payment, by}, nil
}

// executeOrders is what each member does until ctx ends.
func executeOrders(ctx context.Context, client *framework.Client) error {
	flows := workflow.New(client, "/orders")
	defer flows.Close(ctx)
	if err := flows.Register(Order.Function(placeOrder)); err != nil {
		return err
	}
	return flows.Work(ctx)
}

// orderAndApprove is what a process does that starts runs. It registers no function.
func orderAndApprove(ctx context.Context, client *framework.Client) (Receipt, error) {
	flows := workflow.New(client, "/orders")
	defer flows.Close(ctx)
	order, err := Order.Start(ctx, flows, "order-42", OrderInput{Total: 100})
	if err != nil {
		return Receipt{}, err
	}
	if err := flows.Signal(ctx, order.ID(), "approved", "eve"); err != nil {
		return Receipt{}, err
	}
	return order.Wait(ctx)
}

// An order is paid, waits until somebody approves it, and has a receipt.
func ExampleKind() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- executeOrders(working, client) }()

	fmt.Println(orderAndApprove(ctx, client))
	stop()
	fmt.Println(<-ended)
	// Output:
	// paying 100
	// {payment 7 eve} <nil>
	// <nil>
}
