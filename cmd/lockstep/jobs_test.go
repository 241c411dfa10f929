//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/cron"
	"github.com/lockstep-go/lockstep/scheduler"
)

// setState changes fields of a job's stored state.
func (s *stage) setState(job string, fields map[string]any) {
	s.t.Helper()
	c, err := framework.New(framework.Config{Servers: strings.Split(s.servers, ",")})
	require.NoError(s.t, err)
	c.Start()
	defer c.Close(s.t.Context())
	path := "/lockstep/jobs/" + job + "/jobs/" + job
	data, _, err := c.Get(s.t.Context(), path)
	require.NoError(s.t, err)
	state := map[string]any{}
	require.NoError(s.t, json.Unmarshal(data, &state))
	for name, value := range fields {
		state[name] = value
	}
	data, err = json.Marshal(state)
	require.NoError(s.t, err)
	_, err = c.Set(s.t.Context(), path, data, framework.AnyVersion)
	require.NoError(s.t, err)
}

func TestAJobThatNoProcessRunsDoesNotLookHealthy(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "0 3 * * *", "--tz", "Asia/Kathmandu", "--", "true", "secret-argument")
	s.queue("/lockstep/jobs/demo/members", 1)
	s.until("the owner", func() bool { return strings.Contains(s.ok("jobs", "demo"), "(leads)") })
	detail := s.ok("jobs", "demo")
	for _, want := range []string{"0 3 * * *: at 03:00, in Asia/Kathmandu", "runs       true #", "03:00:00 +0545",
		"HERE"} {
		require.Contains(t, detail, want)
	}
	require.NotContains(t, detail, "secret-argument")
	code, out, errs := s.run("jobs", "--check")
	require.Zero(t, code, out)
	require.Empty(t, out)
	require.Contains(t, errs, "nothing wrong: 1 job")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())

	require.Contains(t, s.ok("jobs"), "no member runs it")
	require.NotContains(t, s.ok("jobs"), "OVERDUE", "no tick was due meanwhile")
	code, out, _ = s.run("jobs", "--check")
	require.Equal(t, 1, code)
	require.Regexp(t,
		`^demo\tno member runs it\tno member runs it; a member last dealt with it at \S+Z, and no tick is due since\n$`,
		out)

	s.setState("demo", map[string]any{"registered": "2026-01-01T00:00:00Z", "last": "2026-01-02T21:15:00Z"})
	out = s.ok("jobs")
	require.Contains(t, out, "OVERDUE")
	require.Contains(t, out, "no member runs it, due since 2026-01-03 21:15:00")
	code, out, _ = s.run("check")
	require.Equal(t, 1, code)
	require.Contains(t, out, "/lockstep/jobs/demo\tno member runs it\t")
	require.Contains(t, out, "ticks due since 2026-01-03T21:15:00Z")
	code, out, _ = s.run("check", "/lockstep/jobs/demo", "--json")
	require.Equal(t, 1, code)
	finding := decode(t, out)
	require.Equal(t, "no member runs it", finding["problem"])
	require.Equal(t, "2026-01-03T21:15:00Z", finding["since"])
	code, _, _ = s.run("check", "/zookeeper")
	require.Zero(t, code, "the job is elsewhere")
	code, _, errs = s.run("check", "/elsewhere")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "there is no node /elsewhere: nothing was checked")
	job := decode(t, s.ok("jobs", "demo", "--json"))
	require.Equal(t, "at 03:00", job["words"])
	require.Len(t, job["next_ticks"], 10)
	require.Positive(t, job["overdue"].(map[string]any)["count"])
	require.Empty(t, job["members"])

	for _, control := range []string{"trigger", "resume"} {
		code, _, errs = s.run("jobs", control, "demo")
		require.Zero(t, code)
		require.Contains(t, errs, "it waits until a process that has the job is started", control)
	}
}

func TestFindingsAreOneLineAndHarmless(t *testing.T) {
	s := newStage(t)
	p := s.start("cron", "demo", "0 3 1 1 *", "--", "true")
	s.queue("/lockstep/jobs/demo/members", 1)
	s.setState("demo", map[string]any{
		"description": "\x1b[31mred\u202e", "lastRun": map[string]any{
			"n": 1, "id": "x", "attempt": 1, "runner": "\x1b[2Jw", "outcome": "failed",
			"error": "one\ntwo \x1b[31m\u202e", "started": "2026-01-01T00:00:00Z",
		},
	})
	code, out, _ := s.run("jobs", "--check")
	require.Equal(t, 1, code)
	require.Equal(t, "demo\tfailed\tthe latest run failed: one\\ntwo \\x1b[31m\\u202e\n", out)
	for _, args := range [][]string{{"jobs"}, {"jobs", "demo"}, {"jobs", "demo", "--json"},
		{"jobs", "--check", "--json"}, {"check"}} {
		_, out, errs := s.run(args...)
		require.NotContains(t, out+errs, "\x1b", args)
		require.NotContains(t, out+errs, "\u202e", args)
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}

func TestTwoCommandsWithOneNameAreBothTold(t *testing.T) {
	s := newStage(t)
	first := s.start("cron", "demo", "0 3 1 1 *", "--", "true")
	s.queue("/lockstep/jobs/demo/members", 1)
	second := s.start("cron", "demo", "0 3 1 1 *", "--", "true", "b")
	s.until("the warning", func() bool {
		return strings.Contains(read(first.err),
			"another process has registered /lockstep/jobs/demo with the command true #")
	})
	s.until("the warning", func() bool {
		return strings.Contains(read(second.err), "the command of /lockstep/jobs/demo was true #")
	})
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
		require.Equal(t, 1, strings.Count(read(p.err), "warning"), "once")
	}
}

// TestJobsThatCannotBeReadAreNotSaidToBeFine by jobs --check.
func TestJobsThatCannotBeReadAreNotSaidToBeFine(t *testing.T) {
	s := newStage(t)
	s.start("cron", "demo", "0 3 1 1 *", "--", "true")
	s.queue("/lockstep/jobs/demo/members", 1)
	require.NoError(t, connectAs(t, s, "", "ann:secret", framework.CreatorOnlyACL()...).Create(t.Context(),
		"/lockstep/jobs/private", nil, framework.Persistent))
	code, out, errs := s.run("jobs", "--check")
	require.Equal(t, cli.ExitNoPermission, code)
	require.Empty(t, out)
	require.Contains(t, errs, "/lockstep/jobs/private: no permission")
	require.NotContains(t, errs, "nothing wrong")
}

// TestAPauseIsShownBesideOtherStates, and no time at which the members left, which nobody knows.
func TestAPauseIsShownBesideOtherStates(t *testing.T) {
	paused := scheduler.Report{State: scheduler.State{Paused: time.Now()}}
	require.Equal(t, "paused", cron.StateCell(paused).Text)
	runs := paused
	runs.Running = []scheduler.RunRecord{{Runner: "web-1"}}
	require.Equal(t, "runs on web-1, paused", cron.StateCell(runs).Text)
	left := paused
	left.Findings = []scheduler.Finding{{Problem: scheduler.ProblemNoMember}}
	require.Equal(t, "no member runs it, paused", cron.StateCell(left).Text)
}
