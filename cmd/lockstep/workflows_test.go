//go:build unix

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	cliworkflow "github.com/lockstep-go/lockstep/internal/cli/workflow"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowMember works on runs in the test's process.
type workflowMember struct {
	paid   atomic.Int32 // how often the step pay was run
	broken atomic.Bool  // whether runs of the kind broken fail
	finish func()       // lets runs of the kind slow end
	stop   func()

	identity string // of its client
}

func (s *stage) workOnRuns() *workflowMember {
	s.t.Helper()
	slow := make(chan struct{})
	m := &workflowMember{finish: sync.OnceFunc(func() { close(slow) })}
	m.broken.Store(true)
	c := client(s.t, s)
	m.identity = c.Config().Identity
	w := workflow.New(c, cliworkflow.DefaultWorkflows)
	require.NoError(s.t, w.Register(
		workflow.NewKind[map[string]any, string]("order").Function(func(ctx context.Context, run *workflow.Run,
			order map[string]any) (string, error) {
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
		workflow.NewKind[any, string]("broken").Function(func(context.Context, *workflow.Run, any) (string, error) {
			if m.broken.Load() {
				return "", workflow.Permanent(errors.New("no money\x1b[31m\u202e\nleft"))
			}
			return "repaired", nil
		}),
		workflow.NewKind[any, string]("slow").Function(func(ctx context.Context, _ *workflow.Run,
			_ any) (string, error) {
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
		s.until("a member of "+kind, func() bool {
			return s.hasTicket(cliworkflow.DefaultWorkflows + "/queues/" +
				kind)
		})
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
	require.Contains(t, errs, "no runs of workflows at or below /lockstep/workflows")
	s.fails(1, "no member knows the kind", "workflows", "start", "order", "order-42")
	require.Empty(t, s.zk.Tree(cliworkflow.DefaultWorkflows+"/runs"), "nothing is started")
	m := s.workOnRuns()

	_, _, errs = s.run("workflows", "start", "order", "order-42", `{"total": 12345678901234567890.10}`)
	require.Equal(t, "lockstep: order-42: started\n", errs, "no warning while a member waits for runs")
	s.untilShown("order-42", "order", "waiting", "pay", `signal "delivered" until `)
	one := decode(t, s.ok("workflows", "order-42", "--json"))
	require.Equal(t, "waiting", one["state"])
	require.Contains(t, s.ok("workflows", "--json"), `"input":{"total":12345678901234567890.10}`,
		"the number is as it was")
	picture := s.ok("workflows", "order-42")
	require.Regexp(t, `(?m)^├─  done +pay `, picture)
	require.Regexp(t, `(?m)^└─  waiting  for signal "delivered" until \S+Z$`, picture)
	require.NotContains(t, picture, "\x1b")
	require.NotContains(t, picture, "\u202e")

	_, _, errs = s.run("workflows", "start", "order", "order-42", `{"total":12345678901234567890.10}`)
	require.Contains(t, errs, "was started before")
	s.fails(cli.ExitMismatch, "the id is in use", "workflows", "start", "order", "order-42", "{}")
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
	s.fails(1, "the run already has this signal", "workflows", "signal", "order-42", "delivered")
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
	s.fails(cli.ExitUsage, "has no record of \"bay\"", "workflows", "retry", "order-42", "--from", "bay")
	require.EqualValues(t, 1, m.paid.Load())
	s.ok("workflows", "retry", "order-42", "--from", "pay")
	s.until("the second payment", func() bool { return m.paid.Load() == 2 })
	s.untilShown("order-42", "done")
}

// TestARunHasOnePath: each command prints it, and takes it.
func TestARunHasOnePath(t *testing.T) {
	s := newStage(t)
	w := workflow.New(client(t, s), "/orders")
	parcel := workflow.NewKind[any, any]("parcel")
	require.NoError(t, w.Register(
		workflow.NewKind[any, string]("order").Function(
			func(ctx context.Context, run *workflow.Run, _ any) (string, error) {
				if _, err := parcel.Child(ctx, run, "parcel", nil); err != nil {
					return "", err
				}
				return "closed", nil
			}),
		parcel.Function(func(ctx context.Context, run *workflow.Run, _ any) (any, error) {
			return workflow.Await[any](ctx, run, "delivered", 0)
		})))
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Work(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-worked)
		require.NoError(t, w.Close(context.Background()))
	}()
	s.until("the kind", func() bool {
		return s.hasTicket("/orders/queues/order") &&
			s.hasTicket("/orders/queues/parcel")
	})
	s.fails(1, "no runs of workflows at or below /orders", "workflows", "/orders")
	_, _, errs := s.run("workflows", "start", "order", "/orders/o-1")
	require.Equal(t, "lockstep: /orders/o-1: started\n", errs)
	_, _, errs = s.run("workflows", "start", "order", "/orders/o-1")
	require.Contains(t, errs, "/orders/o-1: was started before")
	for _, list := range []string{"/orders", "/"} {
		s.until("the child in a list of "+list, func() bool {
			out := s.ok("workflows", list)
			return strings.Contains(out, "/orders/o-1  ") && strings.Contains(out, "/orders/o-1.parcel  ")
		})
	}
	_, _, errs = s.run("workflows", "/orders", "--state", "failed")
	require.Contains(t, errs, "no such runs: --kind and --state leave out 2 runs")
	_, out, errs := s.run("workflows")
	require.Empty(t, out)
	require.Contains(t, errs,
		"no runs of workflows at or below /lockstep/workflows; elsewhere /orders: lockstep workflows /\n")
	picture := s.ok("workflows", "/orders/o-1.parcel")
	require.Regexp(t, `^/orders/o-1\.parcel\n`, picture)
	require.Regexp(t, `parent +/orders/o-1\n`, picture)
	one := decode(t, s.ok("workflows", "/orders/o-1.parcel", "--json"))
	require.Equal(t, "/orders/o-1.parcel", one["path"])
	require.Equal(t, "o-1.parcel", one["id"])
	s.offers([]string{"/orders/o-1", "/orders/o-1.parcel"}, "workflows", "cancel", "/orders/o")

	for _, test := range [][2]string{{"cancel /orders/o-1.parcel", "/orders/o-1.parcel: cancelled"},
		{"retry /orders/o-1.parcel", "/orders/o-1.parcel: goes on"},
		{"signal /orders/o-1.parcel delivered", `/orders/o-1.parcel: has the signal "delivered"`}} {
		code, _, errs := s.run(append([]string{"workflows"}, strings.Fields(test[0])...)...)
		require.Zero(t, code, errs)
		require.Equal(t, "lockstep: "+test[1]+"\n", errs)
	}
	s.fails(1, "see which there are: lockstep workflows /orders", "workflows", "/orders/none")
	s.fails(1, "no runs of workflows at or below /none", "workflows", "/none")
	s.fails(cli.ExitUsage, "not for one run", "workflows", "/orders/o-1", "--kind", "order")
	s.fails(1, "no member knows the kind", "workflows", "start", "other", "/orders/o-3")
}

func TestAGraphOfARunIsDrawn(t *testing.T) {
	s := newStage(t)
	w := workflow.New(client(t, s), cliworkflow.DefaultWorkflows)
	goOn := make(chan struct{})
	step := func(name string, after ...string) workflow.GraphStep[any, any] {
		return workflow.GraphStep[any, any]{Name: name, After: after,
			Do: func(_ context.Context, _ workflow.Key, _ any, _ workflow.GraphResults) (any, error) {
				if name == "charge" {
					<-goOn
				}
				return nil, nil
			}}
	}
	graph, err := workflow.NewGraph("fulfil\"", step("ship", "pack", "charge"), step("charge", "reserve"),
		step("reserve"), step("pack", "reserve"))
	require.NoError(t, err)
	order := workflow.NewKind[any, string]("order")
	require.NoError(t, w.Register(order.Function(
		func(ctx context.Context, run *workflow.Run, input any) (string, error) {
			_, err := graph.Run(ctx, run, input)
			return "", err
		})))
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Work(ctx) }()
	defer func() {
		close(goOn)
		cancel()
		require.NoError(t, <-worked)
		require.NoError(t, w.Close(context.Background()))
	}()
	_, err = order.Start(t.Context(), w, "order-7", nil)
	require.NoError(t, err)
	s.until("the step pack is recorded", func() bool {
		return strings.Contains(s.ok("workflows", "order-7"), ": 2 of 4 steps done")
	})
	picture := s.ok("workflows", "order-7")
	require.Regexp(t, `(?m)^├─  done +reserve$`, picture)
	require.Regexp(t, `(?m)^├─  under way +  charge +reserve$`, picture)
	require.Regexp(t, `(?m)^├─  done +  pack +reserve$`, picture)
	require.Regexp(t, `(?m)^└─  waiting +    ship +pack, charge +charge$`, picture)
	require.NotContains(t, picture, "graph:fulfil", "it is drawn, and not listed")
	one := decode(t, s.ok("workflows", "order-7", "--json"))
	graphs := one["graphs"].([]any)[0].(map[string]any)
	require.Equal(t, `fulfil"`, graphs["name"])
	require.Equal(t, map[string]any{"name": "ship", "after": []any{"pack", "charge"}, "level": 2.0, "done": false,
		"waits_for": []any{"charge"}}, graphs["steps"].([]any)[3])
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
	taken := one["taken"].(map[string]any)
	require.NotEmpty(t, taken["since"])
	require.Equal(t, m.identity, taken["member"])
	require.Contains(t, s.ok("workflows", "s1"), " of "+m.identity)
	session := taken["session"]
	require.Contains(t, s.ok("queue", "inflight", cliworkflow.DefaultWorkflows+"/queues/slow", "--json"),
		`"session":"`+session.(string)+`"`)
	s.ok("workflows", "start", "slow", "s2")
	s.untilShown("s2", "active", "0x")
	s.ok("workflows", "cancel", "s2", "--reason", "no\u202eneed")
	s.ok("workflows", "cancel", "s2")
	s.untilShown("s2", "cancelled", `no\u202eneed`)
	require.Regexp(t, `(?m)^└─  cancelled  .*no\\u202eneed`, s.ok("workflows", "s2"))
	m.finish()
	s.untilShown("s1", "done")

	m.stop()
	s.until("the end of the member", func() bool { return !s.hasTicket(cliworkflow.DefaultWorkflows + "/queues/slow") })
	_, _, errs := s.run("workflows", "start", "slow", "s3")
	require.Contains(t, errs, `no member takes runs of kind "slow" at present`)
	require.Contains(t, s.ok("workflows"), "active, no member has it")
	require.Regexp(t, `(?m)^└─  queued  until a member `, s.ok("workflows", "s3"))
	s.ok("workflows", "start", "slow", "start")
	require.Contains(t, s.ok("workflows", "--", "start"), "queued", "an id that is called as a subcommand")
}

func TestARunWhoseItemWasPurgedIsRequeued(t *testing.T) {
	s := newStage(t)
	s.workOnRuns().stop()
	s.ok("workflows", "start", "broken", "b1")
	s.ok("queue", "purge", cliworkflow.DefaultWorkflows+"/queues/broken", "-y")
	m := s.workOnRuns()
	s.ok("workflows", "start", "broken", "b2")
	s.untilShown("b2", "failed")
	s.untilShown("b1", "no member has it")
	m.broken.Store(false)
	s.ok("workflows", "requeue", "b1")
	s.untilShown("b1", "done")
	s.fails(1, "the run has finished", "workflows", "requeue", "b1")
	s.ok("workflows", "remove", "b1")
	s.fails(1, "there is no such run", "workflows", "b1")
}

func TestWorkflowCommandsRefuseBadArguments(t *testing.T) {
	s := newStage(t)
	for _, line := range []string{
		"workflows a b", "workflows --state gone", "workflows a --kind order", "workflows /a/", "workflows a/b",
		"workflows cancel /a", "workflows cancel /a/", "workflows start order /",
		"workflows start order", "workflows start order a b c", "workflows start order a {",
		"workflows start order a {}{}", "workflows start order a text",
		"workflows start order a 1 -f x", "workflows start order a -f /does/not/exist", "workflows start a/b c",
		"workflows signal a", "workflows signal a b {",
		"workflows cancel", "workflows retry a --from=", "workflows retry", "workflows requeue",
		"workflows remove",
	} {
		code, out, errs := s.run(strings.Fields(line)...)
		require.Equal(t, 64, code, "%s: %s", line, errs)
		require.Empty(t, out, line)
	}
	require.NoError(t, os.WriteFile(s.file("one.json"), []byte("1"), 0o600))
	s.fails(cli.ExitUsage, "give one of them", "workflows", "start", "order", "a", "1", "-f", s.file("one.json"))
	for _, line := range []string{"workflows a", "workflows cancel a", "workflows retry a", "workflows requeue a",
		"workflows remove a", "workflows signal a b"} {
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
	require.NoError(t, c.MakeDirs(t.Context(), cliworkflow.DefaultWorkflows+"/runs/00"))
	require.NoError(t, c.Create(t.Context(), cliworkflow.DefaultWorkflows+"/runs/00/foreign", []byte("\x1b[2J"),
		framework.Persistent))
	code, out, errs := s.run("workflows")
	require.Equal(t, cli.ExitMismatch, code, errs)
	require.Contains(t, out, "order-42")
	require.NotContains(t, out, "foreign")
	require.Contains(t, errs, "a run cannot be read")
	require.NotContains(t, errs, "\x1b")
}

// TestAMemberThatCannotBeReadIsNotSaidToBeMissing: the claims of a kind belong to others.
func TestAMemberThatCannotBeReadIsNotSaidToBeMissing(t *testing.T) {
	s := newStage(t)
	s.workOnRuns()
	s.ok("workflows", "start", "slow", "s1")
	s.untilShown("s1", "active", "0x")
	queueOfKind := cliworkflow.DefaultWorkflows + "/queues/odd"
	require.NoError(t, connectAs(t, s, "/", "ann:secret").MakeDirs(t.Context(), queueOfKind))
	node := ""
	for _, n := range s.zk.Tree(cliworkflow.DefaultWorkflows + "/runs") {
		if strings.HasSuffix(n.Path, "/s1") {
			node = n.Path
		}
	}
	c := client(t, s)
	data, _, err := c.Get(t.Context(), node)
	require.NoError(t, err)
	_, err = c.Set(t.Context(), node, []byte(strings.Replace(string(data), `"slow"`, `"odd"`, 1)), framework.AnyVersion)
	require.NoError(t, err)
	for _, args := range [][]string{{"workflows"}, {"workflows", "s1"}, {"workflows", "--json"}} {
		code, out, errs := s.run(args...)
		require.Equal(t, 77, code, args)
		require.Contains(t, errs, `lockstep cannot read which members have runs of kind "odd"`)
		require.Contains(t, out, "s1")
		require.NotContains(t, out, "no member has it")
		require.NotContains(t, out, "until a member")
	}
}

func TestAHostileRunIsEscapedAndKeptInJSON(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	path := cliworkflow.DefaultWorkflows + "/" + hostileName
	plantHostileRuns(func(path, data string, mode framework.Mode) {
		require.NoError(t, c.MakeDirs(t.Context(), path[:strings.LastIndexByte(path, '/')]))
		if err := c.Create(t.Context(), path, []byte(data), mode); err != nil {
			_, err = c.Set(t.Context(), path, []byte(data), framework.AnyVersion)
			require.NoError(t, err)
		}
	}, hostileName, hostileData[1])
	out := s.ok("workflows", path+"/victim")
	require.Regexp(t, `(?m)input +"\\xff\\u202e"$`, out)
	require.Contains(t, out, `waiting  for signal "\x1b[2J\n\u202e\u009b" until 1970-01-01T00:00:00Z`)
	one := decode(t, s.ok("workflows", path+"/victim", "--json"))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\"\xff\u202e\"")), one["input_base64"])
	require.Equal(t, "\x1b[2J\n\u202e\u009b", one["error"])
	code, out, errs := s.run("workflows", path)
	require.Equal(t, cli.ExitMismatch, code, "steps that cannot be read")
	require.Contains(t, out, "victim")
	require.Contains(t, out, "active")
	require.Contains(t, errs, "the steps of a run cannot be read")
	require.Contains(t, errs, "a run cannot be read")
}

// TestARunsNameThatNobodyCanHaveTypedIsNoUsageError: another program has made a run with such a
// name.
func TestARunsNameThatNobodyCanHaveTypedIsNoUsageError(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	node := runNode(cliworkflow.DefaultWorkflows, hostileName)
	require.NoError(t, c.MakeDirs(t.Context(), node[:strings.LastIndexByte(node, '/')]))
	require.NoError(t, c.Create(t.Context(), node,
		[]byte(`{"v":1,"kind":"run","id":"x","workflow":"order","turn":1,"input":0,"state":"failed"}`),
		framework.Persistent))
	code, _, errs := s.run("workflows")
	require.Equal(t, cli.ExitMismatch, code, errs)
	require.Contains(t, errs, "cannot be printed")
}

func TestCompletionOffersRunsAndKinds(t *testing.T) {
	s := newStage(t)
	s.workOnRuns()
	s.ok("workflows", "start", "order", "order-42")
	s.ok("workflows", "start", "slow", "s1")
	s.offers([]string{"order-42"}, "workflows", "retry", "or")
	s.offers([]string{"broken", "order", "slow"}, "workflows", "start", "")
	s.until("the offer of a run", func() bool { return slices.Contains(s.offered("workflows", ""), "s1") })
}

// offers waits until a shell is offered this for the last word of a command line: a completion
// offers nothing when its time is over, as on a busy machine.
func (s *stage) offers(want []string, words ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the offer of %q for %q", want, words),
		func() bool { return slices.Equal(want, s.offered(words...)) })
}

// offered is what a shell offers for the last word of a command line.
func (s *stage) offered(words ...string) (names []string) {
	s.t.Helper()
	out := s.ok(append([]string{"__complete"}, words...)...)
	for line := range strings.Lines(out[:strings.LastIndexByte(out, ':')]) {
		names = append(names, strings.TrimSuffix(line, "\n"))
	}
	return names
}

// TestTopReadsWorkflows from the servers.
func TestTopReadsWorkflows(t *testing.T) {
	s := newStage(t)
	s.workOnRuns()
	s.ok("workflows", "start", "order", "w1")
	s.ok("workflows", "start", "broken", "b1")
	s.untilShown("w1", "waiting")
	s.untilShown("b1", "failed")
	list := s.ok("top", "--once", "--view", "workflows")
	require.Regexp(t, `(?s)b1  .*failed.*w1  .*waiting`, list)
	require.NotContains(t, s.ok("top", "/", "--once", "--view", "workflows", "--filter", "no money"), "w1")
	frame := decode(t, s.ok("top", "--json", "--view", "workflows"))
	require.Equal(t, "/lockstep/workflows/b1", frame["rows"].([]any)[0].(map[string]any)["path"])
}
