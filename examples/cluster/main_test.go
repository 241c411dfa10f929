package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/testproc"
)

// TestMain makes this test binary the example itself when asked to: its members are processes.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// requireHeld checks the JSON that is printed.
func requireHeld(t *testing.T, out string) summary {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &fields), out)
	require.Len(t, fields, 7)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Positive(t, s.Fired)
	require.Equal(t, s.Due, s.Fired+s.Missed)
	require.Zero(t, s.Duplicated)
	require.Positive(t, s.TakeoverMs)
	require.Positive(t, s.SessionTimeout)
	require.GreaterOrEqual(t, len(s.Terms), 2)
	require.NotEqual(t, s.Terms[0].Leader, s.Terms[len(s.Terms)-1].Leader)
	for i := 1; i < len(s.Terms); i++ {
		require.Greater(t, s.Terms[i].Token, s.Terms[i-1].Token)
	}
	return s
}

// requireTakenOverAtOnce requires a takeover well before the session timeout.
func requireTakenOverAtOnce(t *testing.T, s summary) {
	t.Helper()
	require.Equal(t, int64(30000), s.SessionTimeout)
	require.Less(t, s.TakeoverMs, s.SessionTimeout/4)
}

// runLongEnough runs the example, for twice as long each time that it ends before a member has taken over, as on a slow machine.
func runLongEnough(t *testing.T, duration time.Duration, args ...string) (out, errs string) {
	t.Helper()
	for ; ; duration *= 2 {
		out, errs, code := testproc.Run(t, append(args, "--duration", duration.String())...)
		if duration > time.Minute || code != demo.ExitBroken || !strings.HasSuffix(errs, "cluster: no member took over\n") {
			require.Equal(t, 0, code, errs)
			return out, errs
		}
	}
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	out, errs := runLongEnough(t, 8*time.Second, "--json")
	requireTakenOverAtOnce(t, requireHeld(t, out))
	require.Contains(t, errs, "is killed (SIGKILL)")
}

func TestForPeople(t *testing.T) {
	t.Parallel()
	out, errs := runLongEnough(t, 5*time.Second, "-session-timeout", "1s", "-members", "2", "-no-watchdog")
	require.Empty(t, errs)
	require.Contains(t, out, "2 members on a ZooKeeper in memory")
	require.Contains(t, out, "is killed (SIGKILL)")
	require.Contains(t, out, "Summary")
	require.Contains(t, out, "Held: no tick fired twice")
	require.NotContains(t, out, "\x1b", "plain when it is piped")
}

func TestOnRealServers(t *testing.T) {
	t.Parallel()
	servers := ensemble.Shared(t)
	out, errs := runLongEnough(t, 10*time.Second, "--zk", strings.Join(servers, ","), "--json")
	requireHeld(t, out)
	root := regexp.MustCompile(`/lockstep-example-\w+`).FindString(errs)
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
		"--members 1", "--members 0", "--members 51", "--members x", "--duration 4s", "--duration -1s", "--no-watchdog --duration 7s",
		"--duration 20s --no-watchdog --session-timeout 10s",
		"--session-timeout 0", "--session-timeout -1s", "--session-timeout 1ms", "--zk ,", "--bogus", "word",
	} {
		out, errs, code := testproc.Run(t, strings.Fields(line)...)
		require.Equal(t, 64, code, line)
		require.Empty(t, out, line)
		require.Regexp(t, `^cluster: .+\ncluster: see --help\n$`, errs, line)
	}
	out, _, code := testproc.Run(t, "--help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "-session-timeout")
}

func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--zk", "127.0.0.1:1", "--json")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "127.0.0.1:1")
}
