//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestDeadLettersAreRedrivenByNode(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "a", "b")
	for range 2 {
		s.run("queue", "take", "mails", "--max-attempts", "1", "--", "false")
	}
	require.Equal(t, "0\t0\t2\n", s.ok("queue", "len", "mails"))
	node, _, _ := strings.Cut(s.ok("queue", "dead", "mails"), "\t")
	for _, bad := range [][]string{{}, {node, "--all"}} {
		code, _, _ := s.run(append([]string{"queue", "redrive", "mails"}, bad...)...)
		require.Equal(t, 64, code)
	}
	s.ok("queue", "redrive", "mails", node)
	require.Equal(t, "1\t0\t1\n", s.ok("queue", "len", "mails"))
	code, _, errs := s.run("queue", "redrive", "mails", node)
	require.NotZero(t, code, errs)
	s.ok("queue", "redrive", "mails", "--all")
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

// TestAMistypedQueueIsNotMade: an operator who mistypes a name must not believe that the queue is paused.
func TestAMistypedQueueIsNotMade(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "a")
	for _, line := range []string{"pause mail", "resume mail", "purge mail -y", "inflight mail", "redrive mail --all", "set mail --capacity 3", "cancel mail x", "dead mail"} {
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
