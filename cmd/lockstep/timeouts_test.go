package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// ownStreams are those of the test itself.
var ownStreams = &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}

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
	var c cli.ConnectionFlags
	_ = c.SessionTimeout.Set(cmd.Flag("session-timeout").Value.String()) // empty if not given
	cfg, err := c.ClientConfig(cmd)
	require.NoError(t, err)
	return cfg.WithDefaults().SessionTimeout
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
		flags := cli.ConnectionFlags{Servers: cmd.Flag("zk").Value.String(), Root: cmd.Flag("root").Value.String()}
		cfg, err := flags.ClientConfig(cmd)
		require.NoError(t, err, c.line)
		require.Equal(t, c.want, cfg.Root, c.line)
	}
}
