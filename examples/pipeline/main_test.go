package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/testproc"
)

// TestMain makes this test binary the example itself when asked to: its workers are processes.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// requireRight checks the JSON that is printed against the sum of 3n² + 1, and the kills against the log.
func requireRight(t *testing.T, out, log string, items, kills int) {
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
	requireRight(t, out, log, 60, 8)
}

func TestWithoutWatchdogs(t *testing.T) {
	t.Parallel()
	out, log, code := testproc.Run(t, "--items", "40", "--kills", "2", "--workers", "2", "--no-watchdog", "--session-timeout", "1s", "--json")
	require.Equal(t, 0, code, log)
	requireRight(t, out, log, 40, 2)
}

func TestForPeople(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "-items", "20", "-kills", "1", "-workers", "3")
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "3 workers on a ZooKeeper in memory")
	require.Contains(t, out, ", the leader, is killed (SIGKILL)")
	require.Contains(t, out, "Report")
	require.Contains(t, out, "Held: it is the sum")
	require.NotContains(t, out, "\x1b", "plain when it is piped")
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, log, code := testproc.Run(t, "--zk", strings.Join(servers, ","), "--items", "40", "--kills", "4", "--json")
	require.Equal(t, 0, code, log)
	requireRight(t, out, log, 40, 4)
	root := regexp.MustCompile(`/lockstep-example-\w+`).FindString(log)
	require.NotEmpty(t, root)
	client, err := framework.Connect(t.Context(), framework.Config{Servers: servers})
	require.NoError(t, err)
	defer client.Close(t.Context())
	session, err := client.Session(t.Context())
	require.NoError(t, err)
	require.NoError(t, session.Sync(t.Context(), "/"))
	_, err = client.Exists(t.Context(), root)
	require.ErrorIs(t, err, framework.ErrNoNode, "it is cleaned up")
}

func TestUsage(t *testing.T) {
	for _, line := range []string{
		"--workers 1", "--workers 51", "--workers x", "--items 7", "--items 1001", "--effort 0", "--effort 2m", "--kills -1",
		"--items 20 --kills 6", "--session-timeout 0", "--session-timeout -1s", "--zk ,", "--spare -1", "--spare 4", "--for -1s", "--bogus", "word",
	} {
		out, errs, code := testproc.Run(t, strings.Fields(line)...)
		require.Equal(t, 64, code, line)
		require.Empty(t, out, line)
		require.Regexp(t, `^pipeline: .+\npipeline: see --help\n$`, errs, line)
	}
	out, _, code := testproc.Run(t, "--help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "-kills")
}

func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--zk", "127.0.0.1:1", "--json")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "127.0.0.1:1")
}

// TestRounds plays round after round; one worker lives through all of them.
func TestRounds(t *testing.T) {
	t.Parallel()
	events := filepath.Join(t.TempDir(), "events")
	out, log, code := testproc.Run(t, "--rounds", "4", "--items", "20", "--kills", "2", "--workers", "3", "--spare", "1", "--json", "--events", events)
	require.Equal(t, 0, code, log)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, 4, s.Rounds, log)
	require.Equal(t, int64(s.Rounds)*(20*21*41/2+20), s.Sum, log)
	require.Len(t, s.Kills, 2*s.Rounds)
	require.NotContains(t, s.Kills, kill{"worker-1.1", false})
	require.NotContains(t, s.Kills, kill{"worker-1.1", true})
	told, err := os.ReadFile(events)
	require.NoError(t, err)
	counts := map[kind]int{}
	for line := range bytes.Lines(told) {
		var e event
		require.NoError(t, json.Unmarshal(line, &e))
		counts[e.Kind]++
		if e.Kind == vitals {
			require.Positive(t, e.Process)
			require.Positive(t, e.Goroutines)
		}
	}
	require.GreaterOrEqual(t, counts[vitals], 3+len(s.Kills))
	require.Equal(t, len(s.Kills), counts[killed])
}

func TestEventsThatCannotBeKept(t *testing.T) {
	_, errs, code := testproc.Run(t, "--events", filepath.Join(t.TempDir(), "no", "file"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no/file")
}
