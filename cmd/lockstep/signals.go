package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// signalError is the cause of a context that a signal has ended.
type signalError struct{ os.Signal }

func (s signalError) Error() string { return "ended by signal: " + s.String() }

func (s signalError) signalNumber() int {
	n, _ := s.Signal.(syscall.Signal)
	return int(n)
}

// endingSignals are the signals that end the program, or are passed on to its command. A SIGHUP
// that nohup ignores stays ignored. SIGQUIT is among them: otherwise the runtime would print
// goroutines and end, and the command would go on.
func endingSignals() []os.Signal {
	return append([]os.Signal{os.Interrupt, syscall.SIGTERM}, withoutIgnored(syscall.SIGQUIT, syscall.SIGHUP)...)
}

// noticedSignals are the signals that are passed on to the command, and have no effect without one.
func noticedSignals() []os.Signal { return withoutIgnored(noticeSignals...) }

// withoutIgnored leaves out the signals that the parent process has set to be ignored.
func withoutIgnored(all ...os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(all), signal.Ignored)
}

// untilSignal returns a context that the first of endingSignals ends.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	unread := make(chan os.Signal, 1) // these have no effect while no command runs
	signal.Notify(signals, endingSignals()...)
	if n := noticedSignals(); len(n) > 0 { // Notify without signals would mean all of them
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

// raiseAndWait ends this program by a signal that its command has got alone, and waits until ctx
// has ended by that. A signal that is ignored has no effect.
func raiseAndWait(ctx context.Context, s os.Signal) {
	self, err := os.FindProcess(os.Getpid())
	if err == nil && slices.Contains(endingSignals(), s) && self.Signal(s) == nil {
		<-ctx.Done()
	}
}
