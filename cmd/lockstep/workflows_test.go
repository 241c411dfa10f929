//go:build unix

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowMember works on runs in the test's process.
type workflowMember struct {
	paid   atomic.Int32 // how often the step pay was run
	broken atomic.Bool  // whether runs of the kind broken fail
	finish func()       // lets runs of the kind slow end
	stop   func()
}

func (s *stage) workOnRuns() *workflowMember {
	s.t.Helper()
	slow := make(chan struct{})
	m := &workflowMember{finish: sync.OnceFunc(func() { close(slow) })}
	m.broken.Store(true)
	w := workflow.New(client(s.t, s), defaultWorkflows)
	require.NoError(s.t, w.Register(
		workflow.NewKind("order", func(ctx context.Context, run *workflow.Run, order map[string]any) (string, error) {
			if _, err := workflow.Step(ctx, run, "pay", func(context.Context, workflow.Key) (string, error) {
				m.paid.Add(1)
				return "receipt\x1b[2J\u202e", nil
			}); err != nil {
				return "", err
			}
			parcel, err := workflow.Await[map[string]any](ctx, run, "delivered", 24*time.Hour)
			if err != nil {
				return "", err
			}
			return "closed " + parcel["parcel"].(string), nil
		}),
		workflow.NewKind("broken", func(context.Context, *workflow.Run, any) (string, error) {
			if m.broken.Load() {
				return "", workflow.Permanent(errors.New("no money\x1b[31m\u202e\nleft"))
			}
			return "repaired", nil
		}),
		workflow.NewKind("slow", func(ctx context.Context, _ *workflow.Run, _ any) (string, error) {
			select {
			case <-slow:
				return "ended", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}),
	))
	ctx, cancel := context.WithCancel(s.t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Work(ctx) }()
	m.stop = sync.OnceFunc(func() {
		m.finish()
		cancel()
		require.NoError(s.t, <-worked)
		require.NoError(s.t, w.Close(context.Background()))
	})
	s.t.Cleanup(m.stop)
	for _, kind := range []string{"order", "broken", "slow"} {
		s.until("a member of "+kind, func() bool { return s.hasTicket(defaultWorkflows + "/queues/" + kind) })
	}
	return m
}

// hasTicket reports whether a consumer waits for an item of a queue, or has one.
func (s *stage) hasTicket(queue string) bool {
	for _, n := range s.zk.Tree(queue) {
		if strings.Contains(n.Path, "/t-") {
			return true
		}
	}
	return false
}

// untilShown waits until the list of runs has a line with all words.
func (s *stage) untilShown(words ...string) {
	s.t.Helper()
	s.until(strings.Join(words, " "), func() bool {
		for line := range strings.Lines(s.ok("workflows")) {
			all := true
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			if all {
				return true
			}
		}
		return false
	})
}

func (s *stage) fails(code int, want string, args ...string) {
	s.t.Helper()
	got, out, errs := s.run(args...)
	require.Equal(s.t, code, got, "%q: %s", args, errs)
	require.Contains(s.t, errs, want, "%q", args)
	require.Empty(s.t, out)
}

func TestARunIsStartedShownSignalledAndRetried(t *testing.T) {
	s := newStage(t)
	_, out, errs := s.run("workflows")
	require.Empty(t, out)
	require.Contains(t, errs, "no such runs below /lockstep/workflows")
	s.fails(1, "no member knows the kind", "workflows", "start", "order", "order-42")
	require.Empty(t, s.zk.Tree(defaultWorkflows+"/runs"), "nothing is started")
	m := s.workOnRuns()

	_, _, errs = s.run("workflows", "start", "order", "order-42", `{"total": 12345678901234567890.10}`)
	require.Equal(t, "lockstep: order-42: started\n", errs, "no warning while a member waits for runs")
	s.untilShown("order-42", "order", "waiting", "pay", `signal "delivered" until `)
	one := decode(t, s.ok("workflows", "order-42", "--json"))
	require.Equal(t, "waiting", one["state"])
	require.Contains(t, s.ok("workflows", "--json"), `"input":{"total":12345678901234567890.10}`, "the number is as it was")
	picture := s.ok("workflows", "order-42")
	require.Regexp(t, `(?m)^├─  done +pay `, picture)
	require.Regexp(t, `(?m)^└─  waiting  for signal "delivered" until \S+Z$`, picture)
	require.NotContains(t, picture, "\x1b")
	require.NotContains(t, picture, "\u202e")

	_, _, errs = s.run("workflows", "start", "order", "order-42", `{"total":12345678901234567890.10}`)
	require.Contains(t, errs, "was started before")
	s.fails(exitMismatch, "the id is in use", "workflows", "start", "order", "order-42", "{}")
	s.fails(1, "the run has not finished", "workflows", "retry", "order-42")

	require.NoError(t, os.WriteFile(s.file("parcel.json"), []byte("{\"parcel\":\n \"a\"}\n"), 0o600))
	in, err := os.Open(s.file("parcel.json"))
	require.NoError(t, err)
	defer in.Close()
	fed := *s
	fed.in = in
	require.Empty(t, fed.ok("workflows", "signal", "order-42", "delivered", "-"))
	s.untilShown("order-42", "done")
	s.ok("workflows", "signal", "order-42", "delivered", "-f", s.file("parcel.json"))
	s.fails(1, "the signal is settled", "workflows", "signal", "order-42", "delivered")
	s.fails(1, "the run has finished", "workflows", "signal", "order-42", "other")
	s.fails(1, "the run has finished", "workflows", "cancel", "order-42")
	require.Regexp(t, `(?m)^└─  done +the run .*closed a`, s.ok("workflows", "order-42"))
	one = decode(t, s.ok("workflows", "order-42", "--json"))
	require.Equal(t, "closed a", one["result"])
	step := one["steps"].([]any)[0].(map[string]any)
	require.Equal(t, "pay", step["name"])
	require.Equal(t, "receipt\x1b[2J\u202e", step["result"], "JSON keeps what a terminal is not shown")
	require.Equal(t, []any{"delivered"}, one["signals"])

	s.fails(1, "name the step to retry from", "workflows", "retry", "order-42")
	s.fails(exitUsage, "has no record of step", "workflows", "retry", "order-42", "--from", "bay")
	require.EqualValues(t, 1, m.paid.Load())
	s.ok("workflows", "retry", "order-42", "--from", "pay")
	s.until("the second payment", func() bool { return m.paid.Load() == 2 })
	s.untilShown("order-42", "done")
}

func TestAFailedRunShowsItsErrorAndIsRetried(t *testing.T) {
	s := newStage(t)
	m := s.workOnRuns()
	s.ok("workflows", "start", "broken", "b1")
	s.ok("workflows", "start", "order", "other")
	s.untilShown("b1", "failed", "no money", `\x1b[31m\u202e\nleft`)
	failed := s.ok("workflows", "--state", "failed", "--kind", "broken,slow")
	require.Contains(t, failed, "b1")
	require.NotContains(t, failed, "other")
	picture := s.ok("workflows", "b1")
	require.Regexp(t, `(?m)^└─  failed  .*no money\\x1b\[31m\\u202e\\nleft`, picture)
	require.NotContains(t, picture, "\x1b")
	require.Equal(t, "no money\x1b[31m\u202e\nleft", decode(t, s.ok("workflows", "b1", "--json"))["error"])
	m.broken.Store(false)
	s.ok("workflows", "retry", "b1")
	s.untilShown("b1", "done")
}

func TestAnActiveRunShowsTheSessionThatHasIt(t *testing.T) {
	s := newStage(t)
	m := s.workOnRuns()
	s.ok("workflows", "start", "slow", "s1")
	s.untilShown("s1", "active", "0x")
	require.Regexp(t, `(?m)^└─  running  since `, s.ok("workflows", "s1"))
	one := decode(t, s.ok("workflows", "s1", "--json"))
	require.NotEmpty(t, one["taken"])
	session := one["session"]
	require.Contains(t, s.ok("queue", "inflight", defaultWorkflows+"/queues/slow", "--json"), `"session":"`+session.(string)+`"`)
	s.ok("workflows", "start", "slow", "s2")
	s.untilShown("s2", "active", "0x")
	s.ok("workflows", "cancel", "s2", "--reason", "no\u202eneed")
	s.ok("workflows", "cancel", "s2")
	s.untilShown("s2", "cancelled", `no\u202eneed`)
	require.Regexp(t, `(?m)^└─  cancelled  .*no\\u202eneed`, s.ok("workflows", "s2"))
	m.finish()
	s.untilShown("s1", "done")

	m.stop()
	s.until("the end of the member", func() bool { return !s.hasTicket(defaultWorkflows + "/queues/slow") })
	_, _, errs := s.run("workflows", "start", "slow", "s3")
	require.Contains(t, errs, `no member takes runs of kind "slow" at present`)
	require.Contains(t, s.ok("workflows"), "active, no member has it")
	require.Regexp(t, `(?m)^└─  queued  until a member `, s.ok("workflows", "s3"))
	s.ok("workflows", "start", "slow", "start")
	require.Contains(t, s.ok("workflows", "--", "start"), "queued", "an id that is called as a subcommand")
}

func TestCommandsOfWorkflowsRefuseWhatCannotBe(t *testing.T) {
	s := newStage(t)
	for _, line := range []string{
		"workflows a b", "workflows --state gone", "workflows a --kind order", "workflows --path relative", "workflows --path /", "workflows a/b",
		"workflows start order", "workflows start order a b c", "workflows start order a {", "workflows start order a {}{}", "workflows start order a text",
		"workflows start order a 1 -f x", "workflows start order a -f /does/not/exist", "workflows start a/b c", "workflows signal a", "workflows signal a b {",
		"workflows cancel", "workflows retry a --from=", "workflows retry",
	} {
		code, out, errs := s.run(strings.Fields(line)...)
		require.Equal(t, 64, code, "%s: %s", line, errs)
		require.Empty(t, out, line)
	}
	for _, line := range []string{"workflows a", "workflows cancel a", "workflows retry a", "workflows signal a b"} {
		s.fails(1, "there is no such run", strings.Fields(line)...)
	}
	require.Empty(t, s.zk.Tree("/lockstep"), "nothing was written")
}

func TestAForeignNodeAmongRunsLeavesTheOthers(t *testing.T) {
	s := newStage(t)
	s.workOnRuns()
	s.ok("workflows", "start", "order", "order-42")
	s.untilShown("order-42", "waiting")
	c := client(t, s)
	require.NoError(t, c.MakeDirs(t.Context(), defaultWorkflows+"/runs/00"))
	require.NoError(t, c.Create(t.Context(), defaultWorkflows+"/runs/00/foreign", []byte("\x1b[2J"), framework.Persistent))
	code, out, errs := s.run("workflows")
	require.Zero(t, code, errs)
	require.Contains(t, out, "order-42")
	require.NotContains(t, out, "foreign")
	require.Contains(t, errs, "a run cannot be read")
	require.NotContains(t, errs, "\x1b")
}

func TestARunThatAnybodyMayHaveMadeIsShownEscapedAndKeptInJSON(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	path := defaultWorkflows + "/" + hostileName
	plantHostileRuns(func(path, data string, mode framework.Mode) {
		require.NoError(t, c.MakeDirs(t.Context(), path[:strings.LastIndexByte(path, '/')]))
		if err := c.Create(t.Context(), path, []byte(data), mode); err != nil {
			_, err = c.Set(t.Context(), path, []byte(data), framework.AnyVersion)
			require.NoError(t, err)
		}
	}, hostileName, hostileData[1])
	out := s.ok("workflows", "victim", "--path", path)
	require.Regexp(t, `(?m)input +"\\xff\\u202e"$`, out)
	require.Contains(t, out, `waiting  for signal "\x1b[2J\n\u202e\u009b" until 1970-01-01T00:00:00Z`)
	one := decode(t, s.ok("workflows", "victim", "--path", path, "--json"))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\"\xff\u202e\"")), one["input_base64"])
	require.Equal(t, "\x1b[2J\n\u202e\u009b", one["error"])
	code, out, errs := s.run("workflows", "--path", path)
	require.Equal(t, exitMismatch, code, "steps that cannot be read")
	require.Contains(t, out, "victim")
	require.Contains(t, out, "active")
	require.Contains(t, errs, "the steps of a run cannot be read")
	require.Contains(t, errs, "a run cannot be read")
}

func TestCompletionOffersRunsAndKinds(t *testing.T) {
	s := newStage(t)
	s.workOnRuns()
	s.ok("workflows", "start", "order", "order-42")
	s.ok("workflows", "start", "slow", "s1")
	require.Equal(t, []string{"order-42"}, offered(s, "workflows", "retry", "or"))
	require.Equal(t, []string{"broken", "order", "slow"}, offered(s, "workflows", "start", ""))
	require.Contains(t, offered(s, "workflows", ""), "s1")
}

// offered is what a shell offers for the last word of a command line.
func offered(s *stage, words ...string) (names []string) {
	s.t.Helper()
	for line := range strings.Lines(s.ok(append([]string{"__complete"}, words...)...)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, ":") {
			names = append(names, name)
		}
	}
	return names
}
