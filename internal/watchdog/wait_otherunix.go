//go:build unix && !linux

package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// pipeWaiter waits for the pipe or for a time.
type pipeWaiter struct{ pipe int }

func newPipeWaiter(pipe int) (*pipeWaiter, error) { return &pipeWaiter{pipe}, nil }

// waitUntil waits until the pipe is readable or has ended, and returns true. If leaseClock reaches until before that, it returns false. If until is 0, it waits for
// the pipe only.
func (w *pipeWaiter) waitUntil(until time.Duration) (readable bool) {
	for {
		timeout := -1
		if until != 0 {
			timeout = int(max(0, until-leaseClock()).Milliseconds()) + 1
		}
		fds := []unix.PollFd{{Fd: int32(w.pipe), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case err == nil && n > 0, err != nil && err != unix.EINTR:
			return true
		case err == nil && until != 0 && leaseClock() >= until:
			return false
		}
	}
}
