package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
)

const (
	instanceVariable = "LOCKSTEP_EXAMPLE_INSTANCE" // the id of the instance that this process is
	lingerVariable   = "LOCKSTEP_EXAMPLE_LINGER"
	base, service    = "/services", "billing"
	answerTakes      = 2 * time.Millisecond
)

// instance serves until its standard input ends. Then it drains, so that no call fails, and returns the exit status.
func instance(id string) int {
	if err := serve(context.Background(), id); err != nil {
		fmt.Fprintf(os.Stderr, "rolling: %s: %v\n", id, err)
		return demo.ExitBroken
	}
	return 0
}

func serve(ctx context.Context, id string) error {
	linger, err := time.ParseDuration(os.Getenv(lingerVariable))
	if err != nil {
		return err
	}
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	client, err := framework.Connect(ctx, config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(ctx) }()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(answerTakes)
		fmt.Fprintln(w, id)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	// Register when the instance can answer.
	reg, err := registry.New(client, base).Register(ctx, registry.Instance{Service: service, ID: id, Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port},
		registry.WithLinger(linger))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent wants it to, or has ended
	if err := reg.Drain(ctx); err != nil {
		return err
	}
	if err := server.Shutdown(ctx); err != nil { // the calls under way end
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
