//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var noticeSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

// errorStream returns standard error with another file descriptor, so that a write fails if nobody
// reads standard error any more. Go raises SIGPIPE for the descriptors 1 and 2 only. It would end
// the program, and with it a command that it runs under a lock. A command inherits standard error
// as 2, and SIGPIPE as it was. os.Stderr stays open: a file that is opened later would become
// descriptor 2.
func errorStream() *os.File {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}
