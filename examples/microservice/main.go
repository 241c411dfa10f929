// Command microservice is an HTTP service with several replicas. The leader gives each order a
// number of its own, even if replicas fail. All replicas send receipts, from a queue. One replica
// reports on schedule, and one monitors the locks, jobs, queues and workflows. Each serves a web
// page of them. lockstep.Run runs the parts; OpenTelemetry and Prometheus observe them.
//
//	go run ./examples/microservice
//	go run ./examples/microservice --replicas 1 --listen :8081 --zk host:port,host:port,host:port
//
// It prints the addresses of its pages: such as http://localhost:8080/, which says what to try, and
// http://localhost:8080/lockstep/, the web page.
//
// docs/grafana/lockstep.json and docs/prometheus/lockstep.yml are a dashboard and alert rules for
// the metrics. Spans go to the file of --spans, the log to standard error. See shop.go (the
// leader's work), web.go (the pages) and replica.go (all that a replica does) for the part that a
// service would have.
package main

import (
	"context"
	"fmt"
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
	spans := io.Discard
	if o.spans != "" {
		file, err := os.Create(o.spans)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		spans = file
	}
	failed := make(chan error, o.replicas)
	for i := range o.replicas {
		r, err := startReplica(o, i, spans, log)
		if err != nil {
			return err
		}
		defer r.stop()
		go func() {
			<-r.ended
			failed <- r.err
		}()
		fmt.Fprintf(out, "%s  http://%s/  http://%[2]s/lockstep/\n", r.id, r.address)
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

// stopTimeout is how long a replica may take to stop.
const stopTimeout = 15 * time.Second
