// Command fencing shows what a fencing token is for. Two processes add to the balance of an account in a
// SQLite database, each under the same lock. The first is frozen (SIGSTOP) between its reading and its
// writing, until its session has ended and the second has written. When it goes on, its write is late, and
// the database refuses it: the statement that writes asks for a token at least as high as the row's.
//
//	go run ./examples/fencing
//	go run ./examples/fencing --no-fence
//	go run ./examples/fencing --zk host:port,host:port,host:port
//
// What a service would write is in holder.go and account.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

const (
	exitBroken = 1  // a deposit was lost, or the play could not be played
	exitUsage  = 64 // as in sysexits.h
)

func main() {
	runtime.LockOSThread() // holders die with the thread that starts them, and this one lasts
	if text := os.Getenv(partVariable); text != "" {
		os.Exit(enact(text))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run returns the exit status: 0 only if no deposit was lost and the tokens rose.
func run(ctx context.Context, args []string) int {
	err := perform(ctx, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "fencing: %v\nfencing: see --help\n", err)
		return exitUsage
	}
	fmt.Fprintln(os.Stderr, "fencing:", err)
	return exitBroken
}

func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	s := newStory(o)
	if err := play(ctx, o, s); err != nil {
		return err
	}
	if o.json {
		err = s.writeJSON(os.Stdout)
	} else {
		s.writeSummary()
	}
	return errors.Join(err, s.verdict())
}
