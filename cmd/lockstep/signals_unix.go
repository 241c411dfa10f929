//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var noticeSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

// keptOpen has the standard error of the beginning. It must stay open: a file that is opened later
// would become descriptor 2.
var keptOpen []*os.File

// outliveStderr has writes to a standard error that nobody reads any more fail. SIGPIPE would end
// the program, and with it a command that it runs under a lock. Go raises it for the file
// descriptors 1 and 2 only, so standard error gets another one. A command inherits it as 2, and
// SIGPIPE as it was.
func outliveStderr() {
	if fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3); err == nil {
		keptOpen = append(keptOpen, os.Stderr)
		os.Stderr = os.NewFile(uintptr(fd), os.Stderr.Name())
	}
}
