//go:build unix

package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsWatchdog reports whether this process was started as a watchdog: the variable has the number of
// the very socket that this process has. A process that has the variable from elsewhere is none.
func IsWatchdog() bool {
	is := os.Getenv(socketVariable)
	return is != "" && is == socketNumber(socketFD)
}

// socketNumber returns the number by which the system knows a socket, or nothing if the file
// descriptor is no socket.
func socketNumber(fd int) string {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// startWatchdog starts a watchdog. The watchdog is in a Unix session of its own, without a
// terminal, so that it does not get the signals of this process's group and terminal. It inherits
// its end of the socket, and no other file.
func startWatchdog() (*watchdogProcess, error) {
	exe, err := executablePath()
	if err != nil {
		return nil, fmt.Errorf("find the program's file: %w", err)
	}
	socket, watchdogsEnd, err := newSocketPair()
	if err != nil {
		return nil, err
	}
	defer watchdogsEnd.Close()
	cmd := exec.Command(exe)
	cmd.Args = []string{"lockstep watchdog of process " + strconv.Itoa(os.Getpid())}
	cmd.Env = append(os.Environ(), socketVariable+"="+socketNumber(int(watchdogsEnd.Fd())))
	cmd.Stdin = watchdogsEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		socket.Close()
		return nil, err
	}
	p := &watchdogProcess{os: cmd.Process, socket: socket, ready: make(chan struct{}), exited: make(chan struct{})}
	go p.waitForExit(cmd)
	return p, nil
}

// newSocketPair returns the two ends of a socket: the one that this process keeps, and the
// watchdog's. The ends of a pipe would have names in /proc/PID/fd, by which every process of the
// same user can open them. A socket cannot be opened.
func newSocketPair() (own, watchdogs *os.File, err error) {
	syscall.ForkLock.RLock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|socketCloexec, 0)
	if err == nil && socketCloexec == 0 {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil { // so that writes have deadlines
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(ends[0]), "watchdog"), os.NewFile(uintptr(ends[1]), "parent"), nil
}

// waitForExit waits for the watchdog's answer and for its end.
func (p *watchdogProcess) waitForExit(cmd *exec.Cmd) {
	defer close(p.exited)
	if n, _ := p.socket.Read(make([]byte, 1)); n == 1 {
		close(p.ready)
	}
	_ = cmd.Wait() // it fails if other code of this program waits for all children; the watchdog has ended in any case
}
