//go:build unix

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Probed serves pages with one more script, which their policy permits since it has their origin.
// What the script posts to "answer" comes out of Answers.
type Probed struct {
	Pages   http.Handler
	Script  string
	Axe     string // the file of axe-core, or ""
	Answers chan string
	Reply   func(answer string) string // nil: an empty reply
}

func (p *Probed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path.Base(r.URL.Path) {
	case "probe.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, p.Script)
	case "axe.min.js":
		http.ServeFile(w, r, p.Axe)
	case "answer":
		answer, _ := io.ReadAll(r.Body)
		if p.Reply != nil {
			_, _ = io.WriteString(w, p.Reply(string(answer)))
		}
		p.Answers <- string(answer)
	case "events", "lockstep.css", "live.js":
		p.Pages.ServeHTTP(w, r)
	default:
		page := httptest.NewRecorder()
		p.Pages.ServeHTTP(page, r)
		for name, values := range page.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(page.Code)
		scripts := `<script src="probe.js" defer></script></head>`
		if p.Axe != "" {
			scripts = `<script src="axe.min.js"></script>` + scripts
		}
		_, _ = io.WriteString(w, strings.Replace(page.Body.String(), "</head>", scripts, 1))
	}
}

// visitorScript tells the visitor what the page shows, now and after each change, and does what the
// visitor replies. One report is under way at a time. A change of the page may take an element away
// before it is clicked, and a reply may be lost: done says which order the page has carried out
// last.
const visitorScript = `
const page = String(Math.random());
let sending = false, changed = false, done = 0;
const linkOf = (text) => [...document.querySelectorAll("a")].find((a) => a.textContent.trim().startsWith(text));
function carryOut(order) {
	const element = order.click ? document.querySelector(order.click) : order.link ? linkOf(order.link) : null;
	if (!element && !order.go) return;
	done = order.number;
	if (order.signal) document.querySelector("input[name=signal]").value = order.signal;
	if (element) element.click();
	else location.href = order.go;
}
async function report() {
	changed = true;
	if (sending) return;
	sending = true;
	while (changed) {
		changed = false;
		try {
			const reply = await fetch("answer", {method: "POST", body: JSON.stringify({
				page: page, done: done, url: location.href, text: document.body.innerText,
				did: !!document.querySelector("[aria-label=Done]"),
				stale: !!document.querySelector(".page.stale"),
				links: [...document.querySelectorAll("a")].map((a) => a.textContent.trim()),
				buttons: [...document.querySelectorAll("a.button[href^='confirm?']")].map((a) => a.getAttribute("href"))})});
			carryOut(await reply.json());
		} catch { // the connection was lost, or the page is being left
			await new Promise((again) => setTimeout(again, 100));
			changed = true;
		}
	}
	sending = false;
}
report();
new MutationObserver(report).observe(document.body, {childList: true, subtree: true, characterData: true});`

// Shown is what the visitor's page shows.
type Shown struct {
	URL, Text  string
	Did, Stale bool     // it says that an action was done; that no server answers
	Links      []string // their texts
	Buttons    []string // where they lead
}

// Order is what a visitor does: go to a page, click the element of a selector, or the first link
// whose text begins so. Signal is typed before that.
type Order struct {
	Go     string `json:"go,omitempty"`
	Click  string `json:"click,omitempty"`
	Link   string `json:"link,omitempty"`
	Signal string `json:"signal,omitempty"`
	Number int    `json:"number"`
}

// Visitor is somebody with a browser, who looks at the pages of the web page.
type Visitor struct {
	ctx     context.Context // its end fails the test
	reports chan visitorReport
	latest  visitorReport // for which Await has returned; its reply is nil after Do
	order   Order         // the latest one
	sentTo  string        // the page that got it
	visits  int
}

type visitorReport struct {
	Shown
	Page  string // another one after each navigation
	Done  int    // the number of the latest order that this page has carried out
	reply chan Order
}

// Visit opens the overview of pages in a wide window, below the prefix /lockstep/.
func Visit(ctx context.Context, t testing.TB, pages http.Handler) *Visitor {
	t.Helper()
	v := &Visitor{ctx: ctx, reports: make(chan visitorReport)}
	probed := &Probed{Pages: pages, Script: visitorScript}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "answer" {
			probed.ServeHTTP(w, r)
			return
		}
		one := visitorReport{reply: make(chan Order, 1)}
		if json.NewDecoder(r.Body).Decode(&one) != nil {
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
	Open(t, server.URL+"/lockstep/", Wide, false)
	v.Await(t, "the overview", func(s Shown) bool { return strings.Contains(s.Text, "Seen") })
	return v
}

// Await returns what the page shows when it fits. It repeats the latest order to a page that has
// not carried it out.
func (v *Visitor) Await(t testing.TB, what string, fits func(Shown) bool) Shown {
	t.Helper()
	for {
		switch {
		case v.latest.reply == nil:
		case fits(v.latest.Shown):
			return v.latest.Shown
		case v.latest.Page == v.sentTo && v.latest.Done < v.order.Number:
			v.latest.reply <- v.order
		default:
			v.latest.reply <- Order{}
		}
		select {
		case v.latest = <-v.reports:
		case <-v.ctx.Done():
			require.Fail(t, "the page does not show "+what, "%s\n%s\n%v", v.latest.URL, v.latest.Text, v.latest.Buttons)
		}
	}
}

// Do does something on the page that Await has returned.
func (v *Visitor) Do(o Order) {
	o.Number = v.order.Number + 1
	v.order, v.sentTo = o, v.latest.Page
	v.latest.reply <- o
	v.latest.reply = nil
}

// Go goes to a page and waits until it fits.
func (v *Visitor) Go(t testing.TB, target, what string, fits func(Shown) bool) Shown {
	t.Helper()
	v.visits++
	mark := fmt.Sprintf("visit=%d", v.visits)
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	v.Do(Order{Go: "./" + target + separator + mark})
	return v.Await(t, what, func(s Shown) bool { return strings.HasSuffix(s.URL, mark) && fits(s) })
}
