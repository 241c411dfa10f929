package locks_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// limited calls an API of somebody else that permits five calls a second to all our processes
// together. Each call keeps its permit for at least a second, so no more than five begin in one.
func limited(ctx context.Context, client *framework.Client, call func(context.Context) error) error {
	permits := locks.NewSemaphore(client, "/shop/geocoder", 5)
	return locks.Do(ctx, permits, func(ctx context.Context, _ *locks.Lease) error {
		second := time.After(time.Second)
		err := call(ctx)
		<-second
		return err
	})
}

// A semaphore bounds a rate over all processes.
func ExampleSemaphore() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	fmt.Println(limited(ctx, client, func(context.Context) error {
		fmt.Println("where is Main Street 1?")
		return nil
	}))
	// Output:
	// where is Main Street 1?
	// <nil>
}
