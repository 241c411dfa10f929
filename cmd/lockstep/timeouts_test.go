package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// documentedTimeouts are the session timeouts of docs/timeouts.md.
var documentedTimeouts = []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second,
	time.Minute, 2 * time.Minute}

// TestTheTableOfTimeouts computes what docs/timeouts.md tells of each session timeout, and which
// one survives each interruption.
func TestTheTableOfTimeouts(t *testing.T) {
	page, err := os.ReadFile("../../docs/timeouts.md")
	require.NoError(t, err)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds()) }
	var rows []string
	for _, d := range documentedTimeouts {
		rows = append(rows, fmt.Sprintf("| %.0f s | %s | %s | %s | %s | %.0f |",
			d.Seconds(), seconds(survived(d)), seconds(survivedByCommand(t, d)),
			seconds(framework.Config{SessionTimeout: d, ObserverMasters: true}.LongestInterruption()), seconds(d/2),
			4000/d.Seconds()))
	}
	require.Contains(t, string(page), strings.Join(rows, "\n")+"\n")

	interruptions := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		var lasts int
		if len(cells) != 4 {
			continue
		}
		if _, err := fmt.Sscanf(cells[1], "%d s", &lasts); err != nil {
			continue
		}
		d := time.Duration(lasts) * time.Second
		require.Equal(t, leastTimeout(t, d, survived), cells[2], line)
		require.Equal(t, leastTimeout(t, d,
			func(timeout time.Duration) time.Duration { return survivedByCommand(t, timeout) }),
			strings.TrimSuffix(cells[3], " |\n"), line)
		interruptions++
	}
	require.Equal(t, 6, interruptions)
}

// leastTimeout is the least documented session timeout that survives an interruption.
func leastTimeout(t *testing.T, interruption time.Duration, survived func(time.Duration) time.Duration) string {
	for _, d := range documentedTimeouts {
		if survived(d) >= interruption {
			return fmt.Sprintf("%.0f s", d.Seconds())
		}
	}
	t.Errorf("no timeout survives %v", interruption)
	return ""
}

// survived is the longest interruption that ends no hold.
func survived(timeout time.Duration) time.Duration {
	return framework.Config{SessionTimeout: timeout}.LongestInterruption()
}

// survivedByCommand is the longest interruption that does not end a command.
func survivedByCommand(t *testing.T, timeout time.Duration) time.Duration {
	grace, err := (&commandRunner{}).killGrace(timeout)
	require.NoError(t, err)
	return survived(timeout) - grace
}

// TestDefaultTimeouts: with a watchdog the default is longer, since it does not delay a take-over
// then. It is short where a command holds nothing.
func TestDefaultTimeouts(t *testing.T) {
	t.Setenv(framework.EnvSessionTimeout, "")
	for line, want := range map[string]time.Duration{
		"lock demo":                        40 * time.Second,
		"elect demo":                       40 * time.Second,
		"lock demo --no-watchdog":          30 * time.Second,
		"lock demo --session-timeout 8s":   8 * time.Second,
		"locks":                            10 * time.Second,
		"register demo a:1":                30 * time.Second,
		"queue take demo":                  40 * time.Second,
		"queue put demo x":                 10 * time.Second,
		"barrier enter demo -n 2 -- true":  40 * time.Second,
		"cron demo @daily -- true":         40 * time.Second,
		"cron demo --no-watchdog --  true": 30 * time.Second,
	} {
		require.Equal(t, want, timeoutOf(t, line), line)
	}
	t.Setenv(framework.EnvSessionTimeout, "12s")
	require.Equal(t, 12*time.Second, timeoutOf(t, "lock demo"))
}

// timeoutOf is the session timeout that a command line asks for.
func timeoutOf(t *testing.T, line string) time.Duration {
	cmd, args, err := newRoot(ownStreams).Find(strings.Fields(line))
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags(args))
	var c connectionFlags
	c.readFrom(cmd)
	cfg, err := c.clientConfig(cmd)
	require.NoError(t, err)
	return cfg.WithDefaults().SessionTimeout
}

// readFrom takes over the flag that the test is about.
func (c *connectionFlags) readFrom(cmd *cobra.Command) {
	_ = c.sessionTimeout.Set(cmd.Flag("session-timeout").Value.String()) // empty if not given
}

// TestTheRootBelongsToItsServers: a root at the end of LOCKSTEP_SERVERS is not that of the servers
// of --zk.
func TestTheRootBelongsToItsServers(t *testing.T) {
	for _, c := range []struct{ servers, root, line, want string }{
		{"prod:2181/app", "", "locks", "/app"},
		{"prod:2181/app", "", "locks --zk 127.0.0.1:2181", ""},
		{"prod:2181/app", "", "locks --zk 127.0.0.1:2181/other", "/other"},
		{"prod:2181/app", "", "locks --zk 127.0.0.1:2181 --root /mine", "/mine"},
		{"prod:2181", "/team", "locks --zk 127.0.0.1:2181", "/team"},
	} {
		t.Setenv(framework.EnvServers, c.servers)
		t.Setenv(framework.EnvRoot, c.root)
		cmd, args, err := newRoot(ownStreams).Find(strings.Fields(c.line))
		require.NoError(t, err)
		require.NoError(t, cmd.ParseFlags(args))
		flags := connectionFlags{servers: cmd.Flag("zk").Value.String(), root: cmd.Flag("root").Value.String()}
		cfg, err := flags.clientConfig(cmd)
		require.NoError(t, err, c.line)
		require.Equal(t, c.want, cfg.Root, c.line)
	}
}
