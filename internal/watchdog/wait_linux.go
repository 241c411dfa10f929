package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// socketWaiter waits for the socket or for a time. Unlike the timeout of poll, its timer also
// counts while the machine is suspended.
type socketWaiter struct{ socket, timer int }

func newSocketWaiter(socket int) (*socketWaiter, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	return &socketWaiter{socket, timer}, err
}

// waitUntil waits until the socket is readable or has ended, and returns true. If leaseClock
// reaches until before that, it returns false. If until is 0, it waits for the socket only.
func (w *socketWaiter) waitUntil(until time.Duration) (readable bool) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(until.Nanoseconds())} // 0 stops it
	if err := unix.TimerfdSettime(w.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return true // only a programming error makes it fail; the caller then reads the socket
	}
	for {
		fds := []unix.PollFd{{Fd: int32(w.socket), Events: unix.POLLIN}, {Fd: int32(w.timer), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, -1)
		switch {
		case err == nil && n > 0:
			return fds[0].Revents != 0
		case err != nil && err != unix.EINTR:
			return true
		}
	}
}
