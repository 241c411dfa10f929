package main

import (
	"context"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// migrate has the context of change end with the session, since the lock ends then.
func migrate(ctx context.Context, client *clientv3.Client, change func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "/shop/migration")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer func() {
		if err := mutex.Unlock(context.WithoutCancel(ctx)); err != nil {
			log.Print(err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return change(ctx)
}
