//go:build unix

package ui_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/browser"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

const (
	benchWaiters = 10               // of each lock
	benchTime    = 10 * time.Second // for which requests are counted
)

// crowd is a cluster with many locks, ten times as many waiters, and a tenth as many jobs and
// queues, on a server in memory.
type crowd struct {
	zk      *zktest.Server
	clients []*framework.Client
	tasks   sync.WaitGroup
	stop    context.CancelFunc
}

func (c *crowd) connect(b *testing.B, name string) *framework.Client {
	client, err := framework.Connect(b.Context(), framework.Config{Servers: c.zk.Servers(), Identity: name},
		framework.WithDialer(c.zk.Link(name).DialContext), framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(b, err)
	c.clients = append(c.clients, client)
	return client
}

func newCrowd(b *testing.B, many int) *crowd {
	zk, err := zktest.New()
	require.NoError(b, err)
	c := &crowd{zk: zk}
	ctx, stop := context.WithCancel(b.Context())
	c.stop = stop
	b.Cleanup(func() {
		c.stop()
		for _, client := range c.clients {
			_ = client.Close(context.Background())
		}
		c.tasks.Wait()
		zk.Close()
	})
	holder := c.connect(b, "holder")
	for i := range many {
		_, err := locks.NewMutex(holder, fmt.Sprintf("/locks/%04d", i)).Lock(ctx)
		require.NoError(b, err)
	}
	var waiting atomic.Int64
	for k := range benchWaiters {
		waiter := c.connect(b, fmt.Sprint("waiter-", k))
		for i := range many {
			c.tasks.Go(func() {
				_, _ = locks.NewMutex(waiter, fmt.Sprintf("/locks/%04d", i),
					locks.WithOnWait(func(int) { waiting.Add(1) })).Lock(ctx)
			})
		}
	}
	for i := range many / 10 {
		require.NoError(b, queue.New(holder, fmt.Sprintf("/queues/%03d", i), codec.Text()).Put(ctx, "item"))
	}
	jobs := scheduler.New(holder, "/jobs")
	for i := range many / 10 {
		require.NoError(b, jobs.Add(scheduler.Job{Name: fmt.Sprintf("%03d", i), Spec: "0 3 * * *",
			Run: func(context.Context, scheduler.Run) error { return nil }}))
	}
	c.tasks.Go(func() { _ = jobs.Run(ctx) })
	require.Eventually(b, func() bool {
		_, err := jobs.State(ctx, fmt.Sprintf("%03d", many/10-1))
		return err == nil && waiting.Load() == int64(many*benchWaiters)
	}, time.Minute, 10*time.Millisecond)
	return c
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkPages reports what the pages of a small and of a large cluster cost. Run it once:
// -benchtime=1x. Its figures are in docs/ui.md.
func BenchmarkPages(b *testing.B) {
	for _, many := range []int{10, 1000} {
		b.Run(fmt.Sprintf("locks=%d", many), func(b *testing.B) { benchmarkPages(b, newCrowd(b, many)) })
	}
}

// BenchmarkPagesInABrowser reports when Chromium has painted the overview, from the begin of the
// navigation on and with nothing read before, and how long it takes from a new waiter in a line
// until the list of locks has painted it and has told so. Run it once: -benchtime=1x.
func BenchmarkPagesInABrowser(b *testing.B) {
	browser.Require(b)
	for _, many := range []int{10, 1000} {
		b.Run(fmt.Sprintf("locks=%d", many), func(b *testing.B) {
			c := newCrowd(b, many)
			for b.Loop() {
				var paints []float64
				for range 3 {
					answers, closePage := c.browse(b, "", `new PerformanceObserver((list) => list.getEntries().forEach((e) => {
	if (e.name === "first-contentful-paint") fetch("answer", {method: "POST", body: String(e.startTime)});
})).observe({type: "paint", buffered: true});`)
					ms, err := strconv.ParseFloat(<-answers, 64)
					require.NoError(b, err)
					paints = append(paints, ms)
					closePage()
				}
				slices.Sort(paints)
				b.ReportMetric(paints[len(paints)/2], "ms/first-paint")

				answers, closePage := c.browse(b, "locks", `
const tell = () => requestAnimationFrame(() => setTimeout(() => { // behind the painting
	for (const e of document.querySelectorAll("#f-list tr"))
		if (e.querySelector(".leaf")?.textContent === "0000")
			fetch("answer", {method: "POST", body: e.querySelector("td:nth-of-type(5)").textContent});
}));
new MutationObserver(tell).observe(document.querySelector("main"), {childList: true, subtree: true});
tell();`)
				shown := func(want string) {
					for answer := range answers {
						if answer == want {
							return
						}
					}
				}
				impatient := c.connect(b, fmt.Sprint("impatient-", len(c.clients)))
				var changes []time.Duration
				for range 15 {
					shown(fmt.Sprint("waiting ", benchWaiters))
					time.Sleep(time.Second + rand.N(2*time.Second)) // at any moment between two scans
					ctx, leave := context.WithCancel(b.Context())
					waits, gone := make(chan time.Time, 1), make(chan struct{})
					go func() {
						defer close(gone)
						_, _ = locks.NewMutex(impatient, "/locks/0000",
							locks.WithOnWait(func(int) { waits <- time.Now() })).Lock(ctx)
					}()
					began := <-waits
					shown(fmt.Sprint("waiting ", benchWaiters+1))
					changes = append(changes, time.Since(began))
					leave()
					<-gone
				}
				slices.Sort(changes)
				b.ReportMetric(float64(changes[len(changes)/2].Milliseconds()), "ms/change")
				closePage()
			}
		})
	}
}

// browse opens a page with one more script in a browser, and returns what the script sends to
// "answer". Nothing is read before.
func (c *crowd) browse(b *testing.B, name, script string) (answers <-chan string, closePage func()) {
	page, err := ui.New(c.connect(b, fmt.Sprint("page-", len(c.clients))))
	require.NoError(b, err)
	p := &browser.Probed{Pages: page, Script: script, Answers: make(chan string, 100)}
	server := httptest.NewServer(p)
	closeBrowser := browser.Open(b, server.URL+"/"+name, browser.Wide, false)
	return p.Answers, func() {
		closeBrowser()
		server.CloseClientConnections()
		server.Close()
		page.Close()
	}
}

func benchmarkPages(b *testing.B, c *crowd) {
	client := c.connect(b, "page")
	page, err := ui.New(client)
	require.NoError(b, err)
	defer page.Close()
	server := httptest.NewServer(page)
	defer server.Close()
	get := func(name string) (body []byte, took time.Duration) {
		began := time.Now()
		r, err := http.Get(server.URL + "/" + name)
		require.NoError(b, err)
		defer r.Body.Close()
		var out bytes.Buffer
		_, err = out.ReadFrom(r.Body)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, r.StatusCode)
		return out.Bytes(), time.Since(began)
	}
	sent := func(pages int) (requests int64, processor time.Duration) {
		ctx, closePages := context.WithCancel(b.Context())
		var open sync.WaitGroup
		for range pages {
			stream := &received{head: http.Header{}}
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events?page=locks", nil)
			open.Go(func() { page.ServeHTTP(stream, r) })
		}
		time.Sleep(2 * time.Second) // a first scan
		before, used := client.Status().Requests, processorTime(b)
		time.Sleep(benchTime)
		requests, processor = client.Status().Requests-before, processorTime(b)-used
		closePages()
		open.Wait()
		time.Sleep(3 * time.Second) // the scan that was under way
		return requests, processor
	}
	impatient := c.connect(b, "impatient")
	change := func() time.Duration { // from a new waiter in a line to the list that has it
		list := &awaited{received: received{head: http.Header{}}, text: "f-list", came: make(chan struct{}, 1)}
		ctx, closePage := context.WithCancel(b.Context())
		var open sync.WaitGroup
		defer open.Wait()
		defer closePage()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events?page=locks", nil)
		open.Go(func() { page.ServeHTTP(list, r) })
		time.Sleep(3*time.Second + rand.N(time.Second)) // at any moment between two scans
		select {
		case <-list.came:
		default:
		}
		waits := make(chan time.Time, 1)
		open.Go(func() {
			_, _ = locks.NewMutex(impatient, "/locks/0000",
				locks.WithOnWait(func(int) { waits <- time.Now() })).Lock(ctx)
		})
		began := <-waits
		<-list.came
		return time.Since(began)
	}
	for b.Loop() {
		overview, first := get("")
		b.ReportMetric(float64(first.Milliseconds()), "ms/first-overview")
		list, again := get("locks")
		b.ReportMetric(float64(again.Milliseconds()), "ms/locks")
		assets := 0
		for _, name := range []string{"lockstep.css", "live.js"} {
			body, _ := get(name)
			assets += len(compressed(b, body))
		}
		b.ReportMetric(float64(len(compressed(b, overview))), "B/overview")
		b.ReportMetric(float64(len(compressed(b, list))), "B/locks")
		b.ReportMetric(float64(assets), "B/assets")
		var changes []time.Duration
		for range 15 {
			changes = append(changes, change())
		}
		slices.Sort(changes)
		b.ReportMetric(float64(changes[len(changes)/2].Milliseconds()), "ms/change")
		one, oneProcessor := sent(1)
		many, manyProcessor := sent(100)
		none, _ := sent(0)
		b.ReportMetric(float64(one)/benchTime.Seconds(), "requests/s/1-page")
		b.ReportMetric(float64(many)/benchTime.Seconds(), "requests/s/100-pages")
		b.ReportMetric(float64(none), "requests/no-page")
		b.ReportMetric(float64(oneProcessor)/float64(benchTime), "processors/1-page")
		b.ReportMetric(float64(manyProcessor)/float64(benchTime), "processors/100-pages")
	}
}

// awaited tells when a text was received.
type awaited struct {
	received
	text string
	came chan struct{}
}

func (a *awaited) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(a.text)) {
		select {
		case a.came <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}

func compressed(b *testing.B, body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(body)
	require.NoError(b, err)
	require.NoError(b, w.Close())
	return out.Bytes()
}
