package main

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheNightIsOnThePage until the program ends, which leaves nothing behind.
func TestTheNightIsOnThePage(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, address) }()
	defer http.DefaultClient.CloseIdleConnections()
	page := func(name string) string {
		r, err := http.Get("http://" + address + "/" + name)
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return page("locks") != "" }, time.Minute, 10*time.Millisecond)
	for name, want := range map[string]string{"locks": "invoice-numbers", "elections": "orders", "queues": "invoices",
		"jobs": "ledger-close", "group?path=/apps/members/billing": "disk is to be replaced",
		"service?path=/apps/services/billing": "connection refused", "value?path=/apps/config/billing": "bank is slow",
		"workflow?path=/apps/orders&id=order-7713": "paid", "workflow?path=/apps/orders&id=order-7714": "carrier",
		"lock?path=/apps/locks/ledger": "billing-5-417"} {
		require.Eventually(t, func() bool { return strings.Contains(page(name), want) }, time.Minute,
			100*time.Millisecond, name)
	}
	stop()
	require.NoError(t, <-ended)
}

// TestTheTwelveQuestions follows the clicks of docs/ui.md, without a browser, and finds what that says
// on the page. The night passes in virtual time.
func TestTheTwelveQuestions(t *testing.T) { synctest.Test(t, testTheTwelveQuestions) }

func testTheTwelveQuestions(t *testing.T) {
	zk, err := zktest.New()
	require.NoError(t, err)
	defer zk.Close()
	n := &night{zk: zk, options: []framework.Option{framework.WithTimeClock()}} // virtual time
	defer n.end()
	require.NoError(t, n.begin(t.Context()))
	client, err := n.connect(t.Context(), "page")
	require.NoError(t, err)
	page, err := ui.New(client, ui.WithRoot("/apps"))
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
	doc, err := os.ReadFile("../../docs/ui.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(doc), "| question | from the overview | the page says |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	require.Len(t, rows, 12)
	for _, row := range rows {
		cells := strings.Split(row, " | ")
		require.Len(t, cells, 3, row)
		shown := get("")
		if cells[1] != "(no click)" {
			for link := range strings.SplitSeq(cells[1], ", ") {
				shown = get(linkOf(t, shown, link))
			}
		}
		answers := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, answers, row)
		for _, answer := range answers {
			require.Contains(t, textOf(shown), answer[1], row)
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
