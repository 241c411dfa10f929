//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestBarrierRunsCommandsTogether(t *testing.T) {
	s := newStage(t)
	for _, round := range []string{"1", "2"} {
		script := `echo "$LOCKSTEP_PATH $LOCKSTEP_TOKEN"; while [ ! -e "$DIR/go` + round +
			`" ]; do sleep 0.01; done; exit $1`
		a := s.start("barrier", "enter", "phase", "-n", "2", "--", "sh", "-c", script, "sh", "0")
		s.members(cli.BarriersDir+"/phase", 1)
		require.Empty(t, read(a.out))
		b := s.start("barrier", "enter", "phase", "-n", "2", "--", "sh", "-c", script, "sh", "7")
		for _, p := range []*process{a, b} {
			require.Equal(t, cli.BarriersDir+"/phase "+round, p.line(0))
		}
		touch(t, s.file("go"+round))
		require.Equal(t, 0, a.wait())
		require.Equal(t, 7, b.wait())
		s.left()
	}
}

func TestBarrierWithoutACommand(t *testing.T) {
	s := newStage(t)
	a := s.start("barrier", "enter", "ready", "-n", "2")
	s.members(cli.BarriersDir+"/ready", 1)
	b := s.start("barrier", "enter", "ready", "-n", "2", "--json")
	require.Equal(t, []string{cli.BarriersDir + "/ready", "1"}, a.fields(0))
	require.Equal(t, map[string]any{"path": cli.BarriersDir + "/ready", "round": 1.0}, decode(t, b.line(0)))
	require.Equal(t, 0, a.wait())
	require.Equal(t, 0, b.wait())
	s.left()
}

func TestBarrierWithoutOthersTimesOut(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("barrier", "enter", "ready", "-n", "2", "-w", "0.1", "--", "echo", "ran")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "fewer than 2 processes came within 100ms (-w)\n")
	s.left()

	p := s.start("barrier", "enter", "ready", "-n", "2", "--", "echo", "ran")
	s.members(cli.BarriersDir+"/ready", 1)
	code, _, errs = s.run("barrier", "enter", "ready", "-n", "3", "--", "echo", "ran")
	require.Equal(t, 65, code)
	require.Contains(t, errs, "has 2, 3 was given")
	require.Contains(t, errs, "the same -n")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Empty(t, read(p.out))
	s.left()
}

func TestAMemberThatIsKilledInsideLetsTheOthersLeave(t *testing.T) {
	s := newStage(t)
	script := []string{"--", "sh", "-c", `echo in; [ "$1" = stay ] && exec sleep 1000; exit 0`, "sh"}
	// on a busy machine, the other member would lose a short session
	enter := []string{"barrier", "enter", "phase", "-n", "2", "--session-timeout", "20s"}
	a := s.start(append(append(enter[:len(enter):len(enter)], script...), "go")...)
	b := s.start(append(append(enter[:len(enter):len(enter)], script...), "stay")...)
	require.Equal(t, "in", a.line(0))
	require.Equal(t, "in", b.line(0))
	b.signal(syscall.SIGKILL)
	require.Equal(t, 0, a.wait())
	s.left()
}

func TestALostPlaceEndsTheCommand(t *testing.T) {
	s := newStage(t)
	p := s.start("barrier", "enter", "phase", "-n", "1", "--", "sh", "-c",
		`trap 'echo told; exit 3' TERM; echo in; while :; do sleep 0.01; done`)
	p.line(0)
	s.expire()
	require.Equal(t, 75, p.wait())
	require.Equal(t, "told", p.line(1))
	s.left()
}

func TestGate(t *testing.T) {
	s := newStage(t)
	quiet := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := s.run(append([]string{"gate"}, args...)...)
		require.Equal(t, want, code, errs)
		require.Empty(t, out)
		return errs
	}
	quiet(0, "wait", "work")
	quiet(0, "raise", "work")
	quiet(0, "raise", "work")
	require.Contains(t, quiet(1, "wait", "work", "-w", "0.1"), "within 100ms (-w)")
	require.Contains(t, quiet(1, "raise", "work", "--", "echo", "ran"), "raised already")
	p := s.start("gate", "wait", "work")
	s.until("a watch", func() bool { return len(s.zk.Watches()) > 0 })
	quiet(0, "lower", "work")
	require.Equal(t, 0, p.wait())
	quiet(0, "lower", "work")
	s.left()
}

func TestAGateIsUpWhileACommandRuns(t *testing.T) {
	s := newStage(t)
	p := s.start("gate", "raise", "work", "--", "sh", "-c",
		`echo up; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; exit 5`)
	p.line(0)
	code, _, _ := s.run("gate", "raise", "work")
	require.Equal(t, 1, code, "it would fall with the command")
	waiter := s.start("gate", "wait", "work")
	touch(t, s.file("go"))
	require.Equal(t, 5, p.wait())
	require.Equal(t, 0, waiter.wait())

	// A session that holds nothing lets its lease end, which ends the command too. It must end long
	// before.
	p = s.start("gate", "raise", "work", "--session-timeout", "1m", "--", "sh", "-c", "echo up; exec sleep 1000")
	p.line(0)
	code, _, _ = s.run("gate", "lower", "work")
	require.Equal(t, 0, code)
	require.Equal(t, 75, p.wait())
	s.left()
}

func TestBarrierUsageErrors(t *testing.T) {
	s := newStage(t)
	for _, args := range [][]string{
		{"barrier", "bogus"}, {"barrier", "enter"}, {"barrier", "enter", "a"}, {"barrier", "enter", "a", "-n", "0"},
		{"barrier", "enter", "a", "-n", "x"},
		{"barrier", "enter", "a", "-n", "2000"}, {"barrier", "enter", "a", "-n", "2", "--"},
		{"barrier", "enter", "/", "-n", "2"}, {"barrier", "enter", "a", "-n", "2", "-w", "0"},
		{"gate", "bogus"}, {"gate", "raise"}, {"gate", "wait", "a", "b"}, {"gate", "lower", "a", "--", "true"},
		{"gate", "wait", "a", "-w", "soon"},
	} {
		code, out, errs := s.run(args...)
		require.Equal(t, 64, code, args)
		require.Empty(t, out, args)
		require.Regexp(t, `(^|\n)lockstep: .+\nlockstep: see lockstep.* --help\n$`, errs, args)
	}
	for _, args := range [][]string{{"barrier", "--help"}, {"barrier", "enter", "--help"}, {"gate", "-h"},
		{"gate", "raise", "-h"}, {"gate", "lower", "-h"}, {"gate", "wait", "-h"}} {
		code, out, errs := s.run(args...)
		require.Equal(t, 0, code)
		require.Contains(t, out, "Examples:")
		require.Empty(t, errs)
	}
	lock := s.start("lock", "/shared")
	lock.line(0)
	code, _, errs := s.run("gate", "wait", "/shared")
	require.Equal(t, 65, code)
	require.Contains(t, errs, "use another NAME")
}

func TestAGateIsNotRaisedForACommandThatIsNotThere(t *testing.T) {
	s := newStage(t)
	code, _, errs := s.run("gate", "raise", "work", "--", "/nowhere/work.sh")
	require.Equal(t, cli.ExitNoCommand, code, errs)
	require.Empty(t, s.zk.Tree("/lockstep"), "nothing was written")
}
