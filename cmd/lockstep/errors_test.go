//go:build unix

package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	require.NoError(t, err)
	return n
}

func TestUsageErrors(t *testing.T) {
	s := newStage(t)
	for _, line := range []string{
		"bogus",
		"lock", "lock --", "lock a b", "lock demo --", "lock demo true", "lock a a -- true",
		"lock a /lockstep/locks/a -- true", "lock a / -- true",
		"lock demo --bogus", "lock demo -n -w 1", "lock demo -w 0", "lock demo -w -1s", "lock demo -w soon",
		"lock demo -w NaN", "lock demo -w 1e300",
		"lock demo -s -x", "lock demo -s --permits 2", "lock demo -x --permits 2", "lock demo --permits 0",
		"lock demo --permits x", "lock demo --permits 20000",
		"lock demo --count 1", "lock demo --permits 2 --count 3", "lock demo --permits 2 --count 0",
		"lock demo --max-hold 0", "lock demo --max-hold soon",
		"locks a b", "locks a//b", "locks -- true x", "locks --bogus",
		"lock demo -E 256", "lock demo -E -1", "lock demo -E x",
		"lock demo --kill-after 0", "lock demo --kill-after -1s", "lock demo --kill-after 1h -- true",
		"lock demo --session-timeout 6s --kill-after 2s -- true",
		"lock demo --connect-timeout 0", "lock demo --session-timeout 0", "lock demo --session-timeout -1s",
		"lock demo --zk , -- true", "lock demo --zk host:port", "lock demo --zk :2181",
		"lock demo --root relative", "lock demo --root= ",
		"lock / -- true", "lock a//b", "lock a/", "lock ../a", "lock /a/./b",
		"elect", "elect demo --observe -- true", "elect demo --observe --id x", "elect demo --id= ",
		"cron demo", "cron demo @hourly", "cron @hourly -- true", "cron demo * * * * * -- true",
		"cron demo @every-5s -- true", "cron demo @reboot -- true",
		"cron demo @hourly --tz Mars -- true", "cron demo @hourly --tz Local -- true",
		"dev x", "dev --listen nowhere", "dev --bogus",
	} {
		code, out, errs := s.run(strings.Fields(line)...)
		require.Equal(t, 64, code, line)
		require.Empty(t, out, line)
		require.Regexp(t, `(^|\n)lockstep: .+\nlockstep: see lockstep.* --help\n$`, errs, line)
	}
	s.left()
}

func TestBadEnvironment(t *testing.T) {
	s := newStage(t)
	for variable, value := range map[string]string{
		"LOCKSTEP_SESSION_TIMEOUT": "soon", "LOCKSTEP_ROOT": "relative", "LOCKSTEP_SERVERS": "host:port",
		"LOCKSTEP_AUTH": "nocolon",
	} {
		other := *s
		other.env = append(s.env[:len(s.env):len(s.env)], variable+"="+value)
		code, _, errs := other.run("lock", "demo", "--", "true")
		require.Equal(t, 64, code, variable)
		require.Contains(t, errs, "lockstep: ")
	}
}

func TestCommandsThatCannotBeRun(t *testing.T) {
	s := newStage(t)
	require.NoError(t, os.WriteFile(s.file("plain"), []byte("text"), 0o644))
	require.NoError(t, os.WriteFile(s.file("garbled"), []byte("text"), 0o755))
	for _, subcommand := range [][]string{{"lock", "demo"}, {"elect", "demo"}, {"cron", "demo", "@hourly"}} {
		code, _, errs := s.run(append(subcommand, "--", "no-such-command-here")...)
		require.Equal(t, 127, code)
		require.Contains(t, errs, "no-such-command-here")
		code, _, errs = s.run(append(subcommand, "--", s.file("plain"))...)
		require.Equal(t, 126, code)
		require.Contains(t, errs, "permission denied")
	}
	code, _, errs := s.run("lock", "demo", "--", s.file("garbled"))
	require.Equal(t, 126, code, "found out only when it is run")
	require.Contains(t, errs, "exec format error")
	s.left()
}

func TestNoSession(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never says a word
	require.NoError(t, err)
	defer silent.Close()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, refusing.Close())
	s := onServers(t, refusing.Addr().String())
	for _, subcommand := range [][]string{{"lock", "demo", "-w", "1h"}, {"lock", "a", "b"}, {"elect", "demo"},
		{"cron", "demo", "@hourly"}} {
		refused := false
		for timeout := 300 * time.Millisecond; !refused; timeout *= 2 { // on a slow machine, the dial takes longer
			code, out, errs := s.run(append(subcommand, "--connect-timeout", timeout.String(), "--", "echo", "ran")...)
			require.Equal(t, 69, code)
			require.Empty(t, out)
			require.Contains(t, errs, "no session within "+timeout.String())
			require.Contains(t, errs, "see what is wrong with each server: lockstep doctor\n", "they were named")
			refused = strings.Contains(errs, refusing.Addr().String()+": ") && strings.Contains(errs, "refused")
		}
	}
	code, _, errs := s.run("locks", "--connect-timeout", "0.3", "--zk", s.servers)
	require.Equal(t, 69, code)
	require.Contains(t, errs, "lockstep doctor --zk "+s.servers+"\n")
	s.env = append(s.env, framework.EnvServers+"=")
	if _, err := net.Dial("tcp", cli.DefaultServers); err != nil { // otherwise a server of the user's answers
		_, _, errs = s.run("locks", "--connect-timeout", "0.3")
		require.Contains(t, errs,
			"name the servers with --zk or LOCKSTEP_SERVERS, or start one to try things: lockstep dev")
	}

	s = onServers(t, refusing.Addr().String()+","+silent.Addr().String())
	code, _, errs = s.run("lock", "demo", "--connect-timeout", "4", "--session-timeout", "1s") // each has its turn
	require.Equal(t, 69, code)
	require.Contains(t, errs, refusing.Addr().String()+": ")
	require.Contains(t, errs, "refused")
	require.Contains(t, errs, silent.Addr().String()+": ")
}

func TestNoPermission(t *testing.T) {
	s := newStage(t)
	owner, err := framework.Connect(t.Context(), framework.Config{
		Servers: []string{s.servers}, Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("owner:secret")}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, owner.Close(t.Context())) }()
	require.NoError(t, owner.MakeDirs(t.Context(), "/theirs"))
	for _, subcommand := range [][]string{{"lock", "/theirs"}, {"elect", "/theirs"}, {"cron", "/theirs", "@hourly"}} {
		code, _, errs := s.run(append(subcommand, "--", "true")...)
		require.Equal(t, 77, code, subcommand)
		require.Contains(t, errs, "no permission")
		require.Contains(t, errs, "lockstep connected without credentials: give credentials in LOCKSTEP_AUTH_FILE")
	}
	before := s.env
	s.env = append(before[:len(before):len(before)], "LOCKSTEP_AUTH=other:hidden")
	code, _, errs := s.run("lock", "/theirs", "--", "true")
	require.Equal(t, 77, code)
	require.Contains(t, errs, "lockstep connected with the credentials digest:other: ")
	require.NotContains(t, errs, "hidden")
	s.env = append(before, "LOCKSTEP_AUTH=owner:secret")
	code, _, _ = s.run("lock", "/theirs", "--", "true")
	require.Equal(t, 0, code)
}

// TestAMistypedSubcommandIsAUsageError of each command that does nothing by itself.
func TestAMistypedSubcommandIsAUsageError(t *testing.T) {
	s := onServers(t, "127.0.0.1:1")
	for _, group := range newRoot(ownStreams).Commands() {
		if !group.HasSubCommands() || group.Args == nil || group.Args(group, []string{"mistyped"}) == nil {
			continue // its argument is a NAME
		}
		code, out, errs := s.run(group.Name(), "mistyped", "mails", "--", "./send.sh")
		require.Equal(t, cli.ExitUsage, code, group.Name())
		require.Empty(t, out, group.Name())
		require.Contains(t, errs, "mistyped", group.Name())
		s.ok(group.Name()) // its help
	}
}

// TestTheOthersAreShownBesideWhatMayNotBeRead and the exit code tells of the permission.
func TestTheOthersAreShownBesideWhatMayNotBeRead(t *testing.T) {
	s := newStage(t)
	everybody := client(t, s)
	ann := connectAs(t, s, "", "ann:secret", framework.CreatorOnlyACL()...)
	for _, dir := range []string{cli.LocksDir, cli.ElectionsDir, cli.QueuesDir, cli.GroupsDir, cli.ServicesDir} {
		require.NoError(t, everybody.MakeDirs(t.Context(), dir+"/open"))
		require.NoError(t, ann.MakeDirs(t.Context(), dir+"/private/x"))
	}
	for _, args := range [][]string{{"members"}, {"services"}} {
		for _, format := range []string{"", "--json"} {
			code, out, errs := s.run(strings.Fields(args[0] + " " + format)...)
			require.Equal(t, cli.ExitNoPermission, code, args)
			require.Contains(t, out, "open", args)
			require.NotContains(t, out, "private", args)
			require.Contains(t, errs, "/private: no permission", args)
			require.Contains(t, errs, "give credentials in LOCKSTEP_AUTH_FILE", args)
		}
	}
	for _, view := range []string{"locks", "elections", "queues"} {
		for _, format := range []string{"--once", "--json"} {
			code, _, errs := s.run("top", format, "--view", view)
			require.Equal(t, cli.ExitNoPermission, code, "%s: %s", view, errs)
			require.Contains(t, errs, "/private: no permission", view)
		}
	}
}

func TestAnUnknownSubcommandIsToldInOneLine(t *testing.T) {
	root := newRoot(ownStreams)
	root.SetArgs([]string{"lokc"})
	require.EqualError(t, inOneSentence(root.Execute()),
		`unknown command "lokc" for "lockstep"; did you mean lock or locks?`)
}
