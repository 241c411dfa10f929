package registrygrpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/registry/registrygrpc"
	"github.com/lockstep-go/lockstep/zktest"
)

// serveBilling serves until SIGTERM, at an address that callers reach. They leave the instance
// before it stops.
func serveBilling(ctx context.Context, client *framework.Client, server *grpc.Server, listener net.Listener) error {
	address := listener.Addr().(*net.TCPAddr)
	instance := registry.Instance{Service: "billing", Address: address.IP.String(), Port: address.Port}
	return lockstep.Run(ctx, client, []lockstep.Part{
		lockstep.Register("instance", registry.New(client, "/services"), instance),
		lockstep.Go("grpc", func(ctx context.Context) error {
			defer context.AfterFunc(ctx, server.GracefulStop)()
			return server.Serve(listener)
		}),
	})
}

// dialBilling returns a connection to all instances, whichever there are. Each call goes to the
// next one.
func dialBilling(client *framework.Client) (*grpc.ClientConn, error) {
	return grpc.NewClient("lockstep:///billing", registrygrpc.With(client, "/services"),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Calls go to the instances of a service in turn, also when instances come and go.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	ended := make(chan error)
	go func() { ended <- serveBilling(ctx, client, server, listener) }()

	conn, err := dialBilling(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{},
		grpc.WaitForReady(true))
	fmt.Println(answer.GetStatus(), err)
	_ = conn.Close()
	stop()
	fmt.Println(<-ended)
	// Output:
	// SERVING <nil>
	// <nil>
}
