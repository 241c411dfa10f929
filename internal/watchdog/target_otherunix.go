//go:build unix && !linux

package watchdog

import (
	"errors"

	"golang.org/x/sys/unix"
)

// identify names a process by its number: here nothing better is to be had.
func identify(pid int) (identity, error) { return identity{pid: int32(pid)}, nil }

// target is a command that may have to be killed: the process group that it leads.
type target struct{ identity }

var errNoSuchProcess = errors.New("watchdog: there is no such process")

func aim(id identity) (*target, error) { return &target{id}, nil }

func (t *target) release() {}

func (t *target) kill() { _ = unix.Kill(-int(t.pid), unix.SIGKILL) }

// gone reports whether nobody of the group is left.
func (t *target) gone() bool { return errors.Is(unix.Kill(-int(t.pid), 0), unix.ESRCH) }
