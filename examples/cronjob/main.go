// Command cronjob shows a nightly job of a service with several offices: one of them runs it each night. An office closes for good,
// and another takes over. Then all are closed for three nights. The office that opens next catches up with the last of them, as the
// job's misfire policy says; the others are recorded as missed.
//
//	go run ./examples/cronjob
//	go run ./examples/cronjob --night 5s
//	go run ./examples/cronjob --zk host:port,host:port,host:port
//
// A night takes two seconds here; main_test.go runs real nights in virtual time. See nightly.go for the part that a service would
// have.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "cronjob:", err)
		os.Exit(1)
	}
}

// run plays the story on real servers, or on one in memory.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("cronjob", flag.ContinueOnError)
	zk := f.String("zk", "", "real servers, host:port,host:port (default: one in memory)")
	night := f.Duration("night", 2*time.Second, "how long a night takes, in whole seconds")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *night < time.Second || *night%time.Second != 0 {
		return fmt.Errorf("--night %v: want whole seconds", *night)
	}
	servers, _, err := framework.ParseServers(*zk)
	if err != nil {
		return err
	}
	config := framework.Config{Servers: servers, Root: "/lockstep-example-" + strings.ToLower(rand.Text()[:10])}
	if len(config.Servers) == 0 {
		memory, err := zktest.New()
		if err != nil {
			return err
		}
		defer memory.Close()
		address, err := memory.ListenTCP("127.0.0.1:0")
		if err != nil {
			return err
		}
		config.Servers = []string{address}
	}
	s := &story{
		out: out, spec: "@every " + night.String(), night: *night,
		connect: func(ctx context.Context, office string) (*framework.Client, error) {
			own := config
			own.Identity = office
			return framework.Connect(ctx, own, framework.WithLogger(slog.New(slog.DiscardHandler)))
		},
	}
	return s.play(ctx)
}
