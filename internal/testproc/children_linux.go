package testproc

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// State is the state of a process, as in /proc.
type State byte

// The states that tests compare with.
const (
	Stopped State = 'T'
	Zombie  State = 'Z'
)

// Children returns the running children of a process, and their states.
func Children(parent int) map[int]State {
	found := map[int]State{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if of, state, runs := readState(pid); runs && of == parent {
			found[pid] = state
		}
	}
	return found
}

// readState returns a process's parent and state. A zombie does not run.
func readState(pid int) (parent int, state State, runs bool) {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // empty if it is gone
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(f[1])
	return parent, State(f[0][0]), State(f[0][0]) != Zombie
}

// RequireChildrenEnd ends the program by SIGINT, SIGTERM and SIGKILL, and requires that its children end. For each signal it runs the program,
// waits until it has printed a text, and calls check with the children.
func RequireChildrenEnd(t *testing.T, args []string, printed string, check func(children map[int]State)) {
	t.Helper()
	for _, way := range []struct {
		signal syscall.Signal
		ends   string
	}{{syscall.SIGINT, "exit status 1"}, {syscall.SIGTERM, "exit status 1"}, {syscall.SIGKILL, "signal: killed"}} {
		cmd := Command(args...)
		cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // a program that is killed leaves its files behind
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), printed) {
			continue
		}
		children := Children(cmd.Process.Pid)
		check(children)
		require.NoError(t, cmd.Process.Signal(way.signal))
		for lines.Scan() {
			continue
		}
		require.EqualError(t, cmd.Wait(), way.ends)
		requireEnded(t, children)
	}
}

func requireEnded(t *testing.T, children map[int]State) {
	t.Helper()
	for pid := range children {
		ended := func() bool { _, _, runs := readState(pid); return !runs }
		require.Eventually(t, ended, 20*time.Second, 5*time.Millisecond, "process %d is left", pid)
	}
}
