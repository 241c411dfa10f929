package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

// TestMain runs a member if the environment says so: the example starts this binary again for its
// members.
func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// requireHeld requires that the printed JSON reports no violation, and returns it.
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

// runLongEnough runs the example, for twice as long each time that it ends before a member has
// taken over, as on a slow machine.
func runLongEnough(t *testing.T, duration time.Duration, args ...string) (out, errs string) {
	t.Helper()
	for ; ; duration *= 2 {
		out, errs, code := testproc.Run(t, append(args, "--duration", duration.String())...)
		if duration > time.Minute || code != demo.ExitBroken ||
			!strings.HasSuffix(errs, "cluster: no member took over\n") {
			require.Equal(t, 0, code, errs)
			return out, errs
		}
	}
}

// TestInMemory has a session timeout that is longer than any test waits: a member takes over
// because the watchdog has closed the dead leader's session.
func TestInMemory(t *testing.T) {
	t.Parallel()
	out, errs := runLongEnough(t, 8*time.Second, "--json", "--session-timeout", "1h")
	require.Equal(t, time.Hour.Milliseconds(), requireHeld(t, out).SessionTimeout)
	require.Contains(t, errs, "is killed (SIGKILL)")
}

func TestTheDefaultSessionTimeout(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, o.timeout)
	require.True(t, o.watchdog)
}

func TestTextOutput(t *testing.T) {
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
	exampletest.RequireCleanedUp(t, servers, errs)
}

func TestUsage(t *testing.T) {
	testproc.RequireUsage(t, "cluster", "-session-timeout",
		"--members 1", "--members 0", "--members 51", "--members x", "--duration 4s", "--duration -1s",
		"--no-watchdog --duration 7s", "--ui --json",
		"--duration 20s --no-watchdog --session-timeout 10s",
		"--session-timeout 0", "--session-timeout -1s", "--session-timeout 1ms", "--zk ,", "--bogus", "word",
	)
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	testproc.RequireUnreachable(t)
}
