//go:build unix

package lockstep_test

import (
	"bufio"
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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
			args := []string{address}
			if again {
				args = append(args, "stubborn")
			}
			cmd := testproc.Command(args...)
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
