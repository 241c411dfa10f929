//go:build unix

package child

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return err == nil
}

// hasTerminal reports whether a process group is the one that the terminal on standard input listens to.
func hasTerminal(group int) bool {
	now, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && now == group
}

// giveTerminal makes a process group the terminal's foreground group. Done from the background, which
// is how it is taken back, this would stop the process.
func giveTerminal(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) // the terminal may be gone
}
