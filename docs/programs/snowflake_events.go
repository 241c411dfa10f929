package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/bwmarrin/snowflake"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// newEventIDs takes a number that no other process has, for as long as the session lasts: the caller
// has to stop using the node when session.Done() is closed. An id may be given twice if the clock of
// the number's former user was ahead.
func newEventIDs(ctx context.Context, client *clientv3.Client) (*snowflake.Node, *concurrency.Session, error) {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		return nil, nil, err
	}
	for n := range int64(1024) {
		key := fmt.Sprintf("/shop/events/%d", n)
		answer, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, "", clientv3.WithLease(session.Lease()))).
			Commit()
		if err != nil {
			return nil, nil, errors.Join(err, session.Close())
		}
		if answer.Succeeded {
			node, err := snowflake.NewNode(n)
			return node, session, err
		}
	}
	return nil, nil, errors.Join(errors.New("all numbers are in use"), session.Close())
}
