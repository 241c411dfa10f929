// Package exampleclient connects the testable examples of the public packages. For the example
// programs, see examples/internal/demo.
package exampleclient

import (
	"context"
	"log"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// Connect connects to a server in memory; a service gives the addresses of its ensemble. stop
// closes the client and the server. Connect ends the process if it fails.
func Connect(ctx context.Context) (client *framework.Client, stop func()) {
	zk, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err = framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		zk.Close()
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close(ctx) // the server goes too
		zk.Close()
	}
}
