package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalled is the cause of the end of a context by a signal.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "ended by signal: " + s.String() }

func (s signalled) number() int {
	n, _ := s.Signal.(syscall.Signal)
	return int(n)
}

// endings are the signals that end the program, or are passed on to its command. A SIGHUP that nohup has
// switched off stays so.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// untilSignal returns a context that the first signal ends.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	go func() {
		select {
		case s := <-signals:
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}
