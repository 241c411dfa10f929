//go:build unix

package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCronRunsOncePerTickInTheCluster(t *testing.T) {
	s := newStage(t)
	line := []string{"cron", "demo", "@every 1s", "--", "sh", "-c", `echo "$LOCKSTEP_TICK $LOCKSTEP_TOKEN $LOCKSTEP_PATH" >>$DIR/ran`}
	var ps []*process
	for range 3 {
		ps = append(ps, s.start(line...))
	}
	s.line(s.file("ran"), 3)
	for _, p := range ps {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range ps {
		require.Equal(t, 0, p.wait())
	}
	var ticks []string
	for l := range strings.Lines(read(s.file("ran"))) {
		fields := strings.Fields(l)
		tick, err := time.Parse(time.RFC3339, fields[0])
		require.NoError(t, err)
		require.Equal(t, time.UTC, tick.Location())
		require.Positive(t, number(t, fields[1]))
		require.Equal(t, "/lockstep/jobs/demo", fields[2])
		ticks = append(ticks, fields[0])
	}
	require.True(t, slices.IsSorted(ticks))
	require.Len(t, slices.Compact(ticks), len(ticks), "no tick twice")
	s.left()
}

func TestCronRefusesAnotherSchedule(t *testing.T) {
	s := newStage(t)
	first := s.start("cron", "demo", "0 3 * * *", "--", "true")
	s.until("the stored schedule", func() bool { return strings.Contains(read(first.err), "running") })
	first.signal(syscall.SIGTERM)
	require.Equal(t, 0, first.wait())
	for _, args := range [][]string{{"0 4 * * *"}, {"0 3 * * *", "--tz", "Europe/Berlin"}} {
		code, _, errs := s.run(append([]string{"cron", "demo"}, append(args, "--", "true")...)...)
		require.Equal(t, 65, code)
		require.Contains(t, errs, "0 3 * * *")
		require.Contains(t, errs, "UTC")
		require.Contains(t, errs, args[len(args)-1], "both are shown")
	}
}

func TestCronGoesOnWhenItsCommandFails(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "* * * * * *", "--", "sh", "-c", "echo ran; exit 6")
	p.line(1)
	s.until("the warning", func() bool { return strings.Contains(read(p.err), "exit code 6") })
	p.signal(syscall.SIGTERM)
	require.Contains(t, []int{0, 6, 143}, p.wait(), "the command's if it ran just then")
}

func TestASignalIsPassedOnToTheTicksCommand(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "@every 1s", "--", "sh", "-c", `trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 8, p.wait())
	s.left()
}

func TestALostTermEndsTheTicksCommand(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "@every 1s", "--", "sh", "-c", `trap 'echo told; exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	s.expire()
	require.Equal(t, "told", p.line(1))
	require.Equal(t, "ready", p.line(2), "it takes part again")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 8, p.wait())
}
