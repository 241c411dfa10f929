package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// children lists the processes of a parent.
func children(parent int) (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(parent) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestTheWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		want   string
	}{{syscall.SIGINT, "exit status 1"}, {syscall.SIGTERM, "exit status 1"}, {syscall.SIGKILL, "signal: killed"}} {
		cmd := program("--effort", "1m")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), "plans") {
			continue
		}
		workers := children(cmd.Process.Pid)
		require.Len(t, workers, 4)
		require.NoError(t, cmd.Process.Signal(c.signal))
		for lines.Scan() {
			continue
		}
		require.EqualError(t, cmd.Wait(), c.want)
		for _, pid := range workers {
			require.Eventually(t, func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
				return err != nil || strings.Contains(string(stat), ") Z ")
			}, 20*time.Second, 5*time.Millisecond)
		}
	}
}
