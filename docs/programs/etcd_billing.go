package main

import (
	"context"
	"log"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	"go.etcd.io/etcd/client/v3/naming/resolver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// serveBilling registers again with each new session.
func serveBilling(ctx context.Context, client *clientv3.Client, server *grpc.Server, listener net.Listener) error {
	manager, err := endpoints.NewManager(client, "services/billing")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	go func() {
		for ctx.Err() == nil {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
			if err != nil {
				log.Print(err)
				time.Sleep(time.Second)
				continue
			}
			if err := manager.AddEndpoint(ctx, "services/billing/"+address, endpoints.Endpoint{Addr: address},
				clientv3.WithLease(session.Lease())); err != nil {
				log.Print(err)
				session.Close()
			}
			select {
			case <-session.Done():
			case <-ctx.Done():
				session.Close()
				time.Sleep(2 * time.Second) // until callers have noticed
			}
		}
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

func dialBilling(client *clientv3.Client) (*grpc.ClientConn, error) {
	builder, err := resolver.NewBuilder(client)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("etcd:///services/billing", grpc.WithResolvers(builder),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}
