package registrygrpc_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/registry/registrygrpc"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	dir     = "/services"
	service = "billing"
	within  = time.Minute
)

// world is a server in memory with one client, in real time: gRPC's goroutines use the network.
type world struct {
	*testing.T
	zk     *zktest.Server
	link   *zktest.Link
	client *framework.Client
}

func newWorld(t *testing.T) *world {
	zk, err := zktest.New()
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	w := &world{T: t, zk: zk, link: zk.Link("client")}
	w.client, err = framework.Connect(t.Context(),
		framework.Config{Servers: zk.Servers(), SessionTimeout: 40 * time.Second},
		framework.WithDialer(w.link.DialContext), framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.client.Close(context.Background()) })
	return w
}

// accepting is a listener that tells when a server begins to accept connections.
type accepting struct {
	net.Listener
	begun func()
}

func (l accepting) Accept() (net.Conn, error) {
	l.begun()
	return l.Listener.Accept()
}

// serve runs a gRPC server with the health service on the loopback interface, and registers it.
func (w *world) serve(id string) (*registry.Registration, string) {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w, err)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	served, begun := make(chan error, 1), make(chan struct{})
	go func() {
		served <- server.Serve(accepting{listener, sync.OnceFunc(func() { close(begun) })})
	}()
	<-begun // a server that is stopped before it serves returns an error
	w.Cleanup(func() {
		server.Stop()
		require.NoError(w, <-served)
	})
	reg, err := registry.New(w.client, dir).Register(w.Context(),
		registry.Instance{Service: service, ID: id, Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port},
		registry.WithLinger(0))
	require.NoError(w, err)
	return reg, listener.Addr().String()
}

func (w *world) dial(target, policy string) *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient(target, registrygrpc.With(w.client, dir),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"`+policy+`":{}}]}`))
	require.NoError(w, err)
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call calls the health service this many times, and returns how often each address has answered.
func (w *world) call(conn *grpc.ClientConn, times int) (map[string]int, error) {
	answered := map[string]int{}
	for range times {
		ctx, cancel := context.WithTimeout(w.Context(), within)
		var from peer.Peer
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&from))
		cancel()
		if err != nil {
			return nil, err
		}
		answered[from.Addr.String()]++
	}
	return answered, nil
}

// requireAnswers waits until these addresses, and no others, answer.
func (w *world) requireAnswers(conn *grpc.ClientConn, addresses ...string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		answered, err := w.call(conn, 10)
		require.NoError(c, err)
		require.Len(c, answered, len(addresses))
		for _, a := range addresses {
			require.Positive(c, answered[a])
		}
	}, within, 10*time.Millisecond)
}

// TestGRPCFollowsTheInstances, keeps them while the ZooKeeper servers cannot be reached, and fails
// calls when there is no instance.
func TestGRPCFollowsTheInstances(t *testing.T) {
	w := newWorld(t)
	one, first := w.serve("one")
	conn := w.dial("lockstep:///"+service, "round_robin")
	w.requireAnswers(conn, first)
	two, second := w.serve("two")
	w.requireAnswers(conn, first, second)
	require.NoError(t, one.Disable(t.Context(), "debugging"))
	w.requireAnswers(conn, second)

	w.link.Cut()
	answered, err := w.call(conn, 10)
	require.NoError(t, err)
	require.Equal(t, map[string]int{second: 10}, answered)
	w.link.Heal()
	require.NoError(t, one.Enable(t.Context()))
	w.requireAnswers(conn, first, second)

	require.NoError(t, one.Drain(t.Context()))
	w.requireAnswers(conn, second)
	require.NoError(t, two.Close(t.Context()))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := w.call(conn, 1)
		require.Equal(c, codes.Unavailable, status.Code(err))
	}, within, 10*time.Millisecond)
}

// weights are how many endpoints of each weight gRPC has passed to the policy of
// TestWeightsReachThePolicy, at each update.
var weights = make(chan map[uint32]int, 100)

type weightBuilder struct{ balancer.Builder }

func (b weightBuilder) Build(cc balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	return weightReader{b.Builder.Build(cc, o)}
}

type weightReader struct{ balancer.Balancer }

func (r weightReader) UpdateClientConnState(s balancer.ClientConnState) error {
	found := map[uint32]int{}
	for _, e := range s.ResolverState.Endpoints {
		found[weight.FromEndpoint(e).Weight]++
	}
	weights <- found
	return r.Balancer.UpdateClientConnState(s)
}

type noPicker struct{}

func (noPicker) Build(base.PickerBuildInfo) balancer.Picker {
	return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
}

// TestWeightsReachThePolicy: the endpoints that gRPC passes to a policy have the weights of the
// instances.
func TestWeightsReachThePolicy(t *testing.T) {
	balancer.Register(weightBuilder{base.NewBalancerBuilder("weights_of_this_test", noPicker{}, base.Config{})})
	w := newWorld(t)
	for id, share := range map[string]int{"one": 1, "two": 7} {
		reg, _ := w.serve(id)
		require.NoError(t, reg.Update(t.Context(), func(i *registry.Instance) { i.Weight = share }))
	}
	conn := w.dial("lockstep:///"+service, "weights_of_this_test")
	conn.Connect()
	require.Equal(t, map[uint32]int{1: 1, 7: 1}, <-weights)
}

// TestInvalidTargets: a target with an authority, and one that is not a service's name.
func TestInvalidTargets(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"lockstep://host/billing", "lockstep:///a/b"} {
		conn := w.dial(target, "round_robin")
		_, err := w.call(conn, 1)
		require.ErrorContains(t, err, "invalid", target)
	}
}
