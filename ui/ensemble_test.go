//go:build unix

package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
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

var onEnsemble = flag.Bool("ensemble", false, "click through the page on real servers that are killed")

// visitorScript tells the test what the page shows, now and after each change, and does what the test
// replies. One report is under way at a time.
const visitorScript = `
let sending = false, changed = false;
async function report() {
	changed = true;
	if (sending) return;
	sending = true;
	while (changed) {
		changed = false;
		const reply = await fetch("answer", {method: "POST", body: JSON.stringify({
			url: location.href, text: document.body.innerText,
			done: !!document.querySelector("[aria-label=Done]"),
			stale: !!document.querySelector(".page.stale"),
			buttons: [...document.querySelectorAll("a.button[href^='confirm?']")].map((a) => a.getAttribute("href"))})});
		const order = await reply.json();
		if (order.signal) document.querySelector("input[name=signal]").value = order.signal;
		if (order.click) document.querySelector(order.click).click();
		if (order.go) location.href = order.go;
	}
	sending = false;
}
report();
new MutationObserver(report).observe(document.body, {childList: true, subtree: true, characterData: true});`

// shown is what a page shows.
type shown struct {
	URL, Text   string
	Done, Stale bool
	Buttons     []string
}

type order struct {
	Go     string `json:"go,omitempty"`
	Click  string `json:"click,omitempty"`
	Signal string `json:"signal,omitempty"`
}

// visitor is somebody with a browser.
type visitor struct {
	ctx     context.Context // its end fails the test
	reports chan visitorReport
	reply   chan order // of the report for which await returned
	visits  int
}

type visitorReport struct {
	shown
	reply chan order
}

// await returns what a page shows when it fits.
func (v *visitor) await(t *testing.T, what string, fits func(shown) bool) shown {
	t.Helper()
	if v.reply != nil {
		v.reply <- order{}
		v.reply = nil
	}
	var last shown
	for {
		select {
		case r := <-v.reports:
			if last = r.shown; fits(last) {
				v.reply = r.reply
				return last
			}
			r.reply <- order{}
		case <-v.ctx.Done():
			require.Fail(t, "the page does not show "+what, "%s\n%s\n%v", last.URL, last.Text, last.Buttons)
		}
	}
}

// order does something on the page that await has returned.
func (v *visitor) order(o order) {
	v.reply <- o
	v.reply = nil
}

// visit goes to a page and waits until it fits.
func (v *visitor) visit(t *testing.T, target, what string, fits func(shown) bool) shown {
	t.Helper()
	v.visits++
	mark := fmt.Sprintf("visit=%d", v.visits)
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	v.order(order{Go: "./" + target + separator + mark})
	return v.await(t, what, func(s shown) bool { return strings.HasSuffix(s.URL, mark) && fits(s) })
}

// act presses a button on a page, and that of its confirmation.
func (v *visitor) act(t *testing.T, target, do string) {
	t.Helper()
	href := "confirm?do=" + do + "&"
	v.visit(t, target, "the button "+do, func(s shown) bool {
		for _, button := range s.Buttons {
			if strings.HasPrefix(button, href) {
				return true
			}
		}
		return false
	})
	v.order(order{Click: `a.button[href^="` + href + `"]`})
	v.await(t, "the confirmation of "+do, func(s shown) bool { return strings.Contains(s.URL, href) })
	o := order{Click: `form[action^="act?"] button`}
	if do == string(ui.ActionSignalRun) {
		o.Signal = "approved"
	}
	v.order(o)
	v.await(t, "that "+do+" is done", func(s shown) bool { return s.Done })
}

// TestThePageOnAnEnsemble clicks through the page in Chromium, with three real servers: each page, and
// each action with its confirmation. Then a follower is killed, the leader, and the majority: changes
// arrive on the open page, and it says when there is no answer, and recovers.
func TestThePageOnAnEnsemble(t *testing.T) {
	if !*onEnsemble {
		t.Skip("left out: make test-page")
	}
	browser.Require(t)
	servers := ensemble.Private(t, ensemble.Config{NoFsync: true, Tick: 2 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := &stage{real: servers.Addrs()}
	s.client = s.member(t, "page", "page")
	page, err := ui.New(s.client, ui.WithActions())
	require.NoError(t, err)
	t.Cleanup(page.Close)
	s.page = page
	fill(t, s, "one")
	fillMore(t, s)

	v := &visitor{ctx: ctx, reports: make(chan visitorReport)}
	p := &probed{pages: page, script: visitorScript}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/answer") {
			p.ServeHTTP(w, r)
			return
		}
		one := visitorReport{reply: make(chan order, 1)}
		if json.NewDecoder(r.Body).Decode(&one.shown) != nil {
			return // the page was left
		}
		select {
		case v.reports <- one:
			select {
			case o := <-one.reply:
				_ = json.NewEncoder(w).Encode(o)
			case <-ctx.Done():
			}
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	browser.Open(t, server.URL+"/lockstep/", browser.Wide, false)
	v.await(t, "the overview", func(s shown) bool { return strings.Contains(s.Text, "Seen") })

	for _, target := range append(targets("one"), "workflow?path=/flows&id=run") {
		v.visit(t, target, target, func(s shown) bool { return strings.Contains(s.Text, "Seen") })
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
		v.act(t, a.target, a.do)
	}

	v.visit(t, "locks", "the locks", func(s shown) bool { return strings.Contains(s.Text, "Seen") })
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
		v.await(t, path, func(s shown) bool { return !s.Stale && strings.Contains(s.Text, path) })
	}
	follower := servers.Followers()[0]
	require.NoError(t, servers.Kill(follower))
	appears("locks/without-a-follower")
	require.NoError(t, servers.Restart(follower))
	require.NoError(t, servers.Await(ctx))
	leader := servers.Leader()
	require.NoError(t, servers.Kill(leader))
	appears("locks/without-the-leader")
	other := (leader + 1) % servers.Size()
	require.NoError(t, servers.Kill(other))
	away := v.await(t, "the outage", func(s shown) bool { return s.Stale })
	require.Contains(t, away.Text, "No answer from ZooKeeper since")
	require.Contains(t, away.Text, "locks/without-the-leader", "it keeps what it has seen")
	for _, address := range servers.Addrs() {
		require.Contains(t, away.Text, address)
	}
	require.NoError(t, servers.Restart(leader))
	require.NoError(t, servers.Restart(other))
	v.await(t, "that servers answer again", func(s shown) bool { return !s.Stale })
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
