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
	code, err := run(*packages, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
	}
	os.Exit(code)
}

// run runs "go test" with the arguments that follow it, and returns its exit code, or notRun.
func run(packages int, command []string, out io.Writer) (int, error) {
	if len(command) < 2 || command[1] != "test" {
		return notRun, errors.New("want: progress [-packages N] -- go test [ARGUMENT...]")
	}
	cmd := exec.Command(command[0], slices.Concat([]string{"test", "-json"}, command[2:])...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return notRun, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return notRun, err
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
	r := newReport(out, packages, time.Now())
	tick := time.NewTicker(every)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, more := <-lines:
			if open = more; more {
				r.hear(line, time.Now())
			}
		case <-tick.C:
			r.showRunning(time.Now())
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}
	err = cmd.Wait()
	r.end(time.Now())
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() >= 0 {
		return exited.ExitCode(), nil
	}
	if err != nil {
		return notRun, err
	}
	return 0, nil
}
