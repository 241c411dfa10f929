//go:build unix

package procguard

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return err == nil
}

// isForegroundGroup reports whether a process group is the foreground group of the terminal on
// standard input.
func isForegroundGroup(group int) bool {
	now, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && now == group
}

// setForegroundGroup makes a process group the terminal's foreground group. Meanwhile it ignores
// SIGTTOU, with which the kernel would stop a background process that does this.
func setForegroundGroup(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) // the terminal may be gone
}
