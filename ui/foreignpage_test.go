//go:build unix

package ui_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/testkit/browser"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
)

// foreignScript tries everything that a page can do with another page, whose address and the query
// of whose action it has as its own query, and posts what has come of it to "answer".
const foreignScript = `
const query = new URLSearchParams(location.search);
const page = query.get("page"), act = page + "act?" + query.get("act");
const form = {method: "POST", body: new URLSearchParams(query.get("act"))};
const tried = (promise) => promise.then((r) => r.type + " " + r.status, (e) => "refused");
function load(element, begin) {
	return new Promise((loaded) => {
		element.onload = () => loaded("loaded");
		element.onerror = () => loaded("refused");
		document.body.append(element);
		begin?.();
	});
}
function post() {
	const frame = document.createElement("iframe"), form = document.createElement("form");
	frame.name = "posted";
	Object.assign(form, {method: "post", action: act, target: "posted"});
	document.body.append(frame, form);
	return new Promise((done) => { frame.onload = () => done("loaded"); form.submit(); });
}
(async () => {
	const found = {
		act: await tried(fetch(act, {...form, credentials: "include"})),
		actWithoutCORS: await tried(fetch(act, {...form, mode: "no-cors", credentials: "include"})),
		actAsJSON: await tried(fetch(act, {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}})),
		actByGet: await tried(fetch(act, {mode: "no-cors"})),
		theme: await tried(fetch(page + "theme", {method: "POST", mode: "no-cors", body: new URLSearchParams("theme=dark")})),
		examine: await tried(fetch(page + "examine", {method: "POST", mode: "no-cors"})),
		read: await tried(fetch(page + "locks.json")),
		script: await load(Object.assign(document.createElement("script"), {src: page + "locks.json"})),
		frame: await load(Object.assign(document.createElement("iframe"), {src: page + "locks"})),
		form: await post(),
		stream: await new Promise((ended) => {
			const stream = new EventSource(page + "events?page=locks");
			stream.onopen = () => ended("opened");
			stream.onmessage = () => ended("message");
			stream.onerror = () => { stream.close(); ended("refused"); };
		}),
	};
	await fetch("answer", {method: "POST", body: JSON.stringify(found)});
})();`

// asked is a request to a page, and the answer's status.
type asked struct {
	method, host, name, site string
	status                   int
}

// watched serves pages and remembers the requests, except those below /foreign/, which other
// serves.
type watched struct {
	pages, other http.Handler

	mu  sync.Mutex
	all []*asked
}

func (w *watched) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/foreign/") {
		w.other.ServeHTTP(out, r)
		return
	}
	one := &asked{r.Method, r.Host, path.Base(r.URL.Path), r.Header.Get("Sec-Fetch-Site"), http.StatusOK}
	w.mu.Lock()
	w.all = append(w.all, one)
	w.mu.Unlock()
	answer := &withStatus{ResponseWriter: out, status: http.StatusOK}
	w.pages.ServeHTTP(answer, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	one.status = answer.status
}

// take returns the requests since the last call.
func (w *watched) take() (all []asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		all = append(all, *one)
	}
	w.all = nil
	return all
}

type withStatus struct {
	http.ResponseWriter
	status int
}

func (w *withStatus) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *withStatus) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// foreignPage serves a page with the foreign script, and takes what it has found.
func foreignPage(found chan<- map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "answer" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!doctype html><title>Foreign</title><body><script>"+foreignScript+"</script>")
			return
		}
		var one map[string]string
		if err := json.NewDecoder(r.Body).Decode(&one); err == nil {
			found <- one
		}
	})
}

// TestAForeignPageCannotAct has a page of another port, of another host name, and of a host name
// that was pointed at the page's address in the meantime (DNS rebinding) try in Chromium to act, to
// read and to frame. Then the page itself acts, in the same way: else the test would prove nothing.
func TestAForeignPageCannotAct(t *testing.T) {
	browser.Require(t)
	s := newStage(t, ui.WithActions())
	fill(t, s, "one")
	q := queue.New(s.client, "/queues/one", codec.Text())
	defer q.Close(t.Context())
	isPaused := func() bool {
		paused, err := q.Paused(t.Context())
		require.NoError(t, err)
		return paused
	}
	found := make(chan map[string]string, 1)
	foreign := httptest.NewServer(foreignPage(found))
	defer foreign.Close()
	w := &watched{pages: s.page, other: foreignPage(found)}
	server := httptest.NewServer(w)
	defer server.Close()
	defer server.CloseClientConnections()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	_, foreignPort, err := net.SplitHostPort(foreign.Listener.Addr().String())
	require.NoError(t, err)
	act := s.form(t, "queue?path=/queues/one", "pause-queue").Encode()

	visit := func(address, page string) map[string]string {
		t.Helper()
		query := url.Values{"page": {page}, "act": {act}}
		closePage := browser.Open(t, address+"?"+query.Encode(), browser.Wide, false,
			"--host-resolver-rules=MAP *.test 127.0.0.1", "--disable-features=HttpsUpgrades")
		defer closePage()
		return <-found
	}
	unread := map[string]string{"act": "refused", "actWithoutCORS": "opaque 0", "actAsJSON": "refused",
		"actByGet": "opaque 0", "theme": "opaque 0", "examine": "opaque 0", "read": "refused", "script": "refused",
		"frame": "loaded", "form": "loaded", "stream": "refused"}
	for _, c := range []struct{ foreign, site string }{
		{"http://127.0.0.1:" + foreignPort, "same-site"}, {"http://evil.test:" + foreignPort, "cross-site"},
	} {
		require.Equal(t, unread, visit(c.foreign+"/foreign/", server.URL+"/lockstep/"), c.foreign)
		posts := 0
		for _, a := range w.take() {
			require.Equal(t, c.site, a.site, "%v", a)
			require.NotContains(t, []string{"live.js", "lockstep.css"}, a.name, "no page is shown in a frame")
			if a.method == http.MethodPost {
				posts++
				require.Equal(t, http.StatusForbidden, a.status, "%v", a)
			}
		}
		require.Equal(t, 5, posts, "act with and without CORS, theme, examine and a form reach the page")
		require.False(t, isPaused(), c.foreign)
	}

	rebound := "http://rebound.test:" + port
	answers := visit(rebound+"/foreign/", rebound+"/lockstep/")
	for what, answer := range map[string]string{"act": "basic 421", "actAsJSON": "basic 421", "read": "basic 421",
		"theme": "basic 421", "stream": "refused"} {
		require.Equal(t, answer, answers[what], what)
	}
	for _, a := range w.take() {
		if a.name != "events" { // its answer is sent before its handler returns
			require.Equal(t, http.StatusMisdirectedRequest, a.status, "%v", a)
		}
	}
	require.False(t, isPaused())

	itself := visit(server.URL+"/foreign/", server.URL+"/lockstep/")
	require.Equal(t, "basic 200", itself["read"], "%v", itself)
	require.Equal(t, "opened", itself["stream"], "%v", itself)
	require.True(t, isPaused(), fmt.Sprint(itself, w.take()))
}
