//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestWatchPrintsChanges(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	ctx := t.Context()
	require.NoError(t, c.MakeDirs(ctx, "/app"))
	w := s.start("watch", "/app", "--json")
	s.until("the beginning", func() bool { return strings.Contains(read(w.err), "watching 1 nodes at and below /app") })
	require.NoError(t, c.Create(ctx, "/app/x", []byte("one"), framework.Persistent))
	v := decode(t, w.line(0))
	require.Equal(t, []any{"created", "/app/x", "one"}, []any{v["event"], v["path"], v["data"]})
	_, err := c.Set(ctx, "/app/x", []byte{0xff, 0}, framework.AnyVersion)
	require.NoError(t, err)
	v = decode(t, w.line(1))
	require.Equal(t, []any{"changed", "/wA=", 1.0}, []any{v["event"], v["data_base64"], v["version"]})

	plain := s.start("watch", "/app")
	s.until("the beginning", func() bool { return strings.Contains(read(plain.err), "watching 2 nodes") })
	_, err = c.Multi(ctx, framework.DeleteOp("/app/x", framework.AnyVersion),
		framework.CreateOp("/app/x", []byte("two"), framework.Persistent))
	require.NoError(t, err)
	v = decode(t, w.line(2))
	require.Equal(t, []any{"created", "it was deleted and created again", "two"},
		[]any{v["event"], v["text"], v["data"]})
	require.True(t, strings.HasSuffix(plain.line(0), "created  /app/x it was deleted and created again: two"),
		plain.line(0))
	plain.signal(syscall.SIGTERM)
	require.Equal(t, 0, plain.wait())

	s.expire()
	require.Equal(t, "missed", decode(t, w.line(3))["event"])
	c = client(t, s)
	require.NoError(t, c.Create(ctx, "/app/x/below", nil, framework.Persistent))
	require.Equal(t, "/app/x/below", decode(t, w.line(4))["path"])
	require.NoError(t, c.Delete(ctx, "/app/x/below", framework.AnyVersion))
	require.Equal(t, "deleted", decode(t, w.line(5))["event"])

	few := s.start("watch", "/app", "--most", "2")
	s.until("the beginning", func() bool { return strings.Contains(read(few.err), "watching 2 nodes") })
	require.NoError(t, c.Create(ctx, "/app/y\u202e", []byte("\x1b[2J"), framework.Persistent))
	require.Contains(t, few.line(0), "left out")
	require.Contains(t, few.line(0), `"/app/y\u202e"`)
	require.NotContains(t, read(few.out)+read(w.out), "\x1b")
	require.NotContains(t, read(few.out)+read(w.out), "\u202e")
}

// TestAHolderIsAskedToLetGo has a command that is told, and one that ends.
func TestAHolderIsAskedToLetGo(t *testing.T) {
	s := newStage(t)
	stays := s.start("lock", "a", "--", "sh", "-c", "echo begun; exec sleep 1000")
	ends := s.start("lock", "b", "--yield", "--", "sh", "-c",
		"trap 'echo asked; exit 3' TERM; echo begun; while :; do sleep 0.1; done")
	require.Equal(t, "begun", stays.line(0))
	require.Equal(t, "begun", ends.line(0))
	for _, name := range []string{"a", "b"} {
		code, _, errs := s.run("revoke", name)
		require.Zero(t, code, errs)
	}
	require.Equal(t, 3, ends.wait(), "the command's own code")
	require.Equal(t, "asked", ends.line(1))
	s.until("the notice", func() bool {
		return strings.Contains(read(stays.err),
			"others ask for it; lockstep keeps it")
	})
	select {
	case <-stays.ended:
		require.Fail(t, "it ended")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestWordsForShells(t *testing.T) {
	for text, want := range map[string]string{
		"/lockstep/locks/a:1@b+c,d-e_F.9": "/lockstep/locks/a:1@b+c,d-e_F.9", "": "''", "-n": "'-n'", "a b": "'a b'",
		"$(f)": "'$(f)'", "it's": `'it'\''s'`, "`f`": "'`f`'",
	} {
		require.Equal(t, want, cli.ShellWord(text))
	}
}

// TestNamesAreCompletedFromTheServers, unless a shell would run something, or lockstep take the
// name for a flag.
func TestNamesAreCompletedFromTheServers(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	for _, path := range []string{"/lockstep/locks/team/deploy", "/lockstep/locks/db", "/lockstep/locks/\u202e",
		"/lockstep/locks/team/d$(touch${IFS}f)", "/lockstep/locks/team/-n", "/lockstep/locks/`f`",
		"/lockstep/locks/-rf", "/lockstep/locks/a b", "/lockstep/locks/a'b",
		"/lockstep/locks/a;b", "/lockstep/locks/a|b", "/lockstep/locks/a&b", "/lockstep/locks/~", "/lockstep/locks/a=b",
		"/lockstep/locks/ä", "/lockstep/queues/mails", "/lockstep/services/billing", "/lockstep/ids/orders",
		"/apps/shop"} {
		require.NoError(t, c.MakeDirs(t.Context(), path))
	}
	for line, want := range map[string][]string{
		"locks ": {"db", "team"}, "lock te": {"team"}, "revoke team/": {"team/-n", "team/deploy"},
		"queue take ": {"mails"}, "locks /apps/": {"/apps/shop"}, "locks /none/": nil,
		"services ": {"billing"}, "register ": {"billing"}, "enable ": {"billing"}, "disable ": {"billing"},
		"id next ": {"orders"}, "id worker ": {"orders"},
	} {
		s.offers(want, strings.Split(line, " ")...)
	}
	began := time.Now()
	code, out, errs := s.run("__complete", "locks", "--zk", "127.0.0.1:1", "")
	require.Zero(t, code)
	require.Equal(t, ":6\n", out)
	require.NotContains(t, errs, "refused")
	require.Less(t, time.Since(began), patience)
}

// TestValuesOfFlagsAreCompleted where only a few are possible. Files are offered for flags of files
// only.
func TestValuesOfFlagsAreCompleted(t *testing.T) {
	s := newStage(t)
	for line, want := range map[string]string{
		"lock x --deadlock ": "fail off report :4", "cron x --misfire ": "latest all skip :4",
		"cron x --overlap ": "forbid allow replace :4",
		"locks --sort ":     "path waiting age :4", "top --view ": "locks elections jobs queues workflows :4",
		"top --view queues --sort ": "items dead path :4", "top --view nothing --sort ": ":4",
		"workflows --state ": "active waiting done failed cancelled :4",
		"lock x --max-hold ": ":4", "check --held-item ": ":4", "monitor --on-event ": ":0",
		"workflows start kind id --file ": ":0",
		"lock x -- ":                      ":0", "man ": ":16",
	} {
		require.Equal(t, want, strings.Join(
			strings.Fields(s.ok(append([]string{"__complete"}, strings.Split(line, " ")...)...)), " "), line)
	}
	require.Subset(t, s.offered("check", "--without", ""), []string{"deadlock", "held item"})
}

// TestEachNameIsCompleted: the first argument of each command that takes a NAME, except for
// commands whose NAMEs nothing on the servers has.
func TestEachNameIsCompleted(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, word := range []string{" NAME", " [NAME"} {
			_, arguments, _ := strings.Cut(cmd.Use, " ")
			require.False(t, strings.HasPrefix(" "+arguments, word) && cmd.ValidArgsFunction == nil, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot(ownStreams))
}

func TestTheManualHasEachCommandAndFlag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	require.Zero(t, runCommandLine(t.Context(), ownStreams, []string{"man", dir}))
	pages := 0
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		require.NoError(t, err)
		pages++
		plain := strings.ReplaceAll(string(text), `\`, "")
		require.Contains(t, plain, strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
		for flag := range strings.FieldsSeq(cmd.LocalFlags().FlagUsages()) {
			if strings.HasPrefix(flag, "--") && !strings.ContainsAny(flag, ",.;:()") {
				require.Contains(t, plain, flag, cmd.CommandPath())
			}
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check(newRoot(ownStreams))
	require.Greater(t, pages, 40)
}

// TestWatchGoesOnPastNodesItMayNotRead: one private node does not hide the others.
func TestWatchGoesOnPastNodesItMayNotRead(t *testing.T) {
	s := newStage(t)
	c := s.connected()
	require.NoError(t, c.MakeDirs(t.Context(), "/app/open"))
	secret, err := framework.New(framework.Config{
		Servers: strings.Split(s.servers, ","),
		Auth:    []framework.Credential{{Scheme: "digest", Auth: []byte("ann:secret")}},
		ACL:     framework.CreatorOnlyACL(),
	})
	require.NoError(t, err)
	secret.Start()
	defer secret.Close(t.Context())
	require.NoError(t, secret.Create(t.Context(), "/app/private", nil, framework.Persistent))
	p := s.start("watch", "/app")
	s.until("the watches", func() bool { return strings.Contains(read(p.err), "watching 2 nodes") })
	require.Equal(t, 1, strings.Count(read(p.err),
		"no permission to read /app/private: it and the nodes below it are not watched"))
	require.NoError(t, c.Create(t.Context(), "/app/open/x", nil, framework.Persistent))
	s.until("the change", func() bool { return strings.Contains(read(p.out), "/app/open/x") })
	p.signal(syscall.SIGTERM)
	p.wait()
	code, _, errs := s.run("watch", "/app/private")
	require.Equal(t, 77, code)
	require.Contains(t, errs, "/app/private: no permission")
}
