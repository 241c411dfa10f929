package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// requireRightSum checks the printed JSON: the sum against the sum of 3n² + 1, and the kills
// against the log.
func requireRightSum(t *testing.T, out, log string, items, kills int) {
	t.Helper()
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s), log)
	n := int64(items)
	require.Equal(t, n*(n+1)*(2*n+1)/2+n, s.Sum, log)
	require.Equal(t, s.Want, s.Sum)
	require.Equal(t, 3*items, s.Items)
	require.Len(t, s.Kills, kills)
	require.Equal(t, kills, strings.Count(log, "is killed (SIGKILL)"), log)
	require.Equal(t, kills, strings.Count(log, "replaces it"), log)
	require.True(t, s.Kills[0].Leader, "the first is the leader")
	require.GreaterOrEqual(t, len(s.Terms), 2)
	require.NotEqual(t, s.Terms[0].Leader, s.Terms[1].Leader)
	for i := 1; i < len(s.Terms); i++ {
		require.Greater(t, s.Terms[i].Token, s.Terms[i-1].Token)
	}
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	out, log, code := testproc.Run(t, "--items", "60", "--kills", "8", "--json")
	require.Equal(t, 0, code, log)
	requireRightSum(t, out, log, 60, 8)
}

func TestWithoutWatchdogs(t *testing.T) {
	t.Parallel()
	out, log, code := testproc.Run(t, "--items", "40", "--kills", "2", "--workers", "2", "--no-watchdog",
		"--session-timeout", "1s", "--json")
	require.Equal(t, 0, code, log)
	requireRightSum(t, out, log, 40, 2)
}

func TestTextOutput(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "-items", "20", "-kills", "1", "-workers", "3")
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "3 workers on a ZooKeeper in memory")
	require.Contains(t, out, ", the leader, is killed (SIGKILL)")
	require.Contains(t, out, "Report")
	require.Contains(t, out, "Held: the sum is the one")
	require.NotContains(t, out, "\x1b", "plain when it is piped")
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, log, code := testproc.Run(t, "--zk", strings.Join(servers, ","), "--items", "40", "--kills", "4", "--json")
	require.Equal(t, 0, code, log)
	requireRightSum(t, out, log, 40, 4)
	exampletest.RequireCleanedUp(t, servers, log)
}

func TestUsage(t *testing.T) {
	testproc.RequireUsage(t, "pipeline", "-kills",
		"--workers 1", "--workers 51", "--workers x", "--items 7", "--items 1001", "--effort 0", "--effort 2m",
		"--kills -1",
		"--items 20 --kills 6", "--session-timeout 0", "--session-timeout -1s", "--zk ,", "--spare -1", "--spare 4",
		"--for -1s", "--bogus", "word",
	)
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	testproc.RequireUnreachable(t)
}

// TestRounds runs several rounds. One worker is never killed, so that it takes part in all of them.
func TestRounds(t *testing.T) {
	t.Parallel()
	events := filepath.Join(t.TempDir(), "events")
	out, log, code := testproc.Run(t, "--rounds", "4", "--items", "20", "--kills", "2", "--workers", "3", "--spare",
		"1", "--json", "--events", events)
	require.Equal(t, 0, code, log)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, 4, s.Rounds, log)
	require.Equal(t, int64(s.Rounds)*(20*21*41/2+20), s.Sum, log)
	require.Len(t, s.Kills, 2*s.Rounds)
	require.NotContains(t, s.Kills, kill{"worker-1.1", false})
	require.NotContains(t, s.Kills, kill{"worker-1.1", true})
	text, err := os.ReadFile(events)
	require.NoError(t, err)
	counts := map[kind]int{}
	for line := range bytes.Lines(text) {
		var e event
		require.NoError(t, json.Unmarshal(line, &e))
		counts[e.Kind]++
		if e.Kind == processStats {
			require.Positive(t, e.Process)
			require.Positive(t, e.Goroutines)
		}
	}
	require.GreaterOrEqual(t, counts[processStats], 3+len(s.Kills))
	require.Equal(t, len(s.Kills), counts[killed])
}

func TestUnwritableEventFile(t *testing.T) {
	_, errs, code := testproc.Run(t, "--events", filepath.Join(t.TempDir(), "no", "file"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no/file")
}
