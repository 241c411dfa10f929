package redislock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/redislock"
)

// newServer returns an in-memory server. A program has the address of its own.
func newServer() *miniredis.Miniredis {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	return server
}

func ExampleMutex() {
	server := newServer()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()

	thumbnails := redislock.NewMutex(client, "thumbnails", redislock.WithExpiry(10*time.Second))
	err := locks.Do(context.Background(), thumbnails, func(ctx context.Context, lease *locks.Lease) error {
		fmt.Println("token", lease.Token())
		return nil // ctx ends with the lease
	})
	fmt.Println(err)
	// Output:
	// token 1
	// <nil>
}

func ExampleRWLock() {
	server := newServer()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()
	ctx := context.Background()

	catalogue := redislock.NewRWLock(client, "catalogue")
	first, err := catalogue.RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = catalogue.TryLock(ctx)
	fmt.Println(err)
	fmt.Println(first.Release(ctx))
	// Output:
	// try catalogue: not acquired
	// <nil>
}
