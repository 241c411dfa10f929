// Package registrygrpc resolves the names of services for gRPC clients with a registry. gRPC's own
// policies balance the calls.
//
//	conn, err := grpc.NewClient("lockstep:///billing", registrygrpc.With(client, "/services"),
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`), …)
//
// Each enabled instance is an endpoint. The endpoints stay while the ZooKeeper servers cannot be
// reached. A service without enabled instances has no endpoints: calls fail with Unavailable, or
// wait with grpc.WaitForReady.
//
// Endpoints have the instances' weights. gRPC's ring_hash and the shuffling of pick_first use them.
// Its round_robin ignores them, and weighted_round_robin uses what the gRPC servers report.
//
// Certificates are checked against the service's name, or the name of grpc.WithAuthority. With TLS
// credentials the endpoints have Instance.SSLPort, if it is set.
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

// Scheme is the scheme of the targets: "lockstep:///billing".
const Scheme = "lockstep"

// With makes a gRPC client resolve targets of Scheme with the registry at base. The options are for
// the pool of each resolver, such as registry.WithRefresh; those of balancing have no effect. With
// registry.WithFile, write "{service}" into the file's name if there are targets of several
// services, since each needs a file of its own. Close the gRPC connection before client.
func With(client *framework.Client, base string, opts ...registry.PoolOption) grpc.DialOption {
	return grpc.WithResolvers(NewBuilder(client, base, opts...))
}

// NewBuilder returns the builder that With passes to grpc.WithResolvers. Use it to pass other
// builders beside it.
func NewBuilder(client *framework.Client, base string, opts ...registry.PoolOption) resolver.Builder {
	return builder{client, base, opts}
}

type builder struct {
	client *framework.Client
	base   string
	opts   []registry.PoolOption
}

func (b builder) Scheme() string { return Scheme }

// Build returns a resolver that follows the instances of the target's service. It does not wait for
// the ZooKeeper servers. The target must not have an authority.
func (b builder) Build(target resolver.Target, conn resolver.ClientConn,
	opts resolver.BuildOptions) (resolver.Resolver, error) {
	if target.URL.Host != "" {
		return nil, fmt.Errorf("%w: target %q has an authority, write %s:///%s", framework.ErrInvalid,
			target.URL.String(), Scheme, target.Endpoint())
	}
	secure := opts.DialCreds != nil && opts.DialCreds.Info().SecurityProtocol == "tls"
	r := &instanceResolver{pool: registry.NewPool(b.client, b.base, target.Endpoint(), b.opts...),
		done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.run(conn, secure)
	return r, nil
}

// instanceResolver passes each list of a pool to gRPC.
type instanceResolver struct {
	pool   *registry.Pool
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// run passes the lists to conn until Close. secure says that the endpoints need the ports of TLS.
func (r *instanceResolver) run(conn resolver.ClientConn, secure bool) {
	defer close(r.done)
	for all, err := range r.pool.Follow(r.ctx) {
		if r.ctx.Err() != nil {
			return
		}
		if err != nil {
			conn.ReportError(err)
			continue
		}
		// An error means that the policy refuses the list, such as an empty one. There is no better
		// list until the next change.
		_ = conn.UpdateState(resolver.State{Endpoints: endpoints(all, secure)})
	}
}

// endpoints returns the enabled instances as endpoints with their weights.
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

// ResolveNow does nothing: the resolver follows all changes.
func (r *instanceResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the resolver and its pool.
func (r *instanceResolver) Close() {
	r.cancel()
	<-r.done
	_ = r.pool.Close(context.Background())
}
