package main

import (
	"bufio"
	"fmt"
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

// children lists the processes of a parent, with their states.
func children(parent int) map[string]string {
	found := map[string]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			found[filepath.Base(filepath.Dir(file))] = f[0]
		}
	}
	return found
}

func TestFrozenHoldersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		want   string
	}{{syscall.SIGINT, "exit status 1"}, {syscall.SIGTERM, "exit status 1"}, {syscall.SIGKILL, "signal: killed"}} {
		cmd := program("--session-timeout", "1h")
		cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // a parent that is killed leaves its database behind
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), "bob waits") {
			continue
		}
		holders := children(cmd.Process.Pid)
		require.Len(t, holders, 2)
		require.Contains(t, slices.Collect(maps.Values(holders)), "T", "ann is frozen")
		require.NoError(t, cmd.Process.Signal(c.signal))
		for lines.Scan() {
			continue
		}
		require.EqualError(t, cmd.Wait(), c.want)
		for pid := range holders {
			require.Eventually(t, func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
				return err != nil || strings.Contains(string(stat), ") Z ")
			}, 20*time.Second, 5*time.Millisecond)
		}
	}
}
