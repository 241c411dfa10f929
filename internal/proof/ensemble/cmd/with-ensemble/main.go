// Command with-ensemble starts real ZooKeeper servers and runs a command that uses them:
//
//	go run ./internal/proof/ensemble/cmd/with-ensemble [-servers 3] -- go test ./...
//
// The command finds the servers' addresses in LOCKSTEP_TEST_SERVERS as
// host:port,host:port,host:port. Signals are passed on to it. When it has ended, with any
// exit code, the servers are stopped and their data removed, and its exit code is returned.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

func main() {
	os.Exit(run())
}

// run returns the exit code: the command's, or 125 if the command could not be run.
func run() int {
	config := ensemble.Config{}
	flag.IntVar(&config.Servers, "servers", 3, "number of servers")
	flag.DurationVar(&config.Tick, "tick", 0, "the servers' tick (default 500ms)")
	flag.BoolVar(&config.NoFsync, "nofsync", false, "leave out the transaction log's fsync")
	flag.IntVar(&config.HeapMB, "heap", 0, "each server's largest heap in MiB (default 256)")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() == 0 {
		usage()
		return 125
	}
	code, err := with(config, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-ensemble:", err)
	}
	return code
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: with-ensemble [flags] -- COMMAND [ARGUMENT...]")
	flag.PrintDefaults()
}

const notRun = 125

// with starts the servers, runs the command, and stops the servers.
func with(config ensemble.Config, command []string) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	e, err := startUnlessSignalled(config, signals)
	if err != nil {
		return notRun, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return runCommand(command, e.Addrs(), signals)
}

// startUnlessSignalled starts the servers, and gives up when a signal arrives.
func startUnlessSignalled(config ensemble.Config, signals <-chan os.Signal) (*ensemble.Ensemble, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	started := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			cancel(fmt.Errorf("signal: %v", s))
		case <-started:
		}
	}()
	e, err := ensemble.Start(ctx, config)
	close(started)
	<-watched
	if err == nil && ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), e.Close())
	}
	return e, err
}

// runCommand passes signals on until the command ends and returns its exit code.
func runCommand(command, servers []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), ensemble.ServersVariable+"="+strings.Join(servers, ","))
	if err := cmd.Start(); err != nil {
		return notRun, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended just now
		case err := <-ended:
			return exitCode(cmd.ProcessState, err)
		}
	}
}

// exitCode returns the command's exit code, or 128 + the signal that ended it, as a shell does.
func exitCode(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return notRun, err
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}
