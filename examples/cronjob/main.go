// Command cronjob shows a nightly job of a service with several offices: one of them runs it each
// night. An office closes for good, and another takes over. Then all are closed for three nights.
// The office that opens next catches up with the last of them, as the job's misfire policy says;
// the others are recorded as missed.
//
//	go run ./examples/cronjob
//	go run ./examples/cronjob --night 5s
//	go run ./examples/cronjob --zk host:port,host:port,host:port
//
// A night takes two seconds here; main_test.go runs real nights in virtual time. See nightly.go for
// the part that a service would have.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(demo.ExitStatus("cronjob", run(ctx, os.Args[1:], os.Stdout)))
}

// sessionTimeout is the session timeout of an office.
const sessionTimeout = 30 * time.Second

// run runs the scenario on real servers, or on one in memory.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("cronjob", flag.ContinueOnError)
	night := f.Duration("night", 2*time.Second, "how long a night takes, in whole seconds")
	servers, err := demo.ParseFlags(f, "Shows a nightly job that one of several offices runs.", args)
	if err != nil {
		return err
	}
	if *night < time.Second || *night%time.Second != 0 {
		return fmt.Errorf("%w: -night %v: want whole seconds", demo.ErrUsage, *night)
	}
	servers, closeServers, err := demo.Servers(servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer closeServers()
	config := framework.Config{Servers: servers, Root: demo.NewRoot(), SessionTimeout: sessionTimeout}
	s := &scenario{
		out: out, spec: "@every " + night.String(), night: *night,
		connect: func(ctx context.Context, office string) (*framework.Client, error) {
			own := config
			own.Identity = office
			return framework.Connect(ctx, own, framework.WithLogger(slog.New(slog.DiscardHandler)))
		},
	}
	return s.run(ctx)
}
