package itself

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

// State is a process's, as Linux tells it.
type State byte

// The states that tests ask for.
const (
	Stopped State = 'T'
	Zombie  State = 'Z'
)

// Children lists the processes of a parent.
func Children(parent int) map[int]State {
	found := map[int]State{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if of, state, lives := look(pid); lives && of == parent {
			found[pid] = state
		}
	}
	return found
}

// look tells a process's parent and state; one that nobody waits for has ended.
func look(pid int) (parent int, state State, lives bool) {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // empty if it is gone
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(f[1])
	return parent, State(f[0][0]), State(f[0][0]) != Zombie
}

// RequireChildrenEnd runs the program again and again, waits until it has printed a text, looks at its processes, and
// ends it in each way there is. None of them may be left.
func RequireChildrenEnd(t *testing.T, args []string, printed string, look func(children map[int]State)) {
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
		look(children)
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
		ended := func() bool { _, _, lives := look(pid); return !lives }
		require.Eventually(t, ended, 20*time.Second, 5*time.Millisecond, "process %d is left", pid)
	}
}
