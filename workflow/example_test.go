package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/testkit/exampleclient"
	"github.com/lockstep-go/lockstep/workflow"
)

// A migration in two steps. The first leader fails after the copy; the next one goes on with the
// switch.
func ExampleStep() {
	ctx := context.Background()
	client, done := exampleclient.Connect(ctx)
	defer done()

	migration := workflow.NewLedger(client, "/migrations/v7")
	failing := true
	migrate := func(ctx context.Context, term *election.Term) error {
		opened, err := migration.Open(ctx, term)
		if err != nil {
			return err
		}
		rows, err := workflow.Step(ctx, opened, "copy", func(ctx context.Context, key workflow.Key) (int, error) {
			fmt.Println("copying")
			return 1000, nil
		})
		if err != nil {
			return err
		}
		err = opened.Do(ctx, "switch", func(ctx context.Context, key workflow.Key) error {
			if failing {
				failing = false
				return errors.New("the switch failed")
			}
			fmt.Println("switching after", rows, "rows")
			return nil
		})
		if err != nil {
			return election.Permanent(err)
		}
		return election.ErrStop
	}
	for _, id := range []string{"web-1", "web-2"} {
		candidate := election.New(client, "/migrations/leader", election.WithID(id))
		err := candidate.Lead(ctx, migrate)
		fmt.Println(id, "returns", err != nil)
	}
	// Output:
	// copying
	// web-1 returns true
	// switching after 1000 rows
	// web-2 returns false
}

// An order is paid, waits until somebody approves it, and is sent.
func ExampleWorkflows() {
	ctx := context.Background()
	client, done := exampleclient.Connect(ctx)
	defer done()

	type order struct{ Total int }
	flows := workflow.New(client, "/orders")
	err := flows.Register(workflow.NewKind("order",
		func(ctx context.Context, run *workflow.Run, o order) (string, error) {
			paid, err := workflow.Step(ctx, run, "pay", func(ctx context.Context, key workflow.Key) (string, error) {
				fmt.Println("paying", o.Total) // with key.ID as the idempotency key
				return "receipt 7", nil
			})
			if err != nil {
				return "", err
			}
			by, err := workflow.Await[string](ctx, run, "approved", 0)
			if err != nil {
				return "", err
			}
			return paid + ", approved by " + by, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- flows.Work(working) }()

	if err := flows.Start(ctx, "order", "order-42", order{Total: 100}); err != nil {
		log.Fatal(err)
	}
	if err := flows.Signal(ctx, "order-42", "approved", "eve"); err != nil {
		log.Fatal(err)
	}
	result, err := workflow.Result[string](ctx, flows, "order-42")
	fmt.Println(result, err)
	stop()
	fmt.Println(<-ended, flows.Close(ctx))
	// Output:
	// paying 100
	// receipt 7, approved by eve <nil>
	// <nil> <nil>
}
