package workflow_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// A migration in two steps. The first leader fails after the copy; the next one goes on with the
// switch.
func ExampleStep() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
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
