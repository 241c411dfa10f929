package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/testproc"
)

// TestMain makes this test binary the example itself when asked to: its instances are processes.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// requireNoFailure checks the JSON that is printed: no call failed in the restart, and few when one instance was killed.
func requireNoFailure(t *testing.T, out string) {
	t.Helper()
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s), out)
	require.Zero(t, s.Rolling.Failed)
	require.Positive(t, s.Rolling.Calls)
	require.Positive(t, s.Killed.Failed, "a killed instance is noticed by its failures")
	require.Greater(t, s.Killed.Calls, 2*s.Killed.Failed)
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--json", "--workers", "4")
	require.Equal(t, 0, code, errs)
	requireNoFailure(t, out)
	require.Contains(t, errs, "one is killed (SIGKILL)")
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, errs, code := testproc.Run(t, "--zk", strings.Join(servers, ","), "--json", "--workers", "4")
	require.Equal(t, 0, code, errs)
	requireNoFailure(t, out)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--workers", "0"}, {"--linger", "-1s"}, {"x"}, {"--nonsense"}} {
		_, errs, code := testproc.Run(t, args...)
		require.Equal(t, demo.ExitUsage, code)
		require.Contains(t, errs, "rolling: bad usage")
	}
	out, _, code := testproc.Run(t, "--help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "-linger")
}
