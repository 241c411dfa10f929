// Command microservice is an HTTP service with several replicas. The leader gives each order a
// number of its own, even if replicas fail. All replicas send receipts, from a queue. One replica
// reports on schedule, and one monitors the locks, jobs and queues. The service is built with fx
// and observed with OpenTelemetry and Prometheus.
//
//	go run ./examples/microservice
//	go run ./examples/microservice --replicas 1 --listen :8081 --zk host:port,host:port,host:port
//
//	curl -L -X POST localhost:8080/orders    the next number, from the leader
//	curl localhost:8081/status               whether this replica leads, and the leader
//	curl localhost:8081/metrics              this replica's metrics, for Prometheus
//
// docs/grafana/lockstep.json and docs/prometheus/lockstep.yml are a dashboard and alert rules for
// these metrics. Spans go to standard output, the log to standard error. See shop.go (the leader's
// work), background.go (the background work), web.go and replica.go (the wiring) for the part that
// a service would have.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args)
	if err != nil {
		return demo.ExitStatus("microservice", err)
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	if err := serve(ctx, o, out, log); err != nil {
		log.Error("the service has failed", "error", err)
		return demo.ExitBroken
	}
	return 0
}

// serve runs the replicas until ctx ends or one of them fails.
func serve(ctx context.Context, o options, out io.Writer, log *slog.Logger) error {
	servers, closeServers, err := demo.Servers(o.servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer closeServers()
	if len(o.servers) == 0 {
		log.Info("a ZooKeeper in memory", "address", servers[0])
	}
	o.servers = servers
	failed := make(chan error, o.replicas)
	for i := range o.replicas {
		r, err := startReplica(o, i, out, log)
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

// sessionTimeout is the session timeout of a replica.
const sessionTimeout = 30 * time.Second

// startTimeout is how long a replica may take to start. It does not wait for a connection.
const startTimeout = 15 * time.Second

// stopTimeout is how long a replica may take to stop.
const stopTimeout = 15 * time.Second
