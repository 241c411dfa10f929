//go:build unix

package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

const limitsNode = "/lockstep/config/limits"

// versionOf is the version of a node's data.
func (s *stage) versionOf(node string) int64 {
	s.t.Helper()
	n, exists := s.zk.Node(node)
	require.True(s.t, exists)
	return n.Stat.Mzxid
}

func TestConfigGetAndSet(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("config", "get", "limits")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "no value")
	require.NotContains(t, errs, "refused", "no log lines in front of it")

	code, out, errs = s.run("config", "set", "limits", "rate: 1\n", "--note", "first", "--if", "0")
	require.Equal(t, 0, code, errs)
	require.Empty(t, out)
	first := s.versionOf(limitsNode)
	code, out, _ = s.run("config", "get", "limits")
	require.Equal(t, 0, code)
	require.Equal(t, "rate: 1\n", out, "the bytes as they are")

	in, err := os.Create(s.file("in"))
	require.NoError(t, err)
	defer in.Close()
	_, err = in.WriteString("rate: 2\x1b[2J\xff")
	require.NoError(t, err)
	_, err = in.Seek(0, 0)
	require.NoError(t, err)
	s.in = in
	code, _, errs = s.run("config", "set", "limits", "--if", fmt.Sprint(first))
	require.Equal(t, 0, code, errs)
	s.in = nil
	_, out, _ = s.run("config", "get", "limits", "--json")
	v := decode(t, strings.TrimSpace(out))
	require.Equal(t, limitsNode, v["path"])
	require.Equal(t, float64(s.versionOf(limitsNode)), v["version"])
	require.NotEmpty(t, v["bytes"])

	code, _, errs = s.run("config", "set", "limits", "x", "--if", fmt.Sprint(first))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "the value was changed")
	code, _, _ = s.run("config", "set", "limits", "x", "--if", "-1")
	require.NotZero(t, code)
	s.left()
}

func TestConfigHistoryDiffAndRollback(t *testing.T) {
	s := newStage(t)
	var versions []int64
	for _, value := range []string{"a\nb\nc\n", "a\n\x1b[31mB\nc\n"} {
		code, _, errs := s.run("config", "set", "limits", value, "--note", "note\x1b[2J of "+value[:1])
		require.Equal(t, 0, code, errs)
		versions = append(versions, s.versionOf(limitsNode))
	}
	code, out, _ := s.run("config", "history", "limits")
	require.Equal(t, 0, code)
	require.NotContains(t, out, "\x1b")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[1], fmt.Sprint(versions[1])), out)
	require.Contains(t, lines[1], `a\n\x1b[31mB\nc\n`)
	_, out, _ = s.run("config", "history", "limits", "--json")
	require.NotContains(t, out, "\x1b")
	require.Equal(t, "a\nb\nc\n", decode(t, strings.Split(out, "\n")[1])["text"])

	code, out, _ = s.run("config", "diff", "limits")
	require.Equal(t, 1, code)
	require.Equal(t, "-b\n+\\x1b[31mB\n", out)
	code, out, _ = s.run("config", "diff", "limits", fmt.Sprint(versions[0]), fmt.Sprint(versions[0]))
	require.Equal(t, 0, code)
	require.Empty(t, out)
	_, out, _ = s.run("config", "diff", "limits", fmt.Sprint(versions[0]), "--json")
	require.Equal(t, []any{"b"}, decode(t, strings.TrimSpace(out))["removed"])
	code, _, errs := s.run("config", "diff", "limits", "1")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "version 1")
	code, _, _ = s.run("config", "diff", "limits", "one")
	require.Equal(t, 64, code)

	code, _, errs = s.run("config", "rollback", "limits", fmt.Sprint(versions[0]))
	require.Equal(t, 0, code, errs)
	_, out, _ = s.run("config", "get", "limits")
	require.Equal(t, "a\nb\nc\n", out)
	code, _, _ = s.run("config", "rollback", "limits", "1")
	require.Equal(t, 1, code)
	s.left()
}

func TestConfigWatchPrintsEachChange(t *testing.T) {
	s := newStage(t)
	p := s.start("config", "watch", "limits")
	require.Equal(t, "-", p.line(0))
	code, _, errs := s.run("config", "set", "limits", "a\n\x1b[2J")
	require.Equal(t, 0, code, errs)
	require.True(t, strings.HasSuffix(p.line(1), "\t"+`a\n\x1b[2J`), p.line(1))
	j := s.start("config", "watch", "limits", "--json")
	require.Equal(t, "a\n\x1b[2J", decode(t, j.line(0))["text"])
	for _, watching := range []*process{p, j} {
		watching.signal(syscall.SIGTERM)
		require.Equal(t, 0, watching.wait())
	}
	s.left()
}

func TestConfigEditWritesOverTheVersionThatWasEdited(t *testing.T) {
	s := newStage(t)
	editor := s.file("editor")
	write := func(script string) {
		require.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\n"+script), 0o700))
	}
	s.env = append(s.env, "VISUAL="+editor)
	code, _, errs := s.run("config", "set", "limits", "rate: 1\n")
	require.Equal(t, 0, code, errs)

	write(`exit 0`)
	code, _, errs = s.run("config", "edit", "limits")
	require.Equal(t, 0, code)
	require.Contains(t, errs, "stays as it is")

	write(`sed -i.bak s/1/2/ "$1" && rm "$1.bak"`)
	code, _, errs = s.run("config", "edit", "limits", "--note", "two")
	require.Equal(t, 0, code, errs)
	_, out, _ := s.run("config", "get", "limits")
	require.Equal(t, "rate: 2\n", out)

	write(`touch "$DIR/editing"; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; echo mine > "$1"`)
	p := s.start("config", "edit", "limits")
	require.Eventually(t, func() bool { _, err := os.Stat(s.file("editing")); return err == nil }, patience,
		10*time.Millisecond)
	code, _, errs = s.run("config", "set", "limits", "rate: 3\n")
	require.Equal(t, 0, code, errs)
	touch(t, s.file("go"))
	require.Equal(t, 1, p.wait())
	_, kept, found := strings.Cut(read(p.err), "the edited text is in ")
	require.True(t, found)
	name, _, _ := strings.Cut(kept, "\n")
	require.Equal(t, "mine\n", read(name))
	require.NoError(t, os.Remove(name))

	write(`exit 3`)
	s.env = append(s.env, "TMPDIR="+t.TempDir())
	code, _, errs = s.run("config", "edit", "limits")
	require.NotZero(t, code)
	require.Contains(t, errs, "set VISUAL or EDITOR")
	require.NotContains(t, errs, "the edited text", "nothing was edited")
	left, err := os.ReadDir(strings.TrimPrefix(s.env[len(s.env)-1], "TMPDIR="))
	require.NoError(t, err)
	require.Empty(t, left)
	s.left()
}

// TestASignalEndsAConfigSetThatWaitsForInput from a pipe that stays open.
func TestASignalEndsAConfigSetThatWaitsForInput(t *testing.T) {
	s := newStage(t)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	s.in = in
	p := s.start("config", "set", "limits")
	require.NoError(t, in.Close())
	_, err = out.Write(make([]byte, 256<<10)) // more than the pipe can hold: the command reads
	require.NoError(t, err)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Empty(t, read(p.err))
	s.left()
}

// TestASignalWhileTheReplyIsOutstanding of a write ends the command with the signal's exit code.
func TestASignalWhileTheReplyIsOutstanding(t *testing.T) {
	s := newStage(t)
	cut := map[string]*process{}
	for path, command := range map[string][]string{limitsNode: {"config", "set", "limits", "x"},
		"/lockstep/queues/mails/items/": {"queue", "put", "mails", "x"}} {
		s.ok(command...)
		outstanding := s.zk.DelayReplies(time.Hour,
			zktest.Match{Op: zktest.OpMulti, Path: path, Func: zktest.Request.Writes})
		p := s.start(command...)
		<-outstanding.Hit()
		p.signal(syscall.SIGTERM)
		cut[path] = p
	}
	for path, p := range cut {
		require.Equal(t, 143, p.wait(), path)
	}
}

// TestConfigDiffShowsBytes: lines that JSON would show as equal differ.
func TestConfigDiffShowsBytes(t *testing.T) {
	s := newStage(t)
	v := config.New(s.connected(), limitsNode, codec.Bytes())
	require.NoError(t, v.Set(t.Context(), []byte("a\nx\xfe")))
	require.NoError(t, v.Set(t.Context(), []byte("a\nx\xff")))
	code, out, errs := s.run("config", "diff", "limits", "--json")
	require.Equal(t, 1, code, errs)
	d := decode(t, strings.TrimSpace(out))
	require.Equal(t, []any{base64.StdEncoding.EncodeToString([]byte("x\xfe"))}, d["removed_base64"])
	require.Equal(t, []any{base64.StdEncoding.EncodeToString([]byte("x\xff"))}, d["added_base64"])
}

func TestConfigLs(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("config", "ls")
	require.Equal(t, 0, code)
	require.Empty(t, out)
	require.Contains(t, errs, "no values below /lockstep/config")
	c := s.connected()
	require.NoError(t, config.New(c, limitsNode, codec.Bytes()).Set(t.Context(), []byte("12345")))
	require.NoError(t, config.New(c, "/lockstep/config/team/empty", codec.Bytes()).Set(t.Context(), nil))
	require.NoError(t, c.Create(t.Context(), "/lockstep/config/team/foreign", []byte("x"), framework.Persistent))
	require.NoError(t, c.MakeDirs(t.Context(), "/lockstep/config/none"))
	var rows []string
	for _, row := range s.cells("config", "ls")[1:] {
		rows = append(rows, row[0]+" "+row[len(row)-1])
	}
	require.Equal(t, []string{limitsNode + " 5", "/lockstep/config/team/empty 0", "/lockstep/config/team/foreign 1"},
		rows)
	_, out, _ = s.run("config", "ls", "team", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, float64(s.versionOf("/lockstep/config/team/empty")), decode(t, lines[0])["version"])
}
