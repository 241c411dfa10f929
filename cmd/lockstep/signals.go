package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// signalError is the cause of the end of a context by a signal.
type signalError struct{ os.Signal }

func (s signalError) Error() string { return "ended by signal: " + s.String() }

func (s signalError) signalNumber() int {
	n, _ := s.Signal.(syscall.Signal)
	return int(n)
}

// endingSignals are the signals that end the program, or are passed on to its command. A SIGHUP that nohup has
// switched off stays so. SIGQUIT is among them: the runtime would print its goroutines and leave the command behind.
func endingSignals() []os.Signal {
	return append([]os.Signal{os.Interrupt, syscall.SIGTERM}, withoutIgnored(syscall.SIGQUIT, syscall.SIGHUP)...)
}

// noticedSignals are the signals that are passed on to the command, and change nothing without one.
func noticedSignals() []os.Signal { return withoutIgnored(noticeSignals...) }

// withoutIgnored leaves out the signals that the parent process has set to be ignored.
func withoutIgnored(all ...os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(all), signal.Ignored)
}

// untilSignal returns a context that the first signal of endings ends.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	unread := make(chan os.Signal, 1) // nothing happens as long as there is no command
	signal.Notify(signals, endingSignals()...)
	if n := noticedSignals(); len(n) > 0 { // without one, all would be meant
		signal.Notify(unread, n...)
	}
	go func() {
		select {
		case s := <-signals:
			cancel(signalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); signal.Stop(unread); cancel(nil) }
}
