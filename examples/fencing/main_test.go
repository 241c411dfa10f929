package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

// TestMain runs a holder or a sender if the environment says so: the example starts this binary
// again for its holders.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if text := os.Getenv(senderVariable); text != "" {
		fmt.Fprintln(os.Stderr, runSender(text)) // it returns only if it has failed
		os.Exit(1)
	}
	if testproc.IsProgram() || demo.IsChild() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// read decodes the JSON that the example has printed.
func read(t *testing.T, out string) (s summary) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &fields), out)
	require.Len(t, fields, 7)
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Positive(t, s.TakeoverMs)
	require.Positive(t, s.SessionTimeout)
	return s
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--json")
	require.Equal(t, 0, code, errs)
	s := read(t, out)
	require.True(t, s.Fenced)
	require.Len(t, s.Grants, 3)
	require.Regexp(t, `^refused: token \d+ is older than \d+$`, s.LateWrite)
	require.EqualValues(t, 115, s.Balance)
	require.Contains(t, errs, "is frozen (SIGSTOP)")
}

func TestWithoutTheFence(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "-no-fence", "-json", "-session-timeout", "1s")
	require.Equal(t, 1, code, errs)
	s := read(t, out)
	require.False(t, s.Fenced)
	require.Equal(t, "accepted", s.LateWrite)
	require.EqualValues(t, 110, s.Balance)
	require.Contains(t, errs, "a deposit is lost")
}

func TestTextOutput(t *testing.T) {
	t.Parallel()
	out, errs, code := testproc.Run(t, "--session-timeout", "1s")
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "a ZooKeeper in memory")
	require.Contains(t, out, "is frozen (SIGSTOP)")
	require.Regexp(t, `'s write of 110: refused: token \d+ is older than \d+`, out)
	require.Contains(t, out, "Held: the late write was refused, and both deposits are in the account: 115.")
	require.NotContains(t, out, "\x1b", "plain when it is piped")
}

func TestUsage(t *testing.T) {
	testproc.RequireUsage(t, "fencing", "-session-timeout",
		"--session-timeout 0", "--session-timeout -1s", "--session-timeout 1ms", "--session-timeout x", "--zk ,",
		"--bogus", "word",
	)
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	testproc.RequireUnreachable(t)
}
