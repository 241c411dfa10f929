package main

import (
	"bufio"
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTheTourIsOnThePage until the program ends, beside the members of which one was killed.
func TestTheTourIsOnThePage(t *testing.T) {
	t.Parallel()
	cmd := testproc.Command("--ui", "--duration", "5s")
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test fails
	lines := bufio.NewScanner(output)
	var address string
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "the page is at ")
	}
	require.NotEmpty(t, address)
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, output)
	}()
	defer http.DefaultClient.CloseIdleConnections()
	page := func(name string) string {
		r, err := http.Get(address + name)
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	for name, want := range map[string]string{"locks": "invoice-numbers", "elections": "orders", "queues": "invoices",
		"jobs": "ledger-close", "job?path=/cluster/heartbeat": "member-",
		"group?path=/members/billing": "disk is to be replaced", "service?path=/services/billing": "connection refused",
		"value?path=/config/billing": "bank is slow", "workflow?path=/orders&id=order-7713": "paid",
		"workflow?path=/orders&id=order-7714": "carrier", "lock?path=/locks/ledger": "billing-5-417"} {
		require.Eventually(t, func() bool { return strings.Contains(page(name), want) }, time.Minute,
			100*time.Millisecond, name)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	<-rest
	require.NoError(t, cmd.Wait())
}

// question is a row of the table in docs/ui.md.
type question struct {
	text    string
	clicks  []string // the beginnings of links' texts
	answers []string // texts on the last page
}

func questionsOfPage(t *testing.T) (all []question) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/ui.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(doc),
		"| question | from the overview | clicks | seconds | the page says |\n|---|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		require.Len(t, cells, 5, row)
		q := question{text: cells[0]}
		if cells[1] != "(no click)" {
			q.clicks = strings.Split(cells[1], ", ")
		}
		require.Equal(t, cells[2], strconv.Itoa(len(q.clicks)), row)
		for _, answer := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[4], -1) {
			q.answers = append(q.answers, answer[1])
		}
		require.NotEmpty(t, q.answers, row)
		all = append(all, q)
	}
	require.Len(t, all, 12)
	return all
}

// TestTheTwelveQuestions follows the clicks of docs/ui.md, without a browser, and finds what that
// says on the page. The time is virtual.
func TestTheTwelveQuestions(t *testing.T) {
	onTour(t, func(get func(name string) string) {
		for _, q := range questionsOfPage(t) {
			shown := get("")
			for _, link := range q.clicks {
				shown = get(linkOf(t, shown, link))
			}
			for _, answer := range q.answers {
				require.Contains(t, textOf(shown), answer, q.text)
			}
		}
	})
}

// onTour calls test with what gets a page, when the page has seen how a queue grows.
func onTour(t *testing.T, test func(get func(name string) string)) {
	synctest.Test(t, func(t *testing.T) {
		zk, err := zktest.New()
		require.NoError(t, err)
		defer zk.Close()
		on := &tour{connect: func(ctx context.Context, identity string) (*framework.Client, error) {
			return framework.Connect(ctx, framework.Config{Servers: zk.Servers(), Identity: identity},
				framework.WithDialer(zk.Link(identity).DialContext), framework.WithTimeClock(),
				framework.WithLogger(slog.New(slog.DiscardHandler)))
		}}
		defer on.end()
		require.NoError(t, on.begin(t.Context()))
		client, err := on.open(t.Context(), "page")
		require.NoError(t, err)
		page, err := ui.New(client)
		require.NoError(t, err)
		defer page.Close()
		get := func(name string) string {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/"+name, nil))
			require.Equal(t, http.StatusOK, w.Code, name)
			return w.Body.String()
		}
		for range 20 {
			get("")
			time.Sleep(10 * time.Second)
		}
		test(get)
	})
}

// linksBetween are kinds of pages, and the kinds that they link to beside those of the menu.
var linksBetween = map[string]string{
	"": "election job lock queue session workflow workflows?", "locks": "lock session", "lock": "lock session",
	"elections": "election session", "election": "session", "jobs": "job", "job": "session", "queues": "queue",
	"queue": "session", "workflows": "workflow", "workflow": "session", "barriers": "session", "members": "group",
	"group": "session", "services": "service", "service": "session", "configuration": "value", "value": "value",
	"sessions": "session", "session": "barriers? election group job lock queue service workflow",
}

// TestAllPagesAreLinked follows all links from the overview. Each leads to a page, pages of each
// kind link to those of others, and what names a session is on the page of that session.
func TestAllPagesAreLinked(t *testing.T) {
	onTour(t, func(get func(name string) string) {
		links := map[string]map[string]bool{} // by page
		next := []string{""}
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			if links[at] != nil {
				continue
			}
			links[at] = map[string]bool{}
			menu, main, _ := strings.Cut(get(at), "<main")
			for i, part := range []string{menu, main} {
				for _, link := range regexp.MustCompile(`<a [^>]*href="([^"#][^"]*)"`).FindAllStringSubmatch(part, -1) {
					to := strings.TrimPrefix(html.UnescapeString(link[1]), "./")
					name, query, _ := strings.Cut(to, "?")
					if name == "" && query != "" { // of the same page
						name, _, _ = strings.Cut(at, "?")
					}
					values, err := url.ParseQuery(query)
					require.NoError(t, err, to)
					if to = strings.TrimSuffix(name+"?"+values.Encode(), "?"); !strings.HasSuffix(name, ".json") {
						next = append(next, to)
						links[at][to] = links[at][to] || i > 0
					}
				}
			}
		}
		kindOf := func(page string) string { // with a mark for a list of what is at a path
			name, query, _ := strings.Cut(page, "?")
			if strings.HasPrefix(query, "q=") {
				name += "?"
			}
			return name
		}
		found := map[string]bool{}
		aboutOne := regexp.MustCompile(`^[a-z]+\?(id=[^&]*&)?path=[^&]*$`)
		for from, all := range links {
			for to, main := range all {
				if between := strings.TrimSuffix(kindOf(from), "?") + " to " + kindOf(to); main {
					found[between] = true
				}
				if strings.HasPrefix(to, "session?") && aboutOne.MatchString(from) {
					require.True(t, links[to][from], "%s names %s, which does not name it", from, to)
				}
			}
		}
		for from, all := range linksBetween {
			for to := range strings.FieldsSeq(all) {
				require.True(t, found[from+" to "+to], "no page %q has a link to a page %q", from, to)
			}
		}
		t.Logf("%d pages", len(links))
	})
}

// linkOf is where the first link goes whose text begins so.
func linkOf(t *testing.T, page, text string) string {
	t.Helper()
	for _, link := range regexp.MustCompile(`(?s)<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(textOf(link[2]), text) {
			return html.UnescapeString(link[1])
		}
	}
	require.Fail(t, "no such link", text)
	return ""
}

// textOf is what a reader sees of HTML.
func textOf(page string) string {
	return strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`(?s)<[^>]*>`).ReplaceAllString(page, "")))
}
