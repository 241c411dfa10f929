//go:build unix

package watchdog

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// Main is the watchdog's main function. It returns the exit status.
func Main() int {
	renameProcess := prepareRename()
	hardenProcess()
	monitor, err := newParentMonitor(socketFD, func() {
		renameProcess()
		// tells the parent that the watchdog is armed; an error means that the parent has ended
		_, _ = unix.Write(socketFD, []byte{'!'})
		debug.FreeOSMemory() // the memory that the start of the program has used
	})
	if err != nil {
		return 1
	}
	monitor.monitorParent()
	if err := monitor.endSessionOfDeadParent(); err != nil {
		return 1
	}
	return 0
}

// canBeTraced lets others of the same user look into this process: a test looks at its files.
var canBeTraced = false

// hardenProcess makes the process small. It ignores signals, so that the process ends with its
// parent only. It leaves the working directory and closes inherited files. It keeps others of the
// same user from looking into this process, which may have the secrets of a parent that keeps them
// from that.
func hardenProcess() {
	if !canBeTraced {
		forbidTracing()
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // this also ends the collection every two minutes, which would wake an idle watchdog
	debug.SetMemoryLimit(memoryLimit)
	_ = os.Chdir("/")
	closeInherited()
}

// closeInherited closes the files that the parent itself has inherited without close-on-exec. It
// keeps the files that this program has opened, since Go opens all files with close-on-exec.
func closeInherited() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // its error cannot be handled
		}
	}
}

// memoryLimit is the size of the memory in bytes at which the garbage collector begins to work.
const memoryLimit = 16 << 20
