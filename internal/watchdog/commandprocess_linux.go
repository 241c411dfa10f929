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

// identifyProcess returns the identity of a process that runs or has not been waited for yet. It
// returns an error if it cannot read the start of the process, for example because no file
// descriptor is free. Then the process cannot be told from a later one with the same number.
func identifyProcess(pid int) (processIdentity, error) {
	_, _, started, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return processIdentity{pid: int32(pid), started: started}, err
}

// isProcessGone reports whether err says that a file of a process could not be read because the
// process is gone.
func isProcessGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// commandProcess is a command that the watchdog may have to kill: a process, and the process group
// that it leads if it leads one.
type commandProcess struct {
	processIdentity
	fd int // a pidfd, which never refers to a later process with the same number
}

var (
	errNoSuchProcess = errors.New("watchdog: there is no such process")
	errUnidentified  = errors.New("watchdog: the start of a process is not known")
)

// openProcess opens a process. It returns errNoSuchProcess if the process is gone, even if another
// process has its number now. After any other error the process may still run.
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

func (t *commandProcess) closeHandle() { _ = unix.Close(t.fd) } // its error cannot be handled

// killGroup sends SIGKILL to the process and its group. isGroupGone shows whether that has ended
// them.
func (t *commandProcess) killGroup() {
	_ = t.signalGroup(unix.SIGKILL)
	_ = unix.PidfdSendSignal(t.fd, unix.SIGKILL, nil, 0)
}

// signalProcessGroup is the flag for a signal to the group of a pidfd. A test has one that the
// kernel does not know, as kernels before 6.9.
var signalProcessGroup = unix.PIDFD_SIGNAL_PROCESS_GROUP

// signalGroup signals the group that the process leads or has led. Kernels before 6.9 can signal a
// group by its number only. After the leader was waited for, this number may belong to another
// group. So signalGroup signals nothing then, and returns an error.
func (t *commandProcess) signalGroup(s unix.Signal) error {
	err := unix.PidfdSendSignal(t.fd, s, nil, signalProcessGroup)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.PidfdSendSignal(t.fd, 0, nil, 0); err != nil {
		return err
	}
	return unix.Kill(-int(t.pid), s)
}

// isGroupGone reports whether no process of the group runs any more. Zombies do not run. Before
// Linux 6.9, a group with the same number counts as this one after the leader was waited for.
func (t *commandProcess) isGroupGone() bool {
	if !t.hasLeaderEnded() {
		return false
	}
	err := unix.PidfdSendSignal(t.fd, 0, nil, signalProcessGroup)
	return errors.Is(err, unix.ESRCH) || !isGroupRunning(int(t.pid))
}

// hasLeaderEnded reports whether the process itself has ended.
func (t *commandProcess) hasLeaderEnded() bool {
	fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// isGroupRunning reports whether a process of a group runs, or may run because /proc cannot be
// read. Zombies do not run.
func isGroupRunning(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // it may run
	}
	for _, file := range stats {
		state, itsGroup, _, err := readStat(file)
		if err != nil && !isProcessGone(err) {
			return true // it may run
		}
		if err == nil && itsGroup == group && state != 'Z' && state != 'X' {
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
	// The second field is the process's name in parentheses, which may itself have spaces and
	// parentheses.
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
