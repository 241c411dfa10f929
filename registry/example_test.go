package registry_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx := context.Background()
	zk, err := zktest.New() // a service gives the addresses of its ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer zk.Close()
	client, err := framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close(ctx) }()

	billing, err := registry.New(client, "/services").Register(ctx,
		registry.Instance{Service: "billing", Address: "10.0.0.7", Port: 8080})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = billing.Close(ctx) }()

	pool := registry.NewPool(client, "/services", "billing")
	defer func() { _ = pool.Close(ctx) }()
	one, err := pool.Pick(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(one.Instance.HostPort(false))
	one.Done(nil) // the call's error
	// Output:
	// 10.0.0.7:8080
}
