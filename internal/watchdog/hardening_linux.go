package watchdog

import (
	"os"

	"golang.org/x/sys/unix"
)

// prepareRename returns a function that gives the armed watchdog another name than the program, so
// that a killall of the program does not end it. It opens the file of the name at once:
// forbidTracing keeps a process from opening it.
func prepareRename() (rename func()) {
	name, err := os.OpenFile("/proc/self/comm", os.O_WRONLY, 0)
	if err != nil {
		return func() {}
	}
	return func() {
		_, _ = name.WriteString("lockstep-watchd")
		name.Close()
	}
}

// forbidTracing keeps other processes of the same user from reading this one's memory, environment
// and files, and the system from writing its memory to a core file. It cannot fail with this
// argument.
func forbidTracing() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// socketCloexec makes sockets that are closed when another program is executed.
const socketCloexec = unix.SOCK_CLOEXEC

// executablePath returns a path that executes this program, even if its file was replaced or
// deleted.
func executablePath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Readlink(self); err == nil {
		return self, nil
	}
	return os.Executable()
}
