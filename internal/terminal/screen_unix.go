//go:build unix

package terminal

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// screenSignals tells of new sizes, and of the request to stop.
func screenSignals() (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, unix.SIGWINCH, unix.SIGTSTP)
	return c, func() { signal.Stop(c) }
}

func isSuspension(s os.Signal) bool { return s == unix.SIGTSTP }

// stopProcess stops this process as Ctrl-Z does, and returns when it goes on.
func stopProcess() error {
	if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
		return fmt.Errorf("the program cannot be stopped: %w", err)
	}
	return nil
}
