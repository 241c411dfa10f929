package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/registry"
)

const (
	lingerVariable = "ROLLING_LINGER" // how long an instance that drains waits for pools
	base, service  = "/services", "billing"
	answerTakes    = 2 * time.Millisecond
)

// runInstance serves until its context ends. Then it drains, so that no call fails.
// LOCKSTEP_SERVERS and further variables configure its client.
func runInstance(ctx context.Context, parent *demo.Parent) error {
	linger, err := time.ParseDuration(os.Getenv(lingerVariable))
	if err != nil {
		return err
	}
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(answerTakes)
			fmt.Fprintln(w, parent.Name)
		})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	// The instance registers when it can answer.
	reg, err := registry.New(client, base).Register(ctx,
		registry.Instance{Service: service, ID: parent.Name, Address: "127.0.0.1",
			Port: listener.Addr().(*net.TCPAddr).Port},
		registry.WithLinger(linger))
	if err != nil {
		return err
	}
	parent.Send("ready")
	<-ctx.Done()
	if err := reg.Drain(ctx); err != nil {
		return err
	}
	if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil { // the calls under way end
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
