package ids_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/zktest"
)

// newEventIDs makes ids of 63 bits for up to 1024 processes at once, which rise with time. Nobody
// configures which process has which number.
func newEventIDs(client *framework.Client) *ids.Worker {
	return ids.NewWorker(client, "/shop/events", 1024)
}

// Ids as Twitter's Snowflake has them, unique also when clocks go back or a process is paused.
func ExampleWorker_Next() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	events := newEventIDs(client)
	defer events.Close(ctx)
	first, err := events.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := events.Next(ctx)
	fmt.Println(first < second, err)
	// Output: true <nil>
}
