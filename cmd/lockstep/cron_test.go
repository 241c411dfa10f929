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
	line := []string{"cron", "demo", "@every 1s", "--", "sh", "-c",
		`echo "$LOCKSTEP_TICK $LOCKSTEP_TOKEN $LOCKSTEP_PATH" >>$DIR/ran`}
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

func TestCronReplacesASchedule(t *testing.T) {
	s := newStage(t)
	spec := func() string {
		_, out, _ := s.run("jobs", "--json")
		job := decode(t, out)
		return job["spec"].(string) + " in " + job["zone"].(string)
	}
	begin := func(args ...string) *process {
		p := s.start(append(append([]string{"cron", "demo"}, args...), "--", "true")...)
		s.queue("/lockstep/jobs/demo/members", 1)
		return p
	}
	end := func(p *process) {
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
	}
	end(begin("0 3 * * *", "--revision", "2"))
	end(begin("0 4 * * *"))
	require.Equal(t, "0 3 * * * in UTC", spec(), "of a lower revision")
	end(begin("0 4 * * *", "--revision", "2", "--tz", "Europe/Berlin"))
	require.Equal(t, "0 4 * * * in Europe/Berlin", spec(), "the last of equals")
}

func TestCronTellsTheNextTickOfTheStoredSchedule(t *testing.T) {
	s := newStage(t)
	start := func(args ...string) *process {
		return s.start(append(append([]string{"cron", "demo"}, args...), "--", "true")...)
	}
	end := func(p *process, says string) {
		s.until("the line", func() bool { return strings.Contains(read(p.err), says) })
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
	}
	end(start("0 3 1 1 *", "--revision", "2"), "-01-01T03:00:00Z")
	now := time.Now().UTC()
	next := time.Date(now.Year(), time.January, 1, 3, 0, 0, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(1, 0, 0)
	}
	end(start("0 4 1 1 *"), "this process runs /lockstep/jobs/demo, next at "+next.Format(time.RFC3339))
	code, _, _ := s.run("jobs", "pause", "demo")
	require.Zero(t, code)
	end(start("0 4 1 1 *"), "this process runs /lockstep/jobs/demo once it is resumed: it is paused")
}

// TestTwoCronsWithOneNameAreBothTold of the schedule that counts.
func TestTwoCronsWithOneNameAreBothTold(t *testing.T) {
	s := newStage(t)
	begin := func(n int, args ...string) *process {
		p := s.start(append(append([]string{"cron", "demo"}, args...), "--", "true")...)
		s.queue("/lockstep/jobs/demo/members", n)
		return p
	}
	first := begin(1, "0 3 * * *")
	same := begin(2, "0 3 * * *")
	second := begin(3, "0 4 * * *", "--tz", "Europe/Berlin")
	for p, says := range map[*process]string{
		first:  `is now "0 4 * * *" in Europe/Berlin instead of "0 3 * * *" in UTC`,
		same:   `is now "0 4 * * *" in Europe/Berlin instead of "0 3 * * *" in UTC`,
		second: `was "0 3 * * *" in UTC: this process replaces it by "0 4 * * *" in Europe/Berlin for all`,
	} {
		s.until("the warning", func() bool { return strings.Contains(read(p.err), says) })
	}
	third := begin(4, "0 5 * * *", "--revision", "7")
	late := begin(5, "0 6 * * *")
	s.until("the warning", func() bool {
		return strings.Contains(read(late.err),
			`stays "0 5 * * *" in UTC, of revision 7, and this process follows it: --revision 7 or more replaces it by "0 6 * * *" in UTC`)
	})
	s.until("the second warning", func() bool { return strings.Count(read(first.err), "warning") >= 2 })
	require.NotContains(t, read(third.err), "0 6", "it goes on as before")
	for _, p := range []*process{first, same, second, third, late} {
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
	}
	require.Equal(t, 2, strings.Count(read(first.err), "warning"), "one for each change")
	s.left()
}

func TestBadPoliciesAreUsageErrors(t *testing.T) {
	s := newStage(t)
	for flag, says := range map[string]string{
		"--misfire=never": `"never"`, "--overlap=skip": `"skip"`, "--attempts=-1": "-1",
		"--attempts=0": "at least 1", "--timeout=-1s": "positive",
		"--revision=-1": "-1",
	} {
		code, _, errs := s.run("cron", "demo", "* * * * *", flag, "--", "true")
		require.Equal(t, 64, code, flag)
		require.Contains(t, errs, says)
	}
	require.Empty(t, s.zk.Children("/lockstep/jobs/demo/jobs"), "nothing is stored")
}

func TestJobsAreShownAndControlled(t *testing.T) {
	s := newStage(t)
	code, _, errs := s.run("jobs")
	require.Equal(t, 0, code)
	require.Contains(t, errs, "no jobs")
	for _, args := range [][]string{{"jobs", "trigger", "demo"}, {"jobs", "pause", "demo"}, {"jobs", "remove", "demo"},
		{"runs", "demo"}} {
		code, _, errs := s.run(args...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errs, `unknown job "demo"`)
	}
	p := s.start("cron", "demo", "0 3 1 1 *", "--attempts", "2", "--first-pause", "10ms", "--", "sh", "-c",
		`echo "$LOCKSTEP_ATTEMPT"; exit $((LOCKSTEP_ATTEMPT == 1 ? 6 : 0))`)
	s.queue("/lockstep/jobs/demo/members", 1)
	code, _, _ = s.run("jobs", "pause", "demo")
	require.Equal(t, 0, code)
	_, out, _ := s.run("jobs")
	require.Contains(t, out, "demo  0 3 1 1 *  UTC")
	require.Contains(t, out, "paused")
	require.NotContains(t, out, "NEXT")
	code, _, _ = s.run("jobs", "resume", "demo")
	require.Equal(t, 0, code)
	code, _, _ = s.run("jobs", "trigger", "demo")
	require.Equal(t, 0, code)
	require.Equal(t, "1", p.line(0))
	require.Equal(t, "2", p.line(1))
	s.until("the outcome", func() bool {
		_, out, _ = s.run("runs", "demo", "--json")
		return strings.Contains(out, `"succeeded"`)
	})
	run := decode(t, out)
	require.Equal(t, 2.0, run["attempt"])
	require.Equal(t, true, run["manual"])
	require.Positive(t, run["token"])
	_, out, _ = s.run("runs", "demo")
	require.Contains(t, out, "succeeded, triggered by hand")
	require.Regexp(t, ` RAN\ndemo .* succeeded .*  1\n$`, s.ok("jobs"), "the run by hand counts")
	require.NotContains(t, out, `""`, "no error")
	_, out, _ = s.run("jobs", "/lockstep/jobs/demo")
	require.Contains(t, out, "NEXT TICKS")
	code, _, errs = s.run("jobs", "/lockstep/jobs/none")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no jobs at or below /lockstep/jobs/none: there is no such node")
	code, _, _ = s.run("jobs", "remove", "demo")
	require.Equal(t, 0, code)
	s.until("the warning", func() bool { return strings.Contains(read(p.err), "was removed") })
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
	s.left()
}

func TestJobsWithSlashesInTheirNamesAreListed(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"team", "team/report", "a/b/c"} {
		p := s.start("cron", name, "0 3 1 1 *", "--", "true")
		s.queue("/lockstep/jobs/"+name+"/members", 1)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
	}
	var listed []any
	for line := range strings.Lines(s.ok("jobs", "--json")) {
		listed = append(listed, decode(t, line)["job_path"])
	}
	require.Equal(t, []any{"/lockstep/jobs/a/b/c", "/lockstep/jobs/team", "/lockstep/jobs/team/report"}, listed)
	s.ok("jobs", "pause", listed[2].(string))
	require.Contains(t, s.ok("jobs"), "team/report  0 3 1 1 *  UTC")

	code, _, errs := s.run("cron", "team/jobs", "@daily", "--", "true")
	require.Equal(t, 64, code)
	require.Contains(t, errs, `"team/jobs"`)
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
	p := s.start("cron", "demo", "@every 1s", "--", "sh", "-c",
		`trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 8, p.wait())
	s.left()
	run := decode(t, s.ok("runs", "demo", "--json"))
	require.Equal(t, "stopped", run["outcome"], "the command did not fail by itself")
	require.Contains(t, run["error"], "exit code 8 after a signal")
}

func TestALostTermEndsTheTicksCommand(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "@every 1s", "--", "sh", "-c",
		`trap 'echo told; exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	s.expire()
	require.Equal(t, "told", p.line(1))
	require.Equal(t, "ready", p.line(2), "it takes part again")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 8, p.wait())
}
