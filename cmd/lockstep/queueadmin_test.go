//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestQueuesAreListedAndControlled(t *testing.T) {
	s := newStage(t)
	_, _, errs := s.run("queue", "ls")
	require.Contains(t, errs, "no queues at or below /lockstep/queues")
	s.ok("queue", "put", "mails", "a", "b")
	s.ok("queue", "put", "team/\u202emails", "--strict", "c")
	list := s.ok("queue", "ls")
	require.Contains(t, list, "mails")
	require.NotContains(t, list, "\u202e")
	require.NotContains(t, list, "paused")
	s.ok("queue", "pause", "mails")
	require.Contains(t, s.ok("queue", "ls"), "paused")
	first, _, _ := strings.Cut(s.ok("queue", "ls", "--json"), "\n")
	one := decode(t, first)
	require.Equal(t, "/lockstep/queues/mails", one["path"])
	require.Equal(t, true, one["paused"])
	require.Equal(t, 2.0, one["items"])
	s.ok("queue", "resume", "mails")
	require.NotContains(t, s.ok("queue", "ls"), "paused")

	code, _, errs := s.run("queue", "purge", "mails")
	require.Equal(t, 64, code)
	require.Contains(t, errs, "give -y if you are sure")
	_, _, errs = s.run("queue", "purge", "mails", "-y")
	require.Contains(t, errs, "2 items removed")
	require.Equal(t, "0\t0\t0\n", s.ok("queue", "len", "mails"))
	code, _, _ = s.run("queue", "ls", "x")
	require.Equal(t, 1, code)
}

func TestDeadLettersAreRequeuedByNode(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "a", "b")
	for range 2 {
		s.run("queue", "take", "mails", "--max-attempts", "1", "--", "false")
	}
	require.Equal(t, "0\t0\t2\n", s.ok("queue", "len", "mails"))
	node, _, _ := strings.Cut(s.ok("queue", "dead", "mails"), "\t")
	for _, bad := range [][]string{{}, {node, "--all"}} {
		code, _, _ := s.run(append([]string{"queue", "requeue", "mails"}, bad...)...)
		require.Equal(t, 64, code)
	}
	s.ok("queue", "requeue", "mails", node)
	require.Equal(t, "1\t0\t1\n", s.ok("queue", "len", "mails"))
	code, _, errs := s.run("queue", "requeue", "mails", node)
	require.NotZero(t, code, errs)
	s.ok("queue", "requeue", "mails", "--all")
	require.Equal(t, "2\t0\t0\n", s.ok("queue", "len", "mails"))
}

func TestItemsInFlightAreListed(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "idle", "x")
	_, _, errs := s.run("queue", "inflight", "idle")
	require.Contains(t, errs, "no consumer has an item")
	for _, order := range []string{"", "--strict"} {
		name := "mails" + order
		s.ok(strings.Fields("queue put " + name + " ann bob " + order)...)
		require.Empty(t, s.ok("queue", "inflight", name))
		s.as("worker").start("queue", "take", name, "--", "sleep", "1000")
		s.until("a claim", func() bool { return strings.Contains(s.ok("queue", "inflight", name), "ann") })
		require.NotContains(t, s.ok("queue", "inflight", name), "bob")
		v := decode(t, s.ok("queue", "inflight", name, "--json"))
		require.Equal(t, "ann", v["item"])
		require.NotEqual(t, "0x0", v["session"])
		require.NotEmpty(t, v["since"])
		if order != "" {
			require.Equal(t, "worker", v["owner"])
		}
	}
}

// TestItemIsTakenBackFromAConsumer that is alive: the next one gets it, and the command of the
// former one ends.
func TestItemIsTakenBackFromAConsumer(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "ann", "--id", "order-17", "--dedup", "1h")
	code, _, errs := s.run("queue", "return", "mails", "order-17", "-y")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no consumer has an item order-17 of /lockstep/queues/mails")
	require.Contains(t, errs, "lockstep queue inflight mails")
	take := func(name string) *process {
		return s.as(name).start("queue", "take", "mails", "--follow", "--", "sh", "-c",
			`echo "$LOCKSTEP_ATTEMPT" >>"$DIR/"`+name+`; sleep 1000`)
	}
	first := take("first")
	s.until("the item", func() bool { return read(s.file("first")) == "1\n" })
	claim := decode(t, s.ok("queue", "inflight", "mails", "--json"))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, []any{"first", host, float64(first.cmd.Process.Pid), 1.0},
		[]any{claim["owner"], claim["host"], claim["pid"], claim["attempt"]})
	table := s.ok("queue", "inflight", "mails")
	require.Contains(t, table, "HOST")
	require.Contains(t, table, fmt.Sprint(first.cmd.Process.Pid))
	second := take("second")
	s.until("the second in line", func() bool { return len(s.zk.Children("/lockstep/queues/mails/lock")) == 2 })
	code, _, errs = s.run("queue", "return", "mails", "order-17")
	require.Equal(t, 64, code)
	require.Contains(t, errs, "give -y if you are sure")
	_, _, errs = s.run("queue", "return", "mails", "order-17", "-y")
	require.Contains(t, errs, fmt.Sprintf("order-17: taken from first (%s, process %d, session 0x", host,
		first.cmd.Process.Pid))
	s.until("the next attempt", func() bool { return read(s.file("first"))+read(s.file("second")) != "1\n" })
	require.Contains(t, []string{"1\n2\n", "1\n"}, read(s.file("first")))
	require.Equal(t, "1\n2\n", read(s.file("first"))+read(s.file("second")), "either gets it")
	claim = decode(t, s.ok("queue", "inflight", "mails", "--json"))
	node := strings.TrimPrefix(claim["node"].(string), "/lockstep/queues/mails/")
	s.ok("queue", "return", "mails", node, "-y")
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		p.wait()
	}

	s.ok("queue", "put", "strict", "--strict", "ann")
	s.as("worker").start("queue", "take", "strict", "--", "sleep", "1000")
	s.until("a claim", func() bool { return strings.Contains(s.ok("queue", "inflight", "strict"), "ann") })
	item := decode(t, s.ok("queue", "inflight", "strict", "--json"))["node"].(string)
	code, _, errs = s.run("queue", "return", "strict", item, "-y")
	require.Equal(t, cli.ExitMismatch, code)
	require.Contains(t, errs, "lockstep release /lockstep/queues/strict/lock --node NODE")
	holders := decode(t, s.ok("locks", "/lockstep/queues/strict/lock", "--json"))["holders"].([]any)
	holder := holders[0].(map[string]any)["node"].(string)
	s.ok("release", "/lockstep/queues/strict/lock", "--node", holder, "-y")
}

// TestItemsThatFailAgainAndAgainAreShown in lists, in JSON, and as a finding with what to do next.
func TestItemsThatFailAgainAndAgainAreShown(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "team-of-billing/mails", "bob", "--id", "order-17-of-a-customer-with-a-long-name",
		"--dedup", "1h")
	require.NotContains(t, s.ok("queue", "ls"), "ATTEMPTS")
	for range 2 {
		s.run("queue", "take", "team-of-billing/mails", "--", "sh", "-c", "echo no disk >&2; exit 3")
	}
	list := s.ok("queue", "ls")
	require.Regexp(t, `RETRIED  MOST ATTEMPTS`, list)
	require.Regexp(t, `1 +2: order-17-of-a-customer-with-a-long-name\n`, list, "whole, to be copied")
	one := decode(t, s.ok("queue", "ls", "--json"))
	retried := one["retried"].(map[string]any)
	require.Equal(t, []any{1.0, 2.0, "order-17-of-a-customer-with-a-long-name"},
		[]any{retried["items"], retried["attempts"], retried["id"]})
	require.Contains(t, retried["last_error"], "exit code 3")
	s.ok("check")
	code, out, _ := s.run("check", "--failing-item", "2")
	require.Equal(t, 1, code)
	require.Contains(t, out,
		"/lockstep/queues/team-of-billing/mails\tfailing item\titem \"order-17-of-a-customer-with-a-long-name\" has "+
			"come back after 2 attempts; its last error: ")
	require.Contains(t, out, "; see it with lockstep queue ls /lockstep/queues/team-of-billing/mails --json; ")
	code, out, _ = s.run("check", "--failing-item", "2", "--json")
	require.Equal(t, 1, code)
	require.Contains(t, decode(t, out)["advice"], "lockstep queue ls")
	s.ok("check", "--failing-item", "2", "--without", "failing item")
	code, _, errs := s.run("check", "--failing-item", "0")
	require.Equal(t, 64, code)
	require.Contains(t, errs, "WithFailingItem: 0, it must be at least 1")

	s.start("queue", "take", "team-of-billing/mails", "--", "sleep", "1000")
	s.until("the held item", func() bool {
		code, out, _ = s.run("check", "--held-item", "1ms")
		return code == 1
	})
	require.Contains(t, out, "\theld item\t")
	require.Contains(t, out, "at attempt 3; see who has it with lockstep queue inflight team-of-billing/mails")
}

// TestAMistypedQueueIsNotMade: an operator who mistypes a name must not believe that the queue is
// paused.
func TestAMistypedQueueIsNotMade(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "a")
	for _, line := range []string{"pause mail", "resume mail", "purge mail -y", "inflight mail", "requeue mail --all",
		"set mail --capacity 3", "cancel mail x", "dead mail", "return mail x -y"} {
		code, _, errs := s.run(append([]string{"queue"}, strings.Fields(line)...)...)
		require.Equal(t, 1, code, line)
		require.Contains(t, errs, "there is no queue /lockstep/queues/mail: the first put creates it", line)
		require.Contains(t, errs, "lockstep queue ls", line)
	}
	code, out, errs := s.run("queue", "len", "mail")
	require.Zero(t, code)
	require.Equal(t, "0\t0\t0\n", out)
	require.Contains(t, errs, "there is no queue /lockstep/queues/mail")
	_, _, errs = s.run("queue", "dead", "mails")
	require.Contains(t, errs, "/lockstep/queues/mails has no dead letters")
	_, made := s.zk.Node("/lockstep/queues/mail")
	require.False(t, made)
	require.Equal(t, "1\t0\t0\n", s.ok("queue", "len", "mails"))
}
