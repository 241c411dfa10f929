//go:build unix

package terminal

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// screenSignals returns a channel of the signals for a new size of the terminal, for Ctrl-Z, and
// for the continuation after a stop.
func screenSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	return c, func() { signal.Stop(c) }
}

func isSuspension(s os.Signal) bool { return s == unix.SIGTSTP }

func isContinuation(s os.Signal) bool { return s == unix.SIGCONT }

// stopProcess stops this process as Ctrl-Z does, and returns when it is continued.
func stopProcess() error {
	if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
		return fmt.Errorf("stop the program: %w", err)
	}
	return nil
}
