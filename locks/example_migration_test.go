package locks_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// migrate brings the schema up to date, in one process at a time, however many start at once. The
// context of change ends if the lock is lost.
func migrate(ctx context.Context, client *framework.Client, change func(context.Context) error) error {
	mutex := locks.NewMutex(client, "/shop/migration")
	return locks.Do(ctx, mutex, func(ctx context.Context, _ *locks.Lease) error { return change(ctx) })
}

// A lock around a migration of a database.
func ExampleDo() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	fmt.Println(migrate(ctx, client, func(context.Context) error {
		fmt.Println("ALTER TABLE orders ADD COLUMN paid BOOLEAN")
		return nil
	}))
	// Output:
	// ALTER TABLE orders ADD COLUMN paid BOOLEAN
	// <nil>
}
