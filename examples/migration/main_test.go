package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// requireResumed runs the program, and requires that the next leader knew the steps that the first
// had recorded, and did the others.
func requireResumed(t *testing.T, known []string, args ...string) (errs string) {
	t.Helper()
	out, errs, code := testproc.Run(t, append(args, "--json", "--step", "50ms")...)
	require.Equal(t, 0, code, errs)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s), out)
	require.Len(t, s.Leaders, 2)
	require.Empty(t, s.Leaders[0].Known)
	require.Equal(t, known, s.Leaders[1].Known)
	require.NotEqual(t, s.Leaders[0].Member, s.Leaders[1].Member)
	require.Greater(t, s.Leaders[1].Token, s.Leaders[0].Token)
	require.Equal(t, steps, s.Recorded)
	require.Contains(t, errs, "is killed (SIGKILL) in the middle of")
	return errs
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	requireResumed(t, []string{"copy-1", "copy-2"})
	requireResumed(t, nil, "--kill-in", "copy-1", "--no-watchdog", "--session-timeout", "3s")
	requireResumed(t, steps[:5], "--kill-in", "switch", "--members", "2")
}

func TestTextOutput(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "-step", "20ms")
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "3 members on a ZooKeeper in memory")
	require.Contains(t, out, "is killed (SIGKILL) in the middle of copy-3")
	require.Contains(t, out, "recorded: copy-1, copy-2\n")
	require.Contains(t, out, `Held: 6 steps are recorded once each. "copy-3" was begun twice,`)
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	errs := requireResumed(t, []string{"copy-1", "copy-2"}, "--zk", strings.Join(servers, ","))
	exampletest.RequireCleanedUp(t, servers, errs)
}

func TestUsage(t *testing.T) {
	testproc.RequireUsage(t, "migration", "-kill-in",
		"--members 1", "--members 51", "--kill-in none", "--step 1ms", "--step 2h", "--session-timeout 1ms", "--zk ,",
		"--bogus", "word",
	)
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	testproc.RequireUnreachable(t)
}
