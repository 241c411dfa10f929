package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
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
// switched off stays so. SIGQUIT is among them: the runtime would print its goroutines and leave the command behind.
func endings() []os.Signal {
	return append([]os.Signal{os.Interrupt, syscall.SIGTERM}, heeded(syscall.SIGQUIT, syscall.SIGHUP)...)
}

// notices are the signals that are passed on to the command, and change nothing without one.
func notices() []os.Signal { return heeded(noticeSignals...) }

// heeded leaves out the signals that whoever has started this program has switched off.
func heeded(all ...os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(all), signal.Ignored)
}

// untilSignal returns a context that the first signal of endings ends.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	unread := make(chan os.Signal, 1) // nothing happens as long as there is no command
	signal.Notify(signals, endings()...)
	if n := notices(); len(n) > 0 { // without one, all would be meant
		signal.Notify(unread, n...)
	}
	go func() {
		select {
		case s := <-signals:
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); signal.Stop(unread); cancel(nil) }
}
