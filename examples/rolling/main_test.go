package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

// TestMain runs an instance if the environment says so: the example starts this binary again for
// its instances.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// requireNoFailure checks the printed JSON: no call failed during the restart, and fewer than half
// of them after one instance was killed.
func requireNoFailure(t *testing.T, out string) {
	t.Helper()
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s), out)
	require.Zero(t, s.Rolling.Failed)
	require.Positive(t, s.Rolling.Calls)
	require.Positive(t, s.Killed.Failed, "a killed instance is noticed by its failures")
	require.Greater(t, s.Killed.Calls, 2*s.Killed.Failed)
}

// underLoad are arguments for a busy machine: an instance that drains gives the pool more time to
// notice.
var underLoad = []string{"--json", "--workers", "4", "--linger", "2s"}

func TestInMemory(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, underLoad...)
	require.Equal(t, 0, code, errs)
	requireNoFailure(t, out)
	require.Contains(t, errs, "one is killed (SIGKILL)")
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, errs, code := testproc.Run(t, append([]string{"--zk", strings.Join(servers, ",")}, underLoad...)...)
	require.Equal(t, 0, code, errs)
	requireNoFailure(t, out)
	exampletest.RequireCleanedUp(t, servers, errs)
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
