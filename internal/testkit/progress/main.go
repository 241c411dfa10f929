package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	notRun = 125
	every  = 30 * time.Second
)

func main() {
	packages := flag.Int("packages", 0, "how many packages there are")
	flag.Parse()
	code, err := runTests(*packages, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
	}
	os.Exit(code)
}

// runTests runs a "go test" command, and returns its exit code, or notRun. If only the race
// detector itself has failed, it tests those packages once more.
func runTests(packages int, command []string, out io.Writer) (int, error) {
	if len(command) < 2 || command[1] != "test" {
		return notRun, errors.New("want: progress [-packages N] -- go test [ARGUMENT...]")
	}
	code, r, err := runOnce(packages, command, out)
	if err != nil || len(r.crashed) == 0 || len(r.crashed) < len(r.failed) {
		return code, err
	}
	_, _ = fmt.Fprintf(out, "The race detector itself has crashed, and no test has failed. Once more: %s\n",
		strings.Join(r.crashed, ", "))
	code, _, err = runOnce(len(r.crashed), slices.Concat(withoutPackages(command), r.crashed), out)
	return code, err
}

// withoutPackages returns a command up to its first package, which must be a path.
func withoutPackages(command []string) []string {
	i := slices.IndexFunc(command, func(argument string) bool { return strings.HasPrefix(argument, ".") })
	if i < 0 {
		return command
	}
	return command[:i]
}

func runOnce(packages int, command []string, out io.Writer) (int, *report, error) {
	r := newReport(out, packages, time.Now())
	cmd := exec.Command(command[0], slices.Concat([]string{"test", "-json"}, command[2:])...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return notRun, r, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return notRun, r, err
	}
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(events)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, more := <-lines:
			if open = more; more {
				r.readEvent(line, time.Now())
			}
		case <-tick.C:
			r.showRunning(time.Now())
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}
	err = cmd.Wait()
	r.printOutcome(time.Now())
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() >= 0 {
		return exited.ExitCode(), r, nil
	}
	if err != nil {
		return notRun, r, err
	}
	return 0, r, nil
}
