package monitor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// copyTree makes copies of a node and of all nodes below it, with the same data.
func (w *world) copyTree(m *zktest.Member, of string, to ...string) {
	w.t.Helper()
	tree := w.Tree(of)
	for _, path := range to {
		require.NoError(w.t, m.MakeDirs(w.t.Context(), path[:strings.LastIndexByte(path, '/')]))
		var ops []framework.Op
		for _, n := range tree {
			mode := framework.Persistent
			if n.Stat.EphemeralOwner != 0 {
				mode = framework.Ephemeral
			}
			ops = append(ops, framework.CreateOp(path+strings.TrimPrefix(n.Path, of), n.Data, mode))
		}
		_, err := m.Multi(w.t.Context(), ops...)
		require.NoError(w.t, err)
	}
}

// makeLocks makes n locks with one contender each. Two sessions own the contenders: the paths of
// one would be so long together that it is a finding.
func (w *world) makeLocks(n int) {
	w.t.Helper()
	members := []*zktest.Member{w.member("locks-1"), w.member("locks-2")}
	require.NoError(w.t, members[0].MakeDirs(w.t.Context(), "/app/locks"))
	for i := range n {
		lock := fmt.Sprintf("/app/locks/l%05d", i)
		_, err := members[i%2].Multi(w.t.Context(), framework.CreateOp(lock, nil, framework.Persistent),
			framework.CreateOp(contender(lock, 0), nil, framework.Ephemeral))
		require.NoError(w.t, err)
	}
}

// makeQueues makes n queues with two items each, one of them of another priority.
func (w *world) makeQueues(m *zktest.Member, n int) {
	w.t.Helper()
	q := queue.New(m.Client, "/app/queues/q00000", codec.Bytes())
	require.NoError(w.t, q.Put(w.t.Context(), []byte("1")))
	require.NoError(w.t, q.Put(w.t.Context(), []byte("2"), queue.WithPriority(3)))
	require.NoError(w.t, q.Close(w.t.Context()))
	var copies []string
	for i := range n - 1 {
		copies = append(copies, fmt.Sprintf("/app/queues/q%05d", i+1))
	}
	w.copyTree(m, "/app/queues/q00000", copies...)
}

// requestsOfAScan returns how many requests a scan takes on average, and the events that the
// monitor has reported.
func (w *world) requestsOfAScan(opts ...monitor.Option) (requests int64, events []string) {
	w.t.Helper()
	w.timeout = time.Hour // heartbeats are rare
	x := w.watch("x", opts...)
	before := x.Status().Requests
	w.scans(4)
	return (x.Status().Requests - before) / 4, w.news()
}

// TestRequestsOfAScanOfLocksJobsAndQueues has 1,000 schedulers of one job, as lockstep cron makes
// them.
func TestRequestsOfAScanOfLocksJobsAndQueues(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.timeout = time.Hour
		app := w.member("app")
		stop := w.schedule(app, "rollup", func() error { return nil })
		time.Sleep(90 * time.Second)
		var copies []string
		for i := range 999 {
			copies = append(copies, fmt.Sprintf("/app/cron%03d/rollup", i))
		}
		w.copyTree(app, "/app/cron", copies...)
		stop()
		w.makeQueues(app, 1000)
		w.makeLocks(10_000)
		report, err := monitor.Check(t.Context(), app.Client, root)
		require.NoError(t, err)
		require.Equal(t, []int{1000, 1000}, []int{len(report.Jobs), len(report.Queues)})
		require.GreaterOrEqual(t, len(report.Locks), 10_000)
		requests, _ := w.requestsOfAScan()
		t.Logf("%d requests in a scan", requests)
		require.LessOrEqual(t, requests, int64(300))
	})
}

// TestRequestsOfAScanOfJobsThatFail has a scheduler with 1,000 jobs that fail, so that a scan reads
// their histories.
func TestRequestsOfAScanOfJobsThatFail(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.timeout = time.Hour
		app := w.member("app")
		stop := w.schedule(app, "j0000", func() error { return errors.New("no disk") })
		time.Sleep(250 * time.Second)
		var copies []string
		for i := range 999 {
			copies = append(copies, fmt.Sprintf("/app/cron/jobs/j%04d", i+1))
		}
		w.copyTree(app, "/app/cron/jobs/j0000", copies...)
		stop()
		requests, events := w.requestsOfAScan(monitor.WithJobFailures(4), monitor.WithoutProblems("no member runs it"))
		t.Logf("%d requests in a scan", requests)
		require.LessOrEqual(t, requests, int64(40))
		require.Equal(t, 500, len(events), "as many as the record holds")
		require.Equal(t, "x begins failed /app/cron/j0000", events[0])
	})
}
