//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestBarriersAreShown(t *testing.T) {
	s := newStage(t)
	_, _, errs := s.run("barriers")
	require.Contains(t, errs, "no barriers at or below /lockstep/barriers")
	a := s.start("barrier", "enter", "phase", "-n", "3")
	s.members(cli.BarriersDir+"/phase", 1)
	b := s.start("barrier", "enter", "phase", "-n", "3")
	s.members(cli.BarriersDir+"/phase", 2)
	require.Regexp(t, `phase +3 +0 +2 +1\n`, s.ok("barriers"))
	detail := s.ok("barriers", "phase")
	require.Contains(t, detail, "/lockstep/barriers/phase: 3 enter together; round 0, nobody inside; 2 wait, 1 missing")
	require.Regexp(t, `waits +\S+-\d+ +(just now|\d+s ago) +0x`, detail)
	one := decode(t, s.ok("barriers", "phase", "--json"))
	require.Len(t, one["waiting"], 2)
	require.Equal(t, 1.0, one["missing"])
	for _, p := range []*process{a, b} {
		p.signal(syscall.SIGTERM)
		p.wait()
	}

	inside := s.start("barrier", "enter", "alone", "-n", "1", "--", "sh", "-c", "echo in; sleep 1000")
	inside.line(0)
	require.Len(t, decode(t, s.ok("barriers", "alone", "--json"))["inside"], 1)
	require.Contains(t, s.ok("barriers", "alone"), "round 1, 1 inside, 0 left or died; 0 wait")
	inside.signal(syscall.SIGTERM)
	inside.wait()
}

func TestGatesAreShown(t *testing.T) {
	s := newStage(t)
	_, _, errs := s.run("gates")
	require.Contains(t, errs, "no gates that are up at or below /lockstep/gates")
	s.ok("gate", "raise", "maintenance")
	held := s.start("gate", "raise", "migration", "--", "sh", "-c", "echo up; sleep 1000")
	held.line(0)
	list := s.ok("gates")
	require.Regexp(t, `maintenance .* it is lowered\n`, list)
	require.Regexp(t, `migration .* session 0x[0-9a-f]+ ends\n`, list)
	require.Regexp(t, `maintenance .* it is lowered\n`, s.ok("gates", "maintenance"))
	one := decode(t, s.ok("gates", "migration", "--json"))
	require.NotEmpty(t, one["raised_by"].(map[string]any)["session"])
	s.ok("latch", "count", "started", "-n", "2", "--id", "web-1")
	require.NotContains(t, s.ok("gates", "/lockstep"), "started", "a latch is no gate")
	held.signal(syscall.SIGTERM)
	held.wait()
	_, _, errs = s.run("gates", "migration")
	require.Contains(t, errs, "no gates that are up at or below /lockstep/gates/migration")
}

func TestLatchCountsWaitsAndIsShown(t *testing.T) {
	s := newStage(t)
	waiting := s.start("latch", "wait", "started", "-n", "2")
	s.ok("latch", "count", "started", "-n", "2", "--id", "web-1")
	s.ok("latch", "count", "started", "-n", "2", "--id", "web-1")
	require.Regexp(t, `started +1 of 2 +1 +counting\n`, s.ok("latch", "ls"))
	require.Contains(t, s.ok("latch", "ls", "started"), "web-1")
	code, _, errs := s.run("latch", "wait", "started", "-n", "2", "-w", "0.1")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "it did not open within 100ms")
	code, _, errs = s.run("latch", "reset", "started", "-n", "2")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "has not opened")
	code, _, errs = s.run("latch", "count", "started", "-n", "3", "--id", "web-3")
	require.Equal(t, cli.ExitMismatch, code)
	require.Contains(t, errs, "the same -n")
	code, _, errs = s.run("latch", "count", "started", "-n", "2", "--id", "")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--id is empty")
	s.ok("latch", "count", "started", "-n", "2", "--id", "web-2")
	require.Equal(t, 0, waiting.wait())
	s.ok("latch", "wait", "started", "-n", "2")
	one := decode(t, s.ok("latch", "ls", "started", "--json"))
	require.Equal(t, true, one["open"])
	require.Equal(t, []any{"web-1", "web-2"}, one["counted"])
	code, _, _ = s.run("latch", "count", "started", "-n", "2", "--id", "web-3")
	require.Equal(t, cli.ExitMismatch, code)
	s.ok("latch", "reset", "started", "-n", "2")
	require.Equal(t, 2.0, decode(t, s.ok("latch", "ls", "started", "--json"))["missing"])
	code, _, errs = s.run("latch", "count", "started")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "-n 0: say how many counts open it")
	s.ok("latch", "count", "/apps/started", "-n", "1")
}

// TestABarrierThatCannotBeReadLeavesTheOthers: a private one is warned about, and decides the exit
// code.
func TestABarrierThatCannotBeReadLeavesTheOthers(t *testing.T) {
	s := newStage(t)
	s.ok("gate", "raise", "open")
	theirs := *s
	theirs.env = append(s.env[:len(s.env):len(s.env)], "LOCKSTEP_AUTH=owner:secret")
	theirs.ok("gate", "raise", "private")
	code, out, errs := s.run("gates")
	require.Equal(t, cli.ExitNoPermission, code)
	require.Contains(t, out, "open")
	require.Contains(t, errs, "/lockstep/gates/private: no permission")
}
