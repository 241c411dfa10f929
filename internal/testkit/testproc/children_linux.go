package testproc

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// State is the state of a process, as in /proc.
type State byte

// The states that tests need.
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

// dumpTimeout is how long QuitAll waits for processes that print their goroutines.
const dumpTimeout = 20 * time.Second

// QuitAll sends SIGQUIT to a program's children, one after the other, and then to the program: a Go
// program then prints its goroutines on standard error and ends. Before that it stops all of them,
// so that each prints what it did before, and so that the program neither ends its children nor
// replaces them. Only the caller may wait for the program.
func QuitAll(program *os.Process) {
	if program.Signal(syscall.SIGSTOP) != nil {
		return // it has ended
	}
	// of a stopped process: they keep their numbers after their end
	children := slices.Sorted(maps.Keys(Children(program.Pid)))
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dumpTimeout)
	defer cancel()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		waitForEnd(ctx, pid)
	}
	_ = program.Signal(syscall.SIGQUIT)
	_ = program.Signal(syscall.SIGCONT)
	waitForEnd(ctx, program.Pid)
	_ = program.Kill() // it has ended, unless it ignores SIGQUIT
}

// waitForEnd waits until a process or ctx has ended.
func waitForEnd(ctx context.Context, pid int) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for _, _, runs := readState(pid); runs; _, _, runs = readState(pid) {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// RequireChildrenEnd ends the program with SIGINT, SIGTERM and SIGKILL, and requires that its
// children end. For each signal it runs the program, waits until the program has printed a text,
// and calls check with the children.
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
		var errs bytes.Buffer
		cmd.Stderr = &errs
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test fails
		hangs := time.AfterFunc(patienceOf(t), func() { QuitAll(cmd.Process) })
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
		err = cmd.Wait()
		require.True(t, hangs.Stop(), "it hangs after %v: %s", way.signal, &errs)
		require.EqualError(t, err, way.ends, &errs)
		requireEnded(t, children)
	}
}

func requireEnded(t *testing.T, children map[int]State) {
	t.Helper()
	for pid := range children {
		ended := func() bool { _, _, runs := readState(pid); return !runs }
		require.Eventually(t, ended, time.Minute, 5*time.Millisecond, "process %d is left", pid)
	}
}
