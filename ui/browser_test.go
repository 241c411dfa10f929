//go:build unix

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/testkit/browser"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
)

// TestPagesAreAccessible examines each page with axe-core, under the page's own policy, in narrow
// and wide windows and in both colour schemes. It names the pages that have problems.
func TestPagesAreAccessible(t *testing.T) {
	browser.Require(t)
	t.Parallel()
	require.FileExists(t, "../bin/axe.min.js", "make test-tools")
	s := newStage(t, ui.WithActions())
	fill(t, s, "one")
	ctx, end := context.WithCancel(t.Context())
	on := &trouble{stage: s, ctx: ctx}
	t.Cleanup(func() {
		end()
		for _, f := range on.last {
			f()
		}
		on.tasks.Wait()
	})
	run := on.startGraph(t, "one", "first", "stuck after first", "last after stuck,first")
	require.Eventually(t, func() bool { return strings.Contains(text(t, s.get(t, run)), "under way") }, wait, tick)
	all := append(targets("one"), "nothing", run)
	for i := range 4 {
		size, dark := []browser.Size{browser.Narrow, browser.Wide}[i%2], i < 2
		if testing.Short() && dark != (size == browser.Narrow) {
			continue
		}
		t.Run(fmt.Sprintf("%d dark %t", size.Width, dark), func(t *testing.T) {
			p := &browser.Probed{Pages: s.page, Axe: "../bin/axe.min.js", Answers: make(chan string, len(all)), Script: `
// outside names what reaches beyond a page of 360 pixels, which is as wide as a phone: no window is
// as narrow. What scrolls by itself may.
function outside() {
	if (innerWidth > 600) return [];
	document.documentElement.style.width = "360px";
	const scrolls = (e) => e && (getComputedStyle(e).overflowX.match(/auto|scroll/) || scrolls(e.parentElement));
	const found = [...document.querySelectorAll("main *")].filter((e) =>
		e.getBoundingClientRect().right > 361 && !e.closest("svg") && !scrolls(e.parentElement));
	document.documentElement.style.width = "";
	return found.map((e) => e.outerHTML.slice(0, 200));
}
axe.run().then((r) => fetch("answer", {method: "POST", body: JSON.stringify({
	page: location.href, passed: r.passes.length, wide: document.documentElement.scrollWidth > innerWidth,
	outside: outside(), found: r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" "))})}))
	.then((r) => r.text()).then((next) => { if (next) location.href = next; });`}
			next := 1
			p.Reply = func(string) string {
				if next == len(all) {
					return ""
				}
				next++
				return "./" + all[next-1]
			}
			server := httptest.NewServer(p)
			defer server.Close()
			defer server.CloseClientConnections()
			browser.Open(t, server.URL+"/lockstep/"+all[0], size, dark)
			for range all {
				var answer struct {
					Page   string
					Passed int // rules
					Wide   bool
					Found  []string
					// elements that do not fit into 360 pixels
					Outside []string
				}
				require.NoError(t, json.Unmarshal([]byte(<-p.Answers), &answer))
				require.Empty(t, answer.Found, answer.Page)
				require.Greater(t, answer.Passed, 15, answer.Page)
				require.Empty(t, answer.Outside, answer.Page)
				require.False(t, answer.Wide, "%s is wider than the window", answer.Page)
			}
		})
	}
}

// TestAnOpenPageFollows puts an item into a queue: the number on an open page changes.
func TestAnOpenPageFollows(t *testing.T) {
	browser.Require(t)
	s := newStage(t)
	fill(t, s, "one")
	p := &browser.Probed{Pages: s.page, Answers: make(chan string, 100), Script: `
const items = () => document.querySelector("#f-facts dd").firstChild.textContent;
const tell = () => fetch("answer", {method: "POST", body: items()});
tell();
new MutationObserver(tell).observe(document.querySelector("main"), {childList: true, subtree: true});`}
	server := httptest.NewServer(p)
	defer server.Close()
	defer server.CloseClientConnections()
	browser.Open(t, server.URL+"/lockstep/queue?path=/queues/one", browser.Wide, false)
	require.Equal(t, "1", <-p.Answers)
	q := queue.New(s.client, "/queues/one", codec.Text())
	defer q.Close(t.Context())
	require.NoError(t, q.Put(t.Context(), "second"))
	for answer := range p.Answers {
		if answer == "2" {
			return
		}
	}
}
