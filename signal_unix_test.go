//go:build unix

package lockstep_test

import (
	"bufio"
	"bytes"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestSignals: the first one ends the service in order, the second one the process at once.
func TestSignals(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		zk, err := zktest.New()
		require.NoError(t, err)
		t.Cleanup(zk.Close)
		address, err := zk.ListenTCP("127.0.0.1:0")
		require.NoError(t, err)
		for _, again := range []bool{false, true} {
			endsWork := "at once"
			if again {
				endsWork = "never"
			}
			cmd := testproc.Command(address, endsWork)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan(), &errs)
			require.Equal(t, "leading", lines.Text())
			require.NoError(t, cmd.Process.Signal(first))
			require.True(t, lines.Scan(), &errs)
			require.Equal(t, "stopping", lines.Text())
			if again {
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
				require.False(t, lines.Scan())
				require.EqualError(t, cmd.Wait(), "signal: terminated", &errs)
				require.Len(t, zk.Sessions(), 1, "the session lasts until its timeout")
				continue
			}
			require.True(t, lines.Scan(), &errs)
			require.Equal(t, "ended", lines.Text())
			require.NoError(t, cmd.Wait(), &errs)
			require.Empty(t, zk.Sessions())
		}
	}
}

// TestProbesAtSIGTERM: from the signal on the service is not ready, and it is live until its work
// has ended.
func TestProbesAtSIGTERM(t *testing.T) {
	zk := zktest.Start(t)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	cmd := testproc.Command(address, "with its input")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var log logtest.Buffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill() // it has ended, unless the test fails
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), log.String())
	require.Equal(t, "leading", lines.Text())
	health := healthAddress(t, &log)
	require.Eventually(t, func() bool { status, _ := probe(t, health, "readyz"); return status == http.StatusOK },
		time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.True(t, lines.Scan(), log.String())
	require.Equal(t, "stopping", lines.Text())
	status, body := probe(t, health, "readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "the service drains\n", body)
	status, _ = probe(t, health, "livez")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, zk.Sessions(), 1, "it leads until its work has ended")
	require.NoError(t, input.Close())
	require.True(t, lines.Scan(), log.String())
	require.Equal(t, "ended", lines.Text())
	require.NoError(t, cmd.Wait(), log.String())
	require.Empty(t, zk.Sessions())
}
