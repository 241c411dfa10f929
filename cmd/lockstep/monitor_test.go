//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// plantOrphan makes a node that is a finding as long as it is there.
func plantOrphan(t *testing.T, s *stage, lock string) (node string) {
	c := client(t, s)
	require.NoError(t, c.MakeDirs(t.Context(), lock))
	node = lock + "/_c_00000000-0000-4000-8000-000000000000-lock-0000000000"
	require.NoError(t, c.Create(t.Context(), node, nil, framework.Persistent))
	return node
}

// script writes a program and returns its path.
func (s *stage) script(name, text string) string {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.file(name), []byte("#!/bin/sh\n"+text), 0o755))
	return s.file(name)
}

func TestMonitorTellsBeginAndEnd(t *testing.T) {
	s := newStage(t)
	page := s.script("page.sh",
		`cat >>"$DIR/events"; echo "$LOCKSTEP_EVENT $LOCKSTEP_EVENT_ID $LOCKSTEP_PROBLEM $LOCKSTEP_PATH" >>"$DIR/env"; echo noise`)
	node := plantOrphan(t, s, "/app/lock")
	args := []string{"monitor", "/app", "--interval", "1s", "--json", "--on-event", page}
	first := s.start(args...)
	begin := decode(t, first.line(0))
	require.Equal(t, []any{"begins", "orphan", "/app/lock", node},
		[]any{begin["event"], begin["problem"], begin["path"], begin["node"]})
	second := s.start(args...)
	s.queue("/lockstep/monitors/~app/election", 2)
	s.until("the record", func() bool {
		n, _ := s.zk.Node("/lockstep/monitors/~app/findings")
		return strings.Contains(string(n.Data), `"told":true`)
	})
	first.signal(syscall.SIGKILL)
	first.wait()
	require.NoError(t, client(t, s).Delete(t.Context(), node, framework.AnyVersion))
	end := decode(t, second.line(0))
	require.Equal(t, []any{"ends", begin["id"]}, []any{end["event"], end["id"]},
		"another process tells the end, and no begin")
	require.Positive(t, end["lasted_seconds"])
	s.until("the program", func() bool { return strings.Count(read(s.file("env")), "\n") == 2 })
	require.Equal(t, fmt.Sprintf("begins %s orphan /app/lock\nends %s orphan /app/lock\n", begin["id"], end["id"]),
		read(s.file("env")))
	var kinds []string
	for line := range strings.Lines(read(s.file("events"))) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		kinds = append(kinds, e["event"].(string))
	}
	require.Equal(t, []string{"begins", "ends"}, kinds)
	require.NotContains(t, read(second.out), "noise")
	second.signal(syscall.SIGTERM)
	require.Equal(t, 0, second.wait())
}

// TestMonitorSaysThatNothingIsThereYet: once, and scans what comes.
func TestMonitorSaysThatNothingIsThereYet(t *testing.T) {
	s := newStage(t)
	require.NoError(t, client(t, s).MakeDirs(t.Context(), "/empty"))
	for _, root := range []string{"/none", "/empty"} {
		p := s.start("monitor", root, "--interval", "1s", "--json")
		require.Equal(t, "lockstep: warning: the root has no nodes yet: the monitor scans again at each interval root="+
			root, s.line(p.err, 0))
		node := plantOrphan(t, s, root+"/lock")
		require.Equal(t, node, decode(t, p.line(0))["node"])
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
		require.Equal(t, 1, strings.Count(read(p.err), " yet: "))
	}
}

// TestMonitorPassesNothingHostileOn scans what it prints, and at what the program gets.
func TestMonitorPassesNothingHostileOn(t *testing.T) {
	s := newStage(t)
	plantHostileNodes(t, s)
	page := s.script("page.sh", `{ cat; env | grep ^LOCKSTEP_; } >>"$DIR/got"`)
	for _, asJSON := range []bool{false, true} {
		args := []string{"monitor", "--interval", "1s", "--on-event", page, "--path", fmt.Sprint("/monitors/", asJSON)}
		if asJSON {
			args = append(args, "--json")
		}
		p := s.start(args...)
		p.line(3)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
		checkOutput(t, p, "monitor", args, asJSON, false)
		got := read(s.file("got"))
		require.Contains(t, got, "LOCKSTEP_PROBLEM=")
		require.NotContains(t, got, "\x1b")
		require.NotContains(t, got, "\u202e")
	}
}

// TestMonitorStopsProgramThatHangs: its time is bounded, and so is that of its children.
func TestMonitorStopsProgramThatHangs(t *testing.T) {
	s := newStage(t)
	plantOrphan(t, s, "/app/lock")
	page := s.script("page.sh", `echo $$ >>"$DIR/began"; sleep 1000`)
	// long enough for the program to begin on a busy machine
	p := s.start("monitor", "--interval", "1s", "--begin-after", "1", "--on-event", page, "--on-event-timeout", "3")
	s.until("three attempts", func() bool { return strings.Count(read(s.file("began")), "\n") == 3 })
	s.until("the end of the attempts", func() bool { return strings.Contains(read(p.err), "attempt=3") })
	require.Contains(t, read(p.err), "took longer than 3s")
	for pid := range strings.FieldsSeq(read(s.file("began"))) {
		s.gone(pid)
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
	require.Equal(t, 1, strings.Count(read(p.out), "\n"), "it is printed once: %s", read(p.out))
}

func TestMonitorRefuses(t *testing.T) {
	s := newStage(t)
	for says, args := range map[string][]string{
		"there is no such problem":      {"--without", "x"},
		"the ROOT \"x\" cannot be used": {"x"},
		"WithHysteresis":                {"--begin-after", "0"},
		"WithInterval":                  {"--interval", "0.1"},
		"WithGrowth":                    {"--growth-scans", "0"},
		"WithGrowth: 0":                 {"--growth-items", "0"},
		"WithSessionBytes":              {"--session-bytes", "0"},
		"invalid path":                  {"--path", "x"},
	} {
		code, _, errs := s.run(append([]string{"monitor"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, says)
	}
	code, _, errs := s.run("monitor", "--on-event", "/nowhere/page.sh")
	require.Equal(t, cli.ExitNoCommand, code, errs)
	code, out, _ := s.run("__complete", "monitor", "--without", "man")
	require.Zero(t, code)
	require.Contains(t, out, "many waiters")
	code, out, _ = s.run("__complete", "monitor", "/lock")
	require.Zero(t, code)
	require.Contains(t, out, ":", "no server, or nothing below: no error")
}

// TestMonitorJudgesSessionsAndGrowthAsItsFlagsSay: with the defaults neither is a finding.
func TestMonitorJudgesSessionsAndGrowthAsItsFlagsSay(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "a")
	holder.line(0)
	s.ok("queue", "put", "mails", "1")
	p := s.start("monitor", "--interval", "1s", "--json", "--begin-after", "1", "--session-bytes", "10",
		"--growth-scans", "1", "--growth-items", "2")
	require.Equal(t, "large session", decode(t, p.line(0))["problem"])
	s.ok("queue", "put", "mails", "2") // after the first scan
	s.until("the growing queue", func() bool {
		return strings.Contains(read(p.out), `"problem":"growing queue","path":"/lockstep/queues/mails"`)
	})
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
	holder.release()
}
