//go:build unix

package ui_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/browser"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
)

// act presses a button on a page, and that of its confirmation.
func act(t *testing.T, v *browser.Visitor, target, do string) {
	t.Helper()
	href := "confirm?do=" + do + "&"
	v.Go(t, target, "the button "+do, func(s browser.Shown) bool {
		for _, button := range s.Buttons {
			if strings.HasPrefix(button, href) {
				return true
			}
		}
		return false
	})
	v.Do(browser.Order{Click: `a.button[href^="` + href + `"]`})
	v.Await(t, "the confirmation of "+do, func(s browser.Shown) bool { return strings.Contains(s.URL, href) })
	o := browser.Order{Click: `form[action^="act?"] button`}
	if do == string(ui.ActionSignalRun) {
		o.Signal = "approved"
	}
	v.Do(o)
	v.Await(t, "that "+do+" is done", func(s browser.Shown) bool { return s.Did })
}

// TestThePageOnAnEnsemble clicks through the page in Chromium, with three real servers: each page,
// and each action with its confirmation. Then a follower is killed, the leader, and the majority:
// changes arrive on the open page, and it says when there is no answer, and recovers.
func TestThePageOnAnEnsemble(t *testing.T) {
	browser.Require(t)
	t.Parallel() // it waits most of the time
	servers := ensemble.Private(t, ensemble.Config{NoFsync: true, Tick: 2 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s := &stage{real: servers.Addrs()}
	s.client = s.member(t, "page", "page")
	page, err := ui.New(s.client, ui.WithActions())
	require.NoError(t, err)
	t.Cleanup(page.Close)
	s.page = page
	fill(t, s, "one")
	fillMore(t, s)

	v := browser.Visit(ctx, t, page)
	for _, target := range append(targets("one"), "workflow?path=/flows&id=run") {
		v.Go(t, target, target, func(s browser.Shown) bool { return strings.Contains(s.Text, "Seen") })
	}
	for _, a := range []struct{ target, do string }{
		{"lock?path=/locks/one", "revoke"}, {"lock?path=/locks/one", "evict"},
		{"election?path=/elections/two", "transfer"},
		{"job?path=/jobs/one", "trigger"}, {"job?path=/jobs/one", "pause-job"}, {"job?path=/jobs/one", "resume-job"},
		{"queue?path=/queues/one", "pause-queue"}, {"queue?path=/queues/one", "resume-queue"},
		{"queue?path=/queues/dead-1", "requeue"}, {"queue?path=/queues/dead-2", "purge-dead"},
		{"workflow?path=/flows&id=run", "signal"}, {"workflow?path=/flows&id=run", "cancel"},
		{"workflow?path=/flows&id=run", "retry"},
		{"group?path=/groups/one", "cordon"}, {"group?path=/groups/one", "uncordon"},
		{"group?path=/groups/two", "drain"},
		{"value?path=/config/one", "rollback"},
	} {
		act(t, v, a.target, a.do)
	}

	allRoles := func() {
		t.Helper()
		roles := regexp.MustCompile(`127\.0\.0\.1:\d+\s+(leader|follower)\b`)
		v.Go(t, "", "three roles", func(s browser.Shown) bool { return len(roles.FindAllString(s.Text, -1)) == 3 })
		v.Go(t, "locks", "the locks", func(s browser.Shown) bool { return strings.Contains(s.Text, "Seen") })
	}
	allRoles()
	// appears takes a lock, which the open page must show.
	appears := func(path string) {
		t.Helper()
		client := s.member(t, path, path) // a page writes no leading slash
		for {
			_, err := locks.NewMutex(client, "/"+path).Lock(ctx)
			if err == nil {
				break
			}
			require.NoError(t, ctx.Err(), "%s: %v", path, err)
		}
		v.Await(t, path, func(s browser.Shown) bool { return !s.Stale && strings.Contains(s.Text, path) })
	}
	follower := servers.Followers()[0]
	require.NoError(t, servers.Kill(follower))
	appears("locks/without-a-follower")
	v.Go(t, "", "which server is away", func(s browser.Shown) bool {
		return strings.Contains(s.Text, "1 of 3 servers away") && regexp.MustCompile(
			regexp.QuoteMeta(servers.Addrs()[follower])+` since \d\d:\d\d:\d\d: .*refused`).MatchString(s.Text)
	})
	require.NoError(t, servers.Restart(follower))
	require.NoError(t, servers.Await(ctx))
	allRoles()
	leader := servers.Leader()
	require.NoError(t, servers.Kill(leader))
	appears("locks/without-the-leader")
	other := (leader + 1) % servers.Size()
	require.NoError(t, servers.Kill(other))
	away := v.Await(t, "the outage", func(s browser.Shown) bool { return s.Stale })
	require.Contains(t, away.Text, "No answer from ZooKeeper since")
	require.Contains(t, away.Text, "locks/without-the-leader", "it keeps what it has seen")
	for _, address := range servers.Addrs() {
		require.Contains(t, away.Text, address)
	}
	require.NoError(t, servers.Restart(leader))
	require.NoError(t, servers.Restart(other))
	v.Await(t, "that servers answer again", func(s browser.Shown) bool { return !s.Stale })
	appears("locks/after-all")
}

// fillMore makes what fill does not: an election that heeds requests, a member that drains, dead
// letters, a barrier and a run.
func fillMore(t *testing.T, s *stage) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := s.member(t, "more", "more")
	var ended sync.WaitGroup
	for _, id := range []string{"first", "second"} {
		ended.Go(func() {
			_ = election.New(client, "/elections/two", election.WithID(id)).Lead(ctx,
				func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil })
		})
	}
	ended.Go(func() { _, _ = barrier.NewDoubleBarrier(client, "/barriers/one", 3).Enter(ctx) })
	t.Cleanup(func() { cancel(); ended.Wait() })
	for _, path := range []string{"/queues/dead-1", "/queues/dead-2"} {
		q := queue.New(client, path, codec.Text(), queue.WithMaxAttempts(1))
		require.NoError(t, q.Put(ctx, "item"))
		d, err := q.Take(ctx)
		require.NoError(t, err)
		require.NoError(t, d.Nack(ctx, 0, errors.New("fails")))
		require.NoError(t, q.Close(ctx))
	}
	member, err := members.New(client, "/groups/two").Join(ctx, "drains", members.Info{},
		members.WithDrain(func(context.Context, members.Cordon) error { return nil }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = member.Leave(context.Background()) })
	flows := workflow.New(client, "/flows")
	_, err = workflow.NewKind[string, string]("kind").Start(ctx, flows, "run", "input")
	require.NoError(t, err)
	require.NoError(t, flows.Close(ctx))
}
