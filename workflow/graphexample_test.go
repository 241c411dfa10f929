package workflow_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/internal/testkit/exampleclient"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
)

// An order is reserved, then charged, then shipped. What remains can be seen at any moment.
func ExampleNewGraph() {
	ctx := context.Background()
	client, done := exampleclient.Connect(ctx)
	defer done()

	ledger := workflow.NewLedger(client, "/orders/42")
	type step = workflow.GraphStep[int] // the input is the order's total
	graph, err := workflow.NewGraph("fulfil",
		step{Name: "ship", After: []string{"charge"},
			Do: func(ctx context.Context, key workflow.Key, total int, results workflow.GraphResults) (any, error) {
				receipt, err := workflow.StepResult[string](results, "charge")
				if err != nil {
					return nil, err
				}
				records, err := ledger.Records(ctx)
				for _, s := range workflow.GraphsIn(records)[0].Steps {
					fmt.Println(s.Name, s.Done)
				}
				return "parcel with " + receipt, err
			}},
		step{Name: "reserve", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any,
			error) {
			return nil, nil
		}},
		step{Name: "charge", After: []string{"reserve"},
			Do: func(_ context.Context, key workflow.Key, total int, _ workflow.GraphResults) (any, error) {
				return fmt.Sprintf("receipt over %d", total), nil // with key.ID as the idempotency key
			}},
	)
	if err != nil {
		log.Fatal(err)
	}
	_, err = workflow.NewGraph("circle", step{Name: "hen", After: []string{"egg"}},
		step{Name: "egg", After: []string{"hen"}})
	fmt.Println(err)

	lease, err := locks.NewMutex(client, "/locks/orders/42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	opened, err := ledger.Open(ctx, lease)
	if err != nil {
		log.Fatal(err)
	}
	results, err := graph.Run(ctx, opened, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(workflow.StepResult[string](results, "ship"))
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// invalid option: graph "circle": steps form a cycle, each one after the one before it: "hen" -> "egg" -> "hen": leave one of these out of After
	// reserve true
	// charge true
	// ship false
	// parcel with receipt over 100 <nil>
}
