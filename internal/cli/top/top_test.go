package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	cliworkflow "github.com/lockstep-go/lockstep/internal/cli/workflow"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// madeRow is a row of a test.
func madeRow(path string, weight, order int64) topRow {
	return topRow{path: path, weight: weight, order: order, words: strings.ToLower(path),
		cells: []cli.Cell{cli.PlainCell(path), cli.PlainCell("mutex"), cli.DimCell("-"), cli.DimCell("-"),
			cli.DimCell("-")}, value: path}
}

// filledModel has a scan of some locks.
func filledModel(rows ...topRow) *topModel {
	m := newTopModel(findTopView("locks"), "", "zk1:2181")
	m.addScan(topScan{view: "locks", at: time.Unix(1000, 0), rows: rows})
	return m
}

// paths are those of the shown rows, in order.
func (m *topModel) paths() (all []string) {
	for _, row := range m.shown {
		all = append(all, row.path)
	}
	return all
}

func (m *topModel) pressAll(keys ...terminal.Key) (goesOn bool) {
	for _, key := range keys {
		goesOn = m.press(key)
	}
	return goesOn
}

// text is the frame after a few seconds.
func (m *topModel) text(width, height int, outage string) string {
	return strings.Join(m.frame(width, height, time.Unix(1003, 0), outage), "\n")
}

func TestTopSortsFiltersAndOpens(t *testing.T) {
	m := filledModel(madeRow("/a", 1, 30), madeRow("/b", 7, 20), madeRow("/c", 7, 10))
	require.Equal(t, []string{"/b", "/c", "/a"}, m.paths(), "the most waiters first")
	m.press("s")
	require.Equal(t, []string{"/c", "/b", "/a"}, m.paths(), "the oldest first")
	m.press("s")
	require.Equal(t, []string{"/a", "/b", "/c"}, m.paths())
	m.pressAll("j", terminal.KeyDown, terminal.KeyDown, "k")
	require.Contains(t, m.text(80, 20, ""), ">  /b")
	m.addScan(topScan{view: "locks", at: time.Unix(1001, 0), rows: []topRow{madeRow("/b", 0, 0), madeRow("/0", 0, 0)}})
	require.Contains(t, m.text(80, 20, ""), ">  /b", "the selected row stays so")

	m.pressAll("/", "B", "x", terminal.KeyBackspace)
	require.Equal(t, []string{"/b"}, m.paths())
	require.Contains(t, m.text(80, 20, ""), "filter: B_")
	m.press(terminal.KeyEscape)
	require.Len(t, m.paths(), 2, "as it was")
	m.pressAll("/", "q", terminal.KeyEnter)
	require.Empty(t, m.paths())
	require.Contains(t, m.text(80, 20, ""), "no locks")
	m.press(terminal.KeyEscape)

	m.press(terminal.KeyEnter)
	require.Equal(t, "/b", m.wish().opened.path)
	m.addScan(topScan{view: "locks", opened: "/other\x00", at: time.Unix(1002, 0), detail: []string{"other"}})
	m.addScan(topScan{view: "locks", opened: "/b\x00", at: time.Unix(1002, 0), detail: []string{"first", "second"}})
	require.Contains(t, m.text(80, 20, ""), "first\nsecond")
	m.pressAll(terminal.KeyDown, terminal.KeyDown)
	require.NotContains(t, m.text(80, 20, ""), "first")
	require.Contains(t, m.text(80, 20, ""), "second", "the last line stays")
	require.True(t, m.press("q"))
	require.Nil(t, m.wish().opened)

	m.press(terminal.KeyTab)
	require.Equal(t, "/lockstep/elections", m.wish().root)
	m.press("4")
	require.Equal(t, "queues", m.wish().view.name)
	m.press(terminal.KeyBackTab)
	require.Equal(t, "jobs", m.wish().view.name)
	m.press("p")
	require.True(t, m.wish().paused)
	require.True(t, m.pressAll("?", "q"), "any key leaves the help")
	require.False(t, m.press("q"))
	require.False(t, m.press(terminal.KeyInterrupt))
}

func TestTopFrameFitsAnyTerminal(t *testing.T) {
	var rows []topRow
	for i := range 100 {
		rows = append(rows, madeRow(fmt.Sprintf("/l%03d", i), 0, 0))
	}
	m := filledModel(rows...)
	for _, height := range []int{1, 2, 3, 4, 5, 6, 24, 200} {
		for _, keys := range [][]terminal.Key{{terminal.KeyHome}, {terminal.KeyEnd}, {terminal.KeyPageUp}, {"?"},
			{"x", terminal.KeyEnter}, {"q"}} {
			m.pressAll(keys...)
			require.Len(t, m.frame(80, height, time.Unix(1003, 0), ""), height)
		}
	}
	m.press(terminal.KeyEnd)
	require.Contains(t, m.text(80, 10, ""), ">  /l099")
	require.NotContains(t, m.text(80, 10, ""), "/l090")
	m.press(terminal.KeyHome)
	require.Contains(t, m.text(80, 10, ""), ">  /l000")
	require.Contains(t, m.text(80, 10, ""), "seen 3s ago")
	require.Contains(t, m.text(80, 10, "no server"), "no server")
	m.addScan(topScan{view: "locks", at: time.Unix(1000, 0), wrong: []string{"list /b: no permission", "more"}})
	require.Contains(t, m.text(80, 10, ""), "list /b: no permission; and 1 more")
}

func TestTopIsJSON(t *testing.T) {
	m := filledModel(madeRow("/a", 1, 30), madeRow("/b", 7, 20))
	var b bytes.Buffer
	require.NoError(t, cli.PrintResult(&b, true, m.frameJSON(1)))
	var v topFrameJSON
	require.NoError(t, json.Unmarshal(b.Bytes(), &v))
	require.Equal(t, []any{"/b"}, v.Rows)
	require.Equal(t, 2, v.Count)
	require.Equal(t, "waiting", v.Sort)
}

// topSession runs a scanner with a person at the keys, who draws a frame after each.
func topSession(ctx context.Context, l *topScanner, each time.Duration, keys ...terminal.Key) (ended error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.keepScanning(ctx) }()
	pressed := time.NewTicker(each)
	defer pressed.Stop()
	for i := 0; ; {
		select {
		case update := <-l.updates:
			update()
		case <-pressed.C:
			if i == len(keys) {
				cancel()
				return <-done
			}
			l.press(keys[i])
			i++
		case err := <-done:
			cancel()
			return errors.Join(err, errors.New("it ended"))
		}
		l.model.frame(80, 24, time.Now(), outageOf(l.reader.client.Status()))
	}
}

func newTopScanner(client *framework.Client) *topScanner {
	return &topScanner{model: newTopModel(findTopView("locks"), "", ""),
		reader:   &topReader{client: client, pace: requestPace{client: client}},
		interval: time.Millisecond, updates: make(chan func()), wished: make(chan struct{}, 1)}
}

// TestTopSendsFiftyRequestsASecondAtMost has 10,000 locks, no pause between scans, and a person who
// never rests.
func TestTopSendsFiftyRequestsASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}).Client
		require.NoError(t, client.MakeDirs(t.Context(), cli.LocksDir))
		for team := range 100 {
			var ops []framework.Op
			for n := range 100 {
				dir := fmt.Sprintf("%s/l%02d-%02d", cli.LocksDir, team, n)
				ops = append(ops, framework.CreateOp(dir, nil, framework.Persistent))
				for i := range 2 {
					ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/_c_00000000-0000-0000-0000-%012d-lock-%010d",
						dir, i, i), nil, framework.Persistent))
				}
			}
			_, err := client.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		observed := observeRequests(zk)
		l := newTopScanner(zk.Member(t, "b", framework.Config{SessionTimeout: 10 * time.Second}).Client)
		var keys []terminal.Key
		for i := range 120 {
			keys = append(keys, []terminal.Key{"j", "s", "j"}[i%3])
			if i%50 > 44 {
				keys = append(keys, terminal.KeyTab)
			}
		}
		require.NoError(t, topSession(t.Context(), l, 50*time.Millisecond, keys...))
		require.Len(t, l.model.scans["locks"].rows, 10_000)
		total, most := observed()
		require.Greater(t, total, 100, "it does scan")
		require.LessOrEqual(t, most, 50)
	})
}

// TestTopOfManyJobsAndQueuesSendsFiftyRequestsASecondAtMost has 2,000 schedulers of a job, and
// 2,000 queues with items that have come back.
func TestTopOfManyJobsAndQueuesSendsFiftyRequestsASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}).Client
		of := scheduler.New(client, cli.JobsDir+"/nightly", scheduler.WithGrace(0))
		require.NoError(t, of.Add(scheduler.Job{Name: "nightly", Spec: "* * * * *",
			Run: func(context.Context, scheduler.Run) error { return nil }}))
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
		defer stop()
		require.NoError(t, of.Run(ctx))
		copyTree(t, zk, client, cli.JobsDir+"/", "nightly", 1999)
		q := queue.New(client, cli.QueuesDir+"/mails", codec.Bytes())
		for range 5 { // a step reads them, too
			require.NoError(t, q.Put(t.Context(), []byte("x")))
			d, err := q.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Nack(t.Context(), time.Hour, nil))
		}
		require.NoError(t, q.Put(t.Context(), []byte("x")))
		require.NoError(t, q.Close(t.Context()))
		copyTree(t, zk, client, cli.QueuesDir+"/", "mails", 1999)
		observed := observeRequests(zk)
		l := newTopScanner(zk.Member(t, "b", framework.Config{SessionTimeout: 10 * time.Second}).Client)
		var keys []terminal.Key
		for _, view := range []terminal.Key{"3", "4"} {
			keys = append(keys, view)
			for range 40 {
				keys = append(keys, "s", "j")
			}
		}
		require.NoError(t, topSession(t.Context(), l, 50*time.Millisecond, keys...))
		require.Len(t, l.model.scans["jobs"].rows, 2000)
		require.Len(t, l.model.scans["queues"].rows, 2000)
		total, most := observed()
		require.Greater(t, total, 100, "it does scan")
		require.LessOrEqual(t, most, 50)
	})
}

// TestTopOfManyRunsSendsFiftyRequestsASecondAtMost has 30,000 runs, which take 60 requests.
func TestTopOfManyRunsSendsFiftyRequestsASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}).Client
		require.NoError(t, client.MakeDirs(t.Context(), cliworkflow.DefaultWorkflows+"/queues"))
		const shards = 30
		for shard := range shards {
			dir := fmt.Sprintf("%s/runs/%02x", cliworkflow.DefaultWorkflows, shard)
			require.NoError(t, client.MakeDirs(t.Context(), dir))
			var ops []framework.Op
			for n := range 1000 {
				run := []byte(`{"v":1,"kind":"run","id":"x","workflow":"order","turn":1,"input":0,"state":"waiting"}`)
				ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/%d-%d", dir, shard, n), run, framework.Persistent))
			}
			_, err := client.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		observed := observeRequests(zk)
		l := newTopScanner(zk.Member(t, "b", framework.Config{SessionTimeout: 10 * time.Second}).Client)
		require.NoError(t, topSession(t.Context(), l, 100*time.Millisecond,
			append([]terminal.Key{"5"}, slices.Repeat([]terminal.Key{"j"}, 60)...)...))
		require.Len(t, l.model.scans["workflows"].rows, shards*1000)
		_, most := observed()
		require.LessOrEqual(t, most, 50)
	})
}

// TestScansThatAreGivenUpCountAsWell has a person who changes the list a hundred times a second.
func TestScansThatAreGivenUpCountAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}).Client
		for _, dir := range []string{cli.LocksDir, cli.ElectionsDir, cli.JobsDir, cli.QueuesDir} {
			require.NoError(t, client.MakeDirs(t.Context(), dir+"/some/name"))
		}
		observed := observeRequests(zk)
		var keys []terminal.Key
		for range 300 {
			keys = append(keys, terminal.KeyTab)
		}
		require.NoError(t, topSession(t.Context(), newTopScanner(client), 10*time.Millisecond, keys...))
		_, most := observed()
		require.LessOrEqual(t, most, 50)
	})
}

// copyTree makes copies of a node and all below it, with other names.
func copyTree(t *testing.T, zk *zktest.Server, c *framework.Client, dir, name string, n int) {
	t.Helper()
	tree := zk.Tree(dir + name)
	for i := range n {
		var ops []framework.Op
		for _, node := range tree {
			path := strings.ReplaceAll(node.Path, "/"+name, fmt.Sprintf("/%s-%03d", name, i))
			ops = append(ops, framework.CreateOp(path, node.Data, framework.Persistent))
		}
		_, err := c.Multi(t.Context(), ops...)
		require.NoError(t, err)
	}
}

// observeRequests counts the requests but pings from now on: all, and the most in a second.
func observeRequests(zk *zktest.Server) func() (total, most int) {
	var mu sync.Mutex
	var sent []time.Time
	stop := zk.Observe(func(r zktest.Request) {
		if r.Op != zktest.OpPing {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
		}
	})
	return func() (total, most int) {
		stop()
		first := 0
		for last, at := range sent {
			for at.Sub(sent[first]) >= time.Second {
				first++
			}
			most = max(most, last-first+1)
		}
		return len(sent), most
	}
}

func TestTopGoesOnWhenAServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second})
		_, err := m.Session(t.Context())
		require.NoError(t, err)
		l := newTopScanner(m.Client)
		require.NoError(t, topSession(t.Context(), l, time.Second, "j"))
		require.Empty(t, outageOf(m.Status()))
		m.Link.Cut()
		time.Sleep(time.Minute)
		require.NoError(t, topSession(t.Context(), l, time.Second, "j", "s", terminal.KeyTab))
		require.Contains(t, outageOf(m.Status()), "no server can be reached")
		before := l.model.scans["locks"].at
		m.Link.Heal()
		time.Sleep(time.Minute)
		require.NoError(t, m.Create(t.Context(), "/x", nil, framework.Persistent))
		l.model.press("1")
		require.NoError(t, topSession(t.Context(), l, time.Second, "j", "j"))
		require.Empty(t, outageOf(m.Status()))
		require.True(t, l.model.scans["locks"].at.After(before))
	})
}

func TestTopScansSoonAgainAfterALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second})
		l := newTopScanner(m.Client)
		l.interval = 2 * time.Second
		cut := time.AfterFunc(5*time.Second, m.Link.Cut)
		defer cut.Stop()
		heal := time.AfterFunc(5*time.Minute, m.Link.Heal)
		defer heal.Stop()
		require.NoError(t, topSession(t.Context(), l, 5*time.Minute+30*time.Second))
		require.Less(t, time.Since(l.model.scans["locks"].at), 5*time.Second)
	})
}

func TestTopSaysInEightyColumnsThatTheListIsNotUpToDate(t *testing.T) {
	down := framework.ServerError{Server: "zookeeper-1.example.org:2181",
		Err: errors.New("connect: connection refused")}
	require.Contains(t, outageOf(framework.Status{State: framework.Suspended,
		Servers: []framework.ServerError{down}})[:80], "no server can be reached; the list is not up to date")
}

// TestTopFitsATerminalOf80Columns: the columns by which the list is sorted and the keys are not cut
// off.
func TestTopFitsATerminalOf80Columns(t *testing.T) {
	long := "/applications/billing/locks/" + strings.Repeat("customer-", 6) + "4711"
	row := topRow{path: long, cells: []cli.Cell{cli.PlainCell(long), cli.PlainCell("read-write"),
		cli.PlainCell("web-1.example.com-4711"), cli.PlainCell("2h05m ago"), cli.PlainCell("17")}}
	m := filledModel(row)
	lines := m.frame(80, 24, time.Unix(1003, 0), "")
	require.Len(t, lines, 24)
	for _, line := range lines {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
	require.Contains(t, lines[3], "WAITING")
	require.Regexp(t, `^>  /appl\S+…\S+r-4711  read-write  web-1.example.com-4711  2h05m ago  17$`, lines[4])
	require.Contains(t, lines[23], "q quit")
	m.press(terminal.KeyEnter)
	require.Contains(t, m.text(80, 24, ""), "lock "+long, "the page of a lock names it")
}

// TestTopShowsWorkflows: what is wrong comes first, and all columns fit 80 columns.
func TestTopShowsWorkflows(t *testing.T) {
	now := time.Unix(1003, 0)
	run := func(id string, state workflow.State, failures int, taken *workflow.Taken) topRow {
		info := workflow.Report{Path: "/applications/billing/orders", ID: id,
			Kind: strings.Repeat("order-", 20), State: state, Failures: failures,
			Taken: taken, Changed: now.Add(-1000 * time.Hour),
			Waits: []string{strings.Repeat("signal ", 20)}, Error: "\x1b[2J"}
		return runRow(info, now)
	}
	m := newTopModel(findTopView("workflows"), "", "zk1:2181")
	m.addScan(topScan{view: "workflows", at: now, rows: []topRow{
		run("done", workflow.Done, 0, nil), run("waiting", workflow.Waiting, 0, nil),
		run("active", workflow.Active, 0, &workflow.Taken{}), run("again", workflow.Waiting, 2, nil),
		run("free", workflow.Active, 0, nil), run("failed-"+strings.Repeat("long-", 20), workflow.Failed, 0, nil),
	}})
	for _, view := range topViews[:4] {
		m.addScan(topScan{view: view.name, at: now, rows: make([]topRow, 10_000)})
	}
	lines := m.frame(80, 24, now, "")
	require.Len(t, lines, 24)
	for _, line := range append(lines, m.tabLine(80)) {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
		require.NotContains(t, line, "\x1b")
	}
	require.Contains(t, lines[1], "[5 workflows (6)]  by problems")
	require.Contains(t, lines[3], "STATE")
	for i, want := range []string{"failed", "no member", "again", "active", "waiting", "done"} {
		require.Contains(t, lines[4+i], want)
	}
	m.press("1")
	require.Equal(t, "locks", m.wish().view.name)
	m.press("5")
	require.Equal(t, cliworkflow.DefaultWorkflows, m.wish().root)
}

// TestTopOpensARun: it is read from the servers.
func TestTopOpensARun(t *testing.T) {
	zk := zktest.Start(t)
	client := zk.Member(t, "a", framework.Config{}).Client
	stored := workflow.New(client, cliworkflow.DefaultWorkflows)
	_, err := workflow.NewKind[string, string]("order").Start(t.Context(), stored, "w1", "receipt\x1b[2J\u202e")
	require.NoError(t, err)
	r := &topReader{client: client, pace: requestPace{client: client}}
	scan, err := r.scanList(t.Context(), findTopView("workflows"), "/", &topRow{path: cliworkflow.DefaultWorkflows,
		job: "w1"})
	require.NoError(t, err)
	require.Contains(t, strings.Join(scan.detail, "\n"), "receipt")
	require.NotContains(t, strings.Join(scan.detail, "\n"), "\x1b")
}
