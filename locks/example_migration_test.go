package locks_test

import (
	"context"
	"fmt"
	"log"

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
	zk, err := zktest.New() // a server in memory; a service gives the addresses of its ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer zk.Close()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	fmt.Println(migrate(ctx, client, func(context.Context) error {
		fmt.Println("ALTER TABLE orders ADD COLUMN paid BOOLEAN")
		return nil
	}))
	// Output:
	// ALTER TABLE orders ADD COLUMN paid BOOLEAN
	// <nil>
}
