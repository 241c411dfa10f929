package workflow_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// An order is reserved, then charged, then shipped. What remains can be seen at any moment.
func ExampleNewGraph() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	ledger := workflow.NewLedger(client, "/orders/42")
	reserve := workflow.GraphStep[int, any]{Name: "reserve", // the input is the order's total
		Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) { return nil, nil }}
	charge := workflow.GraphStep[int, string]{Name: "charge", After: []string{reserve.Name},
		Do: func(_ context.Context, key workflow.Key, total int, _ workflow.GraphResults) (string, error) {
			return fmt.Sprintf("receipt over %d", total), nil // with key.ID as the idempotency key
		}}
	ship := workflow.GraphStep[int, string]{Name: "ship", After: []string{charge.Name},
		Do: func(ctx context.Context, key workflow.Key, total int, results workflow.GraphResults) (string, error) {
			receipt, err := charge.Result(results)
			if err != nil {
				return "", err
			}
			records, err := ledger.Records(ctx)
			for _, s := range workflow.GraphsIn(records)[0].Steps {
				fmt.Println(s.Name, s.Done)
			}
			return "parcel with " + receipt, err
		}}
	graph, err := workflow.NewGraph("fulfil", ship, reserve, charge)
	if err != nil {
		fmt.Println(err)
		return
	}
	hen := workflow.GraphStep[int, any]{Name: "hen", After: []string{"egg"}}
	egg := workflow.GraphStep[int, any]{Name: "egg", After: []string{"hen"}}
	_, err = workflow.NewGraph("circle", hen, egg)
	fmt.Println(err)

	lease, err := locks.NewMutex(client, "/locks/orders/42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	opened, err := ledger.Open(ctx, lease)
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := graph.Run(ctx, opened, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ship.Result(results))
	if err := lease.Release(ctx); err != nil {
		fmt.Println(err)
		return
	}
	// Output:
	// invalid option: graph "circle": steps form a cycle, each one after the one before it: "hen" -> "egg" -> "hen": leave one of these out of After
	// reserve true
	// charge true
	// ship false
	// parcel with receipt over 100 <nil>
}
