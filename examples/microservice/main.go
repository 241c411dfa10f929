// Command microservice is an HTTP service with several replicas. The leader hands out order numbers, each only once, whichever replica
// fails. All replicas send receipts, from a queue. One of them reports on schedule, and one looks whether locks, jobs and queues are well. It is built with
// fx and observed with OpenTelemetry and Prometheus.
//
//	go run ./examples/microservice
//	go run ./examples/microservice --replicas 1 --listen :8081 --zk host:port,host:port,host:port
//
//	curl -L -X POST localhost:8080/orders    the next number, from whichever replica leads
//	curl localhost:8081/status               whether this replica leads, and the leader
//	curl localhost:8081/metrics              this replica's metrics, for Prometheus
//
// docs/grafana/lockstep.json and docs/prometheus/lockstep.yml are a dashboard and alert rules for these metrics. Spans go to standard output, the log to
// standard error. See shop.go (the leader's work), background.go (what runs beside it), web.go and replica.go (the wiring) for the part that a service
// would have.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/zktest"
)

const (
	exitFailed = 1
	exitUsage  = 64 // as in sysexits.h
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(errs, "microservice: %v\nmicroservice: see --help\n", err)
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	if err := serve(ctx, o, out, log); err != nil {
		log.Error("the service has failed", "error", err)
		return exitFailed
	}
	return 0
}

// serve runs the replicas until ctx ends or one of them fails.
func serve(ctx context.Context, o options, out io.Writer, log *slog.Logger) error {
	if len(o.servers) == 0 {
		server, address, err := inMemory()
		if err != nil {
			return err
		}
		defer server.Close()
		o.servers = []string{address}
		log.Info("a ZooKeeper in memory", "address", address)
	}
	failed := make(chan error, o.replicas)
	for i := range o.replicas {
		r, err := startReplica(ctx, o, i, out, log)
		if err != nil {
			return err
		}
		defer r.stop(log)
		go func() { failed <- r.wait(ctx) }()
	}
	select {
	case <-ctx.Done():
		log.Info("stopping: each replica hands over to the next")
		return nil
	case err := <-failed:
		return err
	}
}

// inMemory starts a server that takes connections over TCP.
func inMemory() (*zktest.Server, string, error) {
	server, err := zktest.New()
	if err != nil {
		return nil, "", err
	}
	address, err := server.ListenTCP("127.0.0.1:0")
	if err != nil {
		server.Close()
		return nil, "", err
	}
	return server, address, nil
}

// stopWithin is how long a replica may take to stop.
const stopWithin = 15 * time.Second
