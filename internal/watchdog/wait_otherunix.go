//go:build unix && !linux

package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for the pipe or a time.
type waiter struct{ pipe int }

func newWaiter(pipe int) (*waiter, error) { return &waiter{pipe}, nil }

// wait returns true when the pipe can be read or has ended, and false, unless it can, when it is as late as until;
// never for 0.
func (w *waiter) wait(until time.Duration) (readable bool) {
	for {
		timeout := -1
		if until != 0 {
			timeout = int(max(0, until-now()).Milliseconds()) + 1
		}
		fds := []unix.PollFd{{Fd: int32(w.pipe), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case err == nil && n > 0, err != nil && err != unix.EINTR:
			return true
		case err == nil && until != 0 && now() >= until:
			return false
		}
	}
}
