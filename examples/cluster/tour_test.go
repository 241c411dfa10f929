package main

import (
	"bufio"
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// TestTheTwelveQuestions follows the clicks of docs/ui.md, without a browser, and finds what that says
// on the page. The time is virtual.
func TestTheTwelveQuestions(t *testing.T) { synctest.Test(t, testTheTwelveQuestions) }

func testTheTwelveQuestions(t *testing.T) {
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
	for range 20 { // the page must have seen how a queue grows
		get("")
		time.Sleep(10 * time.Second)
	}
	for _, q := range questionsOfPage(t) {
		shown := get("")
		for _, link := range q.clicks {
			shown = get(linkOf(t, shown, link))
		}
		for _, answer := range q.answers {
			require.Contains(t, textOf(shown), answer, q.text)
		}
	}
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
