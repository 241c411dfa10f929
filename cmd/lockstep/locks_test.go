//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// cells runs a command line that prints a table, and returns its lines' cells.
func (s *stage) cells(args ...string) (rows [][]string) {
	s.t.Helper()
	code, out, errs := s.run(args...)
	require.Equal(s.t, 0, code, errs)
	require.Empty(s.t, errs)
	require.NotContains(s.t, out, "\x1b", "no terminal")
	for line := range strings.Lines(out) {
		var row []string
		for _, c := range strings.Split(strings.TrimSpace(line), "  ") {
			if c != "" {
				row = append(row, strings.TrimSpace(c))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// as makes processes that are started from now on call themselves so.
func (s *stage) as(name string) *stage {
	other := *s
	other.env = append(s.env[:len(s.env):len(s.env)], "LOCKSTEP_IDENTITY="+name)
	return &other
}

func TestLocksListsAll(t *testing.T) {
	s := newStage(t)
	s.as("a").holds("deploy")
	s.as("b").start("lock", "deploy")
	s.queue("/lockstep/locks/deploy", 2)
	s.as("a").holds("-s", "team/catalogue")
	s.as("b").holds("-s", "team/catalogue")
	s.as("a").holds("--permits", "3", "--count", "2", "gpu")
	s.as("a").start("elect", "billing").line(0)
	s.as("me\n\x1b[31m").holds("odd")

	rows := s.cells("locks")
	require.Equal(t, []string{"LOCK", "KIND", "HELD BY", "ASKED", "WAITING"}, rows[0])
	for _, row := range rows[1:] {
		require.Regexp(t, `^(\d+s|just) (ago|now)$`, row[3])
		row[3] = ""
	}
	below := [][]string{
		{"/lockstep/locks/deploy", "mutex", "a", "", "1"},
		{"/lockstep/locks/gpu", "semaphore 2/3", "a", "", "-"},
		{"/lockstep/locks/odd", "mutex", `"me\n\x1b[31m"`, "", "-"},
		{"/lockstep/locks/team/catalogue", "read-write", "a (read) +1", "", "-"},
	}
	require.Equal(t, below, rows[1:])

	rows = s.cells("locks", "/")
	require.Len(t, rows, 6)
	require.Equal(t, []string{"/lockstep/elections/billing", "election", "a"}, rows[1][:3])
	require.Len(t, s.cells("locks", "team"), 2, "a directory")
	require.Len(t, s.cells("locks", "--root", "/lockstep", "/locks"), 5)
	watched := slices.DeleteFunc(s.zk.Watches(),
		func(w zktest.Watch) bool { return !strings.HasPrefix(w.Path, "/lockstep/locks/") })
	require.Len(t, watched, 7,
		"that of who waits, and those of holders, who listen to lockstep revoke; the look leaves none")
}

func TestLocksShowsOneInDetail(t *testing.T) {
	s := newStage(t)
	holder := s.as("a").holds("demo")
	token := holder.fields(0)[1]
	s.as("b").start("lock", "demo")
	s.queue("/lockstep/locks/demo", 2)
	c := client(t, s)
	require.NoError(t, c.Create(t.Context(), "/lockstep/locks/demo/_c_1-lock-0000000007", []byte("10.0.0.1"),
		framework.Ephemeral))
	require.NoError(t, c.Create(t.Context(), "/lockstep/locks/demo/readme", []byte("a text"), framework.Persistent))

	rows := s.cells("locks", "demo")
	require.Equal(t, []string{"/lockstep/locks/demo: mutex, 2 waiting"}, rows[0])
	require.Equal(t, []string{"OWNER", "HOST", "PID", "ASKED", "TOKEN", "SESSION", "NODE"}, rows[1])
	require.Equal(t, []string{"holds", "a"}, rows[2][:2])
	require.Equal(t, token, rows[2][5])
	require.Regexp(t, `^_c_.*-lock-0000000000$`, rows[2][7])
	require.Equal(t, []string{"waits 1", "b"}, rows[3][:2])
	require.Equal(t, []string{"waits 2", "10.0.0.1"}, rows[4][:2])
	require.Equal(t, []string{"other", "a text"}, rows[5][:2])
	require.Equal(t, "0x0", rows[5][4])
}

func TestLocksJSON(t *testing.T) {
	s := newStage(t)
	a := s.as("a").holds("--json", "a")
	s.as("b").holds("-x", "b")
	for _, args := range [][]string{{"locks", "--json"}, {"locks", "a", "--json"}} {
		code, out, errs := s.run(args...)
		require.Equal(t, 0, code)
		require.Empty(t, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 4-len(args))
		var r locks.Report
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &r))
		require.Equal(t, "/lockstep/locks/a", r.Path)
		require.Equal(t, locks.MutexLock, r.Kind)
		require.Equal(t, "a", r.Holders[0].Owner)
		require.Equal(t, decode(t, a.line(0))["session"], r.Holders[0].Session.String())
		require.NotNil(t, decode(t, lines[0])["waiters"], "a list, never null")
	}
	code, out, errs := s.run("locks", "none", "--json")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "no locks at or below /lockstep/locks/none: there is no such node")
}

func TestNoLocks(t *testing.T) {
	s := newStage(t)
	for args, where := range map[string]string{"locks": "/lockstep/locks", "locks /": "/"} {
		code, out, errs := s.run(strings.Fields(args)...)
		require.Equal(t, 0, code)
		require.Empty(t, out)
		require.Equal(t, "lockstep: no locks at or below "+where+"\n", errs)
	}
}

// TestANameWithoutNodesGivesExitCodeOne: who mistypes a NAME must not believe that nobody has the
// lock. That does not depend on whether a node of it is left.
func TestANameWithoutNodesGivesExitCodeOne(t *testing.T) {
	s := newStage(t)
	require.NoError(t, client(t, s).MakeDirs(t.Context(), "/lockstep/locks/free"))
	for line, want := range map[string]string{
		"locks none": "no locks at or below /lockstep/locks/none: there is no such node\nlockstep: see which there " +
			"are: lockstep locks\n",
		"locks free":     "no locks at or below /lockstep/locks/free\n",
		"elections none": "no elections at or below /lockstep/elections/none: there is no such node\n",
		"barriers none":  "no barriers at or below /lockstep/barriers/none: there is no such node\n",
		"latch ls none":  "no latches at or below /lockstep/latches/none: there",
		"check /none":    "there is no node /none: nothing was checked\nlockstep: check ROOT and --root\n",
		"queue ls /none": "no queues at or below /none: there is no such node\nlockstep: see which there are: " +
			"lockstep queue ls\n", "queue ls /lockstep/locks --json": "no queues at or below /lockstep/locks\n",
		"locks --deadlocks none": "there is no node /lockstep/locks/none: no lock was looked at\nlockstep: see which there are: lockstep locks\n",
		"check --root /none":     "there is no node /: nothing was checked",
		"check /none --json":     "there is no node /none",
	} {
		code, out, errs := s.run(strings.Fields(line)...)
		require.Equal(t, 1, code, line)
		require.Empty(t, out, line)
		require.Contains(t, errs, want, line)
	}
	for _, line := range []string{"locks", "locks /", "elections", "elections /", "barriers", "latch ls", "check",
		"check /lockstep/locks/free", "gates none", "queue ls", "queue ls /", "locks --deadlocks",
		"locks --deadlocks free", "locks --deadlocks /"} {
		code, _, errs := s.run(strings.Fields(line)...)
		require.Zero(t, code, "%s: %s", line, errs)
	}
	holder := s.holds("busy")
	code, out, errs := s.run("locks", "busy", "--json")
	require.Zero(t, code, errs)
	require.NotEmpty(t, out)
	code, _, errs = s.run("locks", "/lockstep/locks", "--owner", "nobody")
	require.Zero(t, code, "the flags chose none of those that are there: %s", errs)
	holder.release()
}

func TestLocksThatMayNotBeRead(t *testing.T) {
	s := newStage(t)
	s.holds("/b/ours")
	theirs := *s
	theirs.env = append(s.env[:len(s.env):len(s.env)], "LOCKSTEP_AUTH=owner:secret")
	theirs.holds("/a/theirs")
	code, out, errs := s.run("locks", "/")
	require.Equal(t, 77, code)
	require.Contains(t, errs, "/a: no permission")
	require.Contains(t, errs, "lockstep connected without credentials: give credentials in LOCKSTEP_AUTH_FILE")
	require.Contains(t, out, "/b/ours", "the others are listed")
	code, out, errs = s.run("locks", "/a")
	require.Equal(t, 77, code)
	require.Empty(t, out)
	require.Contains(t, errs, "LOCKSTEP_AUTH_FILE")
	require.Len(t, theirs.cells("locks", "/"), 3)
}

// TestAFreeSemaphoreIsHeldByNobody: the record of its permits stays.
func TestAFreeSemaphoreIsHeldByNobody(t *testing.T) {
	s := newStage(t)
	s.granted("--permits", "3", "pool/gpu")
	for _, name := range []string{"pool/gpu", "pool"} {
		code, out, errs := s.run("locks", name)
		require.Equal(t, cli.ExitNotObtained, code, name)
		require.Contains(t, out, "semaphore 0/3", name)
		require.NotEmpty(t, errs, name)
	}
}

func TestLocksEndsWithASignal(t *testing.T) {
	s := newStage(t)
	s.zk.Freeze()
	p := s.start("locks", "--connect-timeout", "1h")
	s.until("a connection", func() bool { return s.zk.Connections() == 1 })
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	s.zk.Thaw()
}

func TestAgesAreFormatted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 900 * time.Millisecond: "just now", time.Second: "1s ago", 59 * time.Second: "59s ago",
		60 * time.Second:              "1m00s ago",
		3*time.Minute + 7*time.Second: "3m07s ago", 5*time.Hour + 3*time.Minute + time.Second: "5h03m ago",
		50 * time.Hour: "2d02h ago",
	} {
		require.Equal(t, want, cli.FormatAge(d))
	}
}

// A script that goes on after exit code 0 must not take what was cut short for done, or for nothing
// wrong.
func TestACommandThatASignalCutsShortDoesNotEndWithZero(t *testing.T) {
	s := newStage(t)
	s.zk.Freeze()
	defer s.zk.Thaw()
	var all []*process
	for _, args := range [][]string{
		{"check"}, {"doctor"}, {"jobs"}, {"jobs", "--check"}, {"jobs", "trigger", "report"}, {"runs", "report"},
		{"clean", "-y"}, {"config", "get", "limits"}, {"config", "history", "limits"},
		{"config", "set", "limits", "1"}, {"id", "next", "orders"}, {"revoke", "deploy"},
		{"release", "deploy", "--node", "x", "-y"}, {"elections"}, {"elections", "transfer", "billing", "x"},
		{"members", "web"}, {"members", "drain", "web", "web-1"}, {"services"}, {"disable", "billing", "one"},
		{"queue", "ls"}, {"queue", "put", "mails", "x"}, {"barriers"}, {"gates"},
		{"top", "--once"}, {"workflows"}, {"workflows", "cancel", "order-42"},
	} {
		all = append(all, s.start(append(args, "--connect-timeout", "1h")...))
	}
	s.until("connections", func() bool { return s.zk.Connections() >= len(all) })
	for _, p := range all {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range all {
		require.Equal(t, 143, p.wait(), p.cmd.Args)
	}
}
