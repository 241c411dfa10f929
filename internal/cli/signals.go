package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ os.Signal }

func (s SignalError) Error() string { return "ended by signal: " + s.String() }

func (s SignalError) signalNumber() int {
	n, _ := s.Signal.(syscall.Signal)
	return int(n)
}

// EndingSignals are the signals that end the program, or are passed on to its command. A SIGHUP
// that nohup ignores stays ignored. SIGQUIT is among them: otherwise the runtime would print
// goroutines and end, and the command would go on.
func EndingSignals() []os.Signal {
	return append([]os.Signal{os.Interrupt, syscall.SIGTERM}, withoutIgnored(syscall.SIGQUIT, syscall.SIGHUP)...)
}

// NoticedSignals are the signals that are passed on to the command, and have no effect without one.
func NoticedSignals() []os.Signal { return withoutIgnored(noticeSignals...) }

// withoutIgnored leaves out the signals that the parent process has set to be ignored.
func withoutIgnored(all ...os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(all), signal.Ignored)
}

// UntilSignal returns a context that the first of endingSignals ends.
func UntilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	unread := make(chan os.Signal, 1) // these have no effect while no command runs
	signal.Notify(signals, EndingSignals()...)
	if n := NoticedSignals(); len(n) > 0 { // Notify without signals would mean all of them
		signal.Notify(unread, n...)
	}
	go func() {
		select {
		case s := <-signals:
			cancel(SignalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); signal.Stop(unread); cancel(nil) }
}

// RaiseAndWait ends this program by a signal that its command has got alone, and waits until ctx
// has ended by that. A signal that is ignored has no effect.
func RaiseAndWait(ctx context.Context, s os.Signal) {
	self, err := os.FindProcess(os.Getpid())
	if err == nil && slices.Contains(EndingSignals(), s) && self.Signal(s) == nil {
		<-ctx.Done()
	}
}
