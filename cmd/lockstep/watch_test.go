//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
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

	s.expire()
	require.Equal(t, "missed", decode(t, w.line(2))["event"])
	c = client(t, s)
	require.NoError(t, c.Create(ctx, "/app/x/below", nil, framework.Persistent))
	require.Equal(t, "/app/x/below", decode(t, w.line(3))["path"])
	require.NoError(t, c.Delete(ctx, "/app/x/below", framework.AnyVersion))
	require.Equal(t, "deleted", decode(t, w.line(4))["event"])

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
	ends := s.start("lock", "b", "--yield", "--", "sh", "-c", "trap 'echo asked; exit 3' TERM; echo begun; while :; do sleep 0.1; done")
	require.Equal(t, "begun", stays.line(0))
	require.Equal(t, "begun", ends.line(0))
	for _, name := range []string{"a", "b"} {
		code, _, errs := s.run("revoke", name)
		require.Zero(t, code, errs)
	}
	require.Equal(t, 3, ends.wait(), "the command's own code")
	require.Equal(t, "asked", ends.line(1))
	s.until("the notice", func() bool { return strings.Contains(read(stays.err), "others ask for it; the command goes on") })
	select {
	case <-stays.ended:
		require.Fail(t, "it ended")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestNamesAreCompletedFromTheServers(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	for _, path := range []string{"/lockstep/locks/team/deploy", "/lockstep/locks/db", "/lockstep/locks/\u202e", "/lockstep/queues/mails", "/apps/shop"} {
		require.NoError(t, c.MakeDirs(t.Context(), path))
	}
	for line, want := range map[string]string{
		"locks ": "db\nteam\n", "lock te": "team\n", "revoke team/": "team/deploy\n", "queue take ": "mails\n", "locks /apps/": "/apps/shop\n", "locks /none/": "",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		code, out, _ := s.run(args...)
		require.Zero(t, code)
		require.Equal(t, want, strings.Split(out, ":")[0], line)
	}
	began := time.Now()
	code, out, errs := s.run("__complete", "locks", "--zk", "127.0.0.1:1", "")
	require.Zero(t, code)
	require.Equal(t, ":6\n", out)
	require.NotContains(t, errs, "refused")
	require.Less(t, time.Since(began), patience)
}

func TestTheManualTellsOfEachCommandAndFlag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	require.Zero(t, runCommandLine([]string{"man", dir}))
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
	check(newRoot())
	require.Greater(t, pages, 40)
}
