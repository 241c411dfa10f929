// Package registrygrpc resolves names of services for gRPC by a registry. gRPC's own policies balance the calls.
//
//	conn, err := grpc.NewClient("lockstep:///billing", registrygrpc.With(client, "/services"),
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`), …)
//
// Each instance that is enabled is an endpoint. The addresses stay while the servers are away. A service that a synced read shows to be empty has no endpoints: calls fail with
// Unavailable, or wait with grpc.WaitForReady.
//
// Endpoints carry the instances' weights, which gRPC's ring_hash and the shuffling of pick_first follow. Its round_robin does not, and weighted_round_robin follows what the servers report.
//
// The name that certificates are checked for is that of the service, unless grpc.WithAuthority gives another.
package registrygrpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
)

// Scheme is that of the names: "lockstep:///billing".
const Scheme = "lockstep"

// With lets a gRPC client resolve names of Scheme by the registry at base. Options are those of the pools that keep the lists, such as registry.WithRefresh. The connection must be
// closed before the client.
func With(client *framework.Client, base string, opts ...registry.PoolOption) grpc.DialOption {
	return grpc.WithResolvers(NewBuilder(client, base, opts...))
}

// NewBuilder returns a builder of resolvers, for a grpc.WithResolvers with others.
func NewBuilder(client *framework.Client, base string, opts ...registry.PoolOption) resolver.Builder {
	return builder{client, base, opts}
}

type builder struct {
	client *framework.Client
	base   string
	opts   []registry.PoolOption
}

func (b builder) Scheme() string { return Scheme }

// Build follows the service's instances. It does not wait for the servers.
func (b builder) Build(target resolver.Target, conn resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if target.URL.Host != "" {
		return nil, fmt.Errorf("%w: target %q names an authority, write %s:///%s", registry.ErrInvalid, target.URL.String(), Scheme, target.Endpoint())
	}
	secure := opts.DialCreds != nil && opts.DialCreds.Info().SecurityProtocol == "tls"
	r := &follower{pool: registry.NewPool(b.client, b.base, target.Endpoint(), b.opts...), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.run(conn, secure)
	return r, nil
}

// follower is a resolver: it hands each list to gRPC.
type follower struct {
	pool   *registry.Pool
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *follower) run(conn resolver.ClientConn, secure bool) {
	defer close(r.done)
	for all, err := range r.pool.Changes(r.ctx) {
		if r.ctx.Err() != nil {
			return
		}
		if err != nil {
			conn.ReportError(err)
			continue
		}
		// An error means that a policy does not take the list, such as an empty one. There is no other to give it; the next change is.
		_ = conn.UpdateState(resolver.State{Endpoints: endpoints(all, secure)})
	}
}

// endpoints are the instances that are enabled.
func endpoints(all []registry.Instance, secure bool) (enabled []resolver.Endpoint) {
	for _, i := range all {
		if i.Disabled != "" {
			continue
		}
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: i.HostPort(secure)}}}
		enabled = append(enabled, weight.Set(e, weight.EndpointInfo{Weight: uint32(i.Weight)}))
	}
	return enabled
}

// ResolveNow does nothing: changes come by themselves.
func (r *follower) ResolveNow(resolver.ResolveNowOptions) {}

func (r *follower) Close() {
	r.cancel()
	<-r.done
	_ = r.pool.Close(context.Background())
}
