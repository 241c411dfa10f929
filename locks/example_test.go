package locks_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func ExampleMutex_Lock() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	lease, err := locks.NewMutex(client, "/orders/42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)

	// Work ends with lease.Context(); what it writes elsewhere carries lease.Token().
	fmt.Println(lease.Path(), lease.Err(), lease.Token() > 0)
	// Output: /orders/42 <nil> true
}

func ExampleMutex_TryLock() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	mutex := locks.NewMutex(client, "/orders/42")
	if _, err := mutex.Lock(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_, err := mutex.TryLock(ctx)
	fmt.Println(err)

	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = mutex.Lock(ctx)
	fmt.Println(err)
	// Output:
	// try /orders/42: not acquired
	// acquire /orders/42: context deadline exceeded
}

func ExampleLease_Guard() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	if err := client.Create(ctx, "/total", []byte("0"), framework.Persistent); err != nil {
		fmt.Println(err)
		return
	}
	lease, err := locks.NewMutex(client, "/orders/42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Multi(ctx, lease.Guard(), framework.SetOp("/total", []byte("7"), framework.AnyVersion))
	fmt.Println("while it stands:", err)

	_ = lease.Release(ctx)
	_, err = client.Multi(ctx, lease.Guard(), framework.SetOp("/total", []byte("8"), framework.AnyVersion))
	fmt.Println("afterwards:", err != nil)
	// Output:
	// while it stands: <nil>
	// afterwards: true
}
