package registry_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	billing, err := registry.New(client, "/services").Register(ctx,
		registry.Instance{Service: "billing", Address: "10.0.0.7", Port: 8080})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = billing.Close(ctx) }()

	pool := registry.NewPool(client, "/services", "billing")
	defer func() { _ = pool.Close(ctx) }()
	one, err := pool.Pick(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(one.Instance.HostPort(false))
	one.Done(nil) // the call's error
	// Output:
	// 10.0.0.7:8080
}
