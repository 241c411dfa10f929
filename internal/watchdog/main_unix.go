//go:build unix

package watchdog

import (
	"os"
	"os/signal"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Main is the watchdog's main function; it returns the exit status, which nobody looks at.
func Main() int {
	settle()
	answers := os.NewFile(answersFD, "answers")
	d, err := newDog(commandsFD, func() {
		ready(answers)
		debug.FreeOSMemory() // what the program's start has left
	})
	if err != nil {
		return 1
	}
	d.watch()
	if err := d.succeed(); err != nil {
		return 1
	}
	return 0
}

// settle makes the process small and hard to end: it ends with its parent, whatever is sent to it before. It
// keeps no directory busy and is known by a name of its own.
func settle() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	debug.SetGCPercent(-1) // also no collection every other minute: an idle watchdog sleeps
	debug.SetMemoryLimit(memoryLimit)
	_ = os.Chdir("/")
	rename()
}

// memoryLimit is when the collector begins to work.
const memoryLimit = 16 << 20
