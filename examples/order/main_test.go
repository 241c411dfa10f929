package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// read decodes the JSON that the example has printed.
func read(t *testing.T, out string) (s summary) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(out), &s), out)
	return s
}

// requireChargedOnce checks a run of the program in which executors were killed.
func requireChargedOnce(t *testing.T, kills int, args ...string) (errs string) {
	t.Helper()
	out, errs, code := testproc.Run(t, append(args, "--json")...)
	require.Equal(t, 0, code, errs)
	s := read(t, out)
	require.Equal(t, kills, s.Kills)
	require.EqualValues(t, 1, s.Payments)
	require.EqualValues(t, amount, s.Amount)
	require.Equal(t, "send", s.State)
	require.GreaterOrEqual(t, s.Effects["charge"], 2, "one was killed between the payment and its record")
	require.GreaterOrEqual(t, len(s.Tokens), 2)
	require.IsIncreasing(t, s.Tokens)
	require.Equal(t, kills, strings.Count(errs, "kill -9"))
	return errs
}

func TestTwentyKillsInMemory(t *testing.T) {
	t.Parallel()
	requireChargedOnce(t, 20)
}

func TestWithoutAWatchdog(t *testing.T) {
	t.Parallel()
	requireChargedOnce(t, 3, "--kills", "3", "--no-watchdog", "--session-timeout", "1s")
}

// TestWithoutKey checks that the same kills charge the customer again if payments have no key. So
// the other tests do test the key.
func TestWithoutKey(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--no-key", "--json", "--kills", "4")
	require.Equal(t, demo.ExitBroken, code, errs)
	require.Greater(t, read(t, out).Payments, int64(1))
	require.Contains(t, errs, "the customer was charged")
}

func TestTextOutput(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "-kills", "1")
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "two executors on a ZooKeeper in memory")
	require.Contains(t, out, "charge: between effect and record")
	require.Contains(t, out, "payments  1, 100 in all: the customer was charged 2 times")
	require.Contains(t, out, "\nHeld: ")
}

func TestTwentyKillsOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	errs := requireChargedOnce(t, 20, "--zk", strings.Join(servers, ","))
	exampletest.RequireCleanedUp(t, servers, errs)
}

func TestUsage(t *testing.T) {
	testproc.RequireUsage(t, "order", "-no-key", "--kills 0", "--kills 41", "--kills x", "--session-timeout 1ms",
		"--zk ,", "--bogus", "word")
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	testproc.RequireUnreachable(t)
}
