//go:build unix && !linux

package watchdog

import (
	"errors"

	"golang.org/x/sys/unix"
)

// identifyProcess returns the process's number only. These systems have no portable way to read its
// start.
func identifyProcess(pid int) (processIdentity, error) { return processIdentity{pid: int32(pid)}, nil }

// commandProcess is a command that the watchdog may have to kill: the process group that it leads.
type commandProcess struct{ processIdentity }

var errNoSuchProcess = errors.New("watchdog: there is no such process")

func openProcess(id processIdentity) (*commandProcess, error) { return &commandProcess{id}, nil }

func (t *commandProcess) closeHandle() {}

func (t *commandProcess) killGroup() { _ = unix.Kill(-int(t.pid), unix.SIGKILL) }

// isGroupGone reports whether no process of the group is left.
func (t *commandProcess) isGroupGone() bool { return errors.Is(unix.Kill(-int(t.pid), 0), unix.ESRCH) }
