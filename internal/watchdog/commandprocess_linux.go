package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// identifyProcess names a running process, or one that nobody has waited for yet. The error says that its start could not be read,
// for want of a descriptor, for example: then nobody can tell it from another process of that number.
func identifyProcess(pid int) (processIdentity, error) {
	_, _, started, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return processIdentity{pid: int32(pid), started: started}, err
}

// isProcessGone reports whether a process's file could not be read because the process is gone.
func isProcessGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// commandProcess is a command that may have to be killed: a process, and the process group that it leads, if it does.
type commandProcess struct {
	processIdentity
	fd int // a pidfd: it means this process for ever
}

var (
	errNoSuchProcess = errors.New("watchdog: there is no such process")
	errUnidentified  = errors.New("watchdog: the start of a process is not known")
)

// openProcess returns a target, or errNoSuchProcess if the process is gone, also if another has its number by now. Any other error
// says that it may run.
func openProcess(id processIdentity) (*commandProcess, error) {
	if id.started == 0 {
		return nil, errUnidentified
	}
	fd, err := unix.PidfdOpen(int(id.pid), 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, errNoSuchProcess
	}
	if err != nil {
		return nil, fmt.Errorf("watchdog: pidfd of process %d: %w", id.pid, err)
	}
	t := &commandProcess{id, fd}
	found, err := identifyProcess(int(id.pid))
	if err == nil && found == id {
		return t, nil
	}
	t.closeHandle()
	if err != nil && !isProcessGone(err) {
		return nil, fmt.Errorf("%w: %w", errUnidentified, err)
	}
	return nil, errNoSuchProcess
}

func (t *commandProcess) closeHandle() { _ = unix.Close(t.fd) } // nothing else can be done

// killGroup sends SIGKILL to the process and its group. What cannot be killed shows in gone.
func (t *commandProcess) killGroup() {
	_ = t.signalGroup(unix.SIGKILL)
	_ = unix.PidfdSendSignal(t.fd, unix.SIGKILL, nil, 0)
}

// signalGroup signals the group that the process leads or has led. Kernels before 6.9 know groups by their
// numbers only, and one may be given again once its leader was waited for: then nobody is signalled.
func (t *commandProcess) signalGroup(s unix.Signal) error {
	err := unix.PidfdSendSignal(t.fd, s, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.PidfdSendSignal(t.fd, 0, nil, 0); err != nil {
		return err
	}
	return unix.Kill(-int(t.pid), s)
}

// isGroupGone reports whether neither the process nor anybody of its group runs any more. What nobody has waited for yet
// does not run.
func (t *commandProcess) isGroupGone() bool {
	if !t.hasLeaderEnded() {
		return false
	}
	return errors.Is(t.signalGroup(0), unix.ESRCH) || !isGroupRunning(int(t.pid))
}

// hasLeaderEnded reports whether the process has.
func (t *commandProcess) hasLeaderEnded() bool {
	fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// isGroupRunning looks for a process of a group that is no zombie.
func isGroupRunning(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // not to be known
	}
	for _, file := range stats {
		state, of, _, err := readStat(file)
		if err != nil && !isProcessGone(err) {
			return true // not to be known
		}
		if err == nil && of == group && state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}

var errStat = errors.New("watchdog: a process's state cannot be read")

// readStat reads a process's state, its process group and its start in clock ticks since boot.
func readStat(file string) (state byte, group int, started int64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, 0, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (state byte, group int, started int64, err error) {
	// The second field, a name in parentheses, may contain anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, 0, errStat
	}
	group, err = strconv.Atoi(string(fields[2]))
	if err != nil {
		return 0, 0, 0, errStat
	}
	started, err = strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return 0, 0, 0, errStat
	}
	return fields[0][0], group, started, nil
}
