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
	hardenProcess()
	answers := os.NewFile(answersFD, "answers")
	d, err := newParentMonitor(messagesFD, func() {
		renameProcess()
		signalReady(answers)
		debug.FreeOSMemory() // what the program's start has left
	})
	if err != nil {
		return 1
	}
	d.monitorParent()
	if err := d.endSessionOfDeadParent(); err != nil {
		return 1
	}
	return 0
}

// hardenProcess makes the process small and protects it from signals: it ends only with its parent. It
// leaves its directory and closes inherited files.
func hardenProcess() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // also no collection every other minute: an idle watchdog sleeps
	debug.SetMemoryLimit(memoryLimit)
	_ = os.Chdir("/")
	closeInherited()
}

// closeInherited closes what the parent itself has inherited without close-on-exec. All that this program has
// opened so far is close-on-exec, as everything is that Go opens.
func closeInherited() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= answersFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // it was open
		}
	}
}

// memoryLimit is when the collector begins to work.
const memoryLimit = 16 << 20
