//go:build unix && !linux

package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// socketWaiter waits for the socket or for a time.
type socketWaiter struct{ socket int }

func newSocketWaiter(socket int) (*socketWaiter, error) { return &socketWaiter{socket}, nil }

// waitUntil waits until the socket is readable or has ended, and returns true. If leaseClock
// reaches until before that, it returns false. If until is 0, it waits for the socket only.
func (w *socketWaiter) waitUntil(until time.Duration) (readable bool) {
	for {
		timeout := -1
		if until != 0 {
			timeout = int(max(0, until-leaseClock()).Milliseconds()) + 1
		}
		fds := []unix.PollFd{{Fd: int32(w.socket), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case err == nil && n > 0, err != nil && err != unix.EINTR:
			return true
		case err == nil && until != 0 && leaseClock() >= until:
			return false
		}
	}
}
