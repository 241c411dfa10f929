package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/zktest"
)

// orphan is a node that is a finding as long as it exists.
var orphan = contender("/app/lock", 1)

const (
	begins = " begins orphan /app/lock"
	ends   = " ends orphan /app/lock"
)

// TestNextLeaderGoesOn: the next leader does not report a finding again that persists, and reports
// the end of a finding that began under the former leader.
func TestNextLeaderGoesOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, orphan, "", framework.Persistent)
		x := w.watch("x")
		y, z := w.watch("y"), w.watch("z")
		w.scans(5)
		require.Equal(t, []string{"x" + begins}, w.news())
		x.end(t)
		w.scans(5)
		require.Empty(t, w.news())
		require.NoError(t, w.Expire(y.Status().SessionID))
		w.scans(5)
		require.Empty(t, w.news())
		began := w.last()
		w.remove(m, orphan)
		w.scans(3)
		reported := w.news()
		require.Len(t, reported, 1)
		require.Contains(t, []string{"y" + ends, "z" + ends}, reported[0])
		require.Equal(t, began.ID, w.last().ID)
		require.Greater(t, w.last().Lasted(), 14*interval, "from the first leader's begin")
		y.end(t)
		z.end(t)
		node, ok := w.Node(path + "/findings")
		require.True(t, ok)
		require.JSONEq(t, `{"v":1,"root":"/app","findings":[]}`, string(node.Data))
	})
}

// TestNextLeaderKnowsLongHold: the next leader has not seen how long the holder holds, and takes it
// from the recorded finding.
func TestNextLeaderKnowsLongHold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, contender("/app/lock", 1), "", framework.Ephemeral)
		w.put(m, contender("/app/lock", 2), "", framework.Ephemeral)
		x := w.watch("x")
		w.scans(13)
		require.Equal(t, []string{"x begins long hold /app/lock"}, w.news())
		x.end(t)
		w.watch("y")
		w.scans(5)
		require.Empty(t, w.news())
		w.remove(m, contender("/app/lock", 1))
		w.scans(2)
		require.Equal(t, []string{"y ends long hold /app/lock"}, w.news())
	})
}

// TestLeaderThatDiesWhileItReports: the next leader reports the event again with the same ID.
func TestLeaderThatDiesWhileItReports(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, orphan, "", framework.Persistent)
		reported := make(chan monitor.Event, 9)
		x := w.member("x")
		w.run(x, monitor.WithOnEvent(time.Second, func(_ context.Context, e monitor.Event) error {
			reported <- e
			return w.Expire(x.Status().SessionID)
		}))
		w.watch("y")
		w.scans(4)
		first := <-reported
		require.Empty(t, reported)
		require.Equal(t, []string{"y" + begins}, w.news())
		require.Equal(t, first.ID, w.last().ID)
		w.scans(10)
		require.Empty(t, w.news())
	})
}

// TestFaultsInAScan: the connection drops or the session expires at each of the scans' requests,
// one after the other. A finding that persists is reported once.
func TestFaultsInAScan(t *testing.T) {
	for name, fault := range map[string]func(w *world, x *watcher){
		"reset":  func(_ *world, x *watcher) { x.Link.Reset() },
		"expiry": func(w *world, x *watcher) { _ = w.Expire(x.Status().SessionID) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("app")
				w.put(m, orphan, "", framework.Persistent)
				x := w.watch("x")
				w.scans(1)
				require.Equal(t, []string{"x" + begins}, w.news())
				for n := range 25 {
					var mu sync.Mutex
					count := 0
					stop := w.Observe(func(r zktest.Request) {
						mu.Lock()
						defer mu.Unlock()
						if r.Session != x.Status().SessionID {
							return
						}
						if count++; count == n+1 {
							go fault(w, x)
						}
					})
					w.scans(1)
					stop()
				}
				w.scans(2)
				require.Empty(t, w.news())
				w.remove(m, orphan)
				w.scans(3)
				require.Equal(t, []string{"x" + ends}, w.news())
			})
		})
	}
}

// TestLostRepliesOfTheRecord: after a write without an answer the leader reads the record again.
// Each event is reported once.
func TestLostRepliesOfTheRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, orphan, "", framework.Persistent)
		w.watch("x")
		for range 4 {
			w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: path + "/findings", Func: zktest.Request.Writes})
			w.scans(3)
		}
		require.Equal(t, []string{"x" + begins}, w.news())
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: path + "/findings", Func: zktest.Request.Writes})
		w.remove(m, orphan)
		w.scans(5)
		require.Equal(t, []string{"x" + ends}, w.news())
	})
}

// TestRecordThatAnotherClientWrites: the leader reads the record again, and no finding stays in it
// after its end.
func TestRecordThatAnotherClientWrites(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, orphan, "", framework.Persistent)
		w.watch("x")
		w.scans(1)
		require.Equal(t, []string{"x" + begins}, w.news())
		node, _ := w.Node(path + "/findings")
		_, err := m.Set(t.Context(), path+"/findings", node.Data, framework.AnyVersion)
		require.NoError(t, err)
		w.remove(m, orphan)
		w.scans(5)
		require.Equal(t, []string{"x" + ends}, w.news())
		node, _ = w.Node(path + "/findings")
		require.JSONEq(t, `{"v":1,"root":"/app","findings":[]}`, string(node.Data))
	})
}

// TestUnreadableDirectory: a path that cannot be read is a finding, and findings below it do not
// end.
func TestUnreadableDirectory(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, contender("/app/a/lock", 1), "", framework.Persistent)
		w.put(m, contender("/app/b/lock", 1), "", framework.Persistent)
		w.watch("x")
		w.scans(1)
		require.Equal(t, []string{"x begins orphan /app/a/lock", "x begins orphan /app/b/lock"}, w.news())
		secret := w.Member(t, "secret",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		w.remove(m, contender("/app/a/lock", 1))
		w.remove(m, contender("/app/b/lock", 1))
		for _, dir := range []string{"/app/a/lock", "/app/a"} {
			w.remove(m, dir)
		}
		require.NoError(t, secret.Create(t.Context(), "/app/a", nil, framework.Persistent))
		require.NoError(t, secret.Create(t.Context(), "/app/a/b", nil, framework.Persistent))
		w.scans(3)
		require.ElementsMatch(t, []string{"x begins unread /app/a", "x ends orphan /app/b/lock"}, w.news())
		w.remove(secret, "/app/a/b")
		w.remove(secret, "/app/a")
		w.scans(3)
		require.ElementsMatch(t, []string{"x ends unread /app/a", "x ends orphan /app/a/lock"}, w.news())
	})
}

// journal keeps log lines.
type journal struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(b)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

// TestFunctionThatFails: the leader calls the function three times in all with an event for which
// it fails, and reports other events all the same.
func TestFunctionThatFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errors.New("no answer") },
		"panic":  func() error { panic("no answer") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				log := &journal{}
				m := w.member("x", framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				w.put(m, orphan, "", framework.Persistent)
				w.put(m, contender("/app/other", 1), "", framework.Persistent)
				calls := 0
				w.run(m, monitor.WithOnEvent(time.Second, func(_ context.Context, e monitor.Event) error {
					if e.Path == "/app/lock" {
						calls++
						return fail()
					}
					w.note("x", e)
					return nil
				}))
				w.scans(10)
				require.Equal(t, []string{"x begins orphan /app/other"}, w.news())
				require.Equal(t, 3, calls)
				require.Equal(t, 2, strings.Count(log.text(), "a finding begins"), log.text())
				require.Equal(t, 3, strings.Count(log.text(), "an event could not be reported"), log.text())
			})
		})
	}
}

// TestFunctionThatBlocks: the leader goes on scanning, and reports the events of that time when the
// function has returned.
func TestFunctionThatBlocks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		log := &journal{}
		m := w.member("x", framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		w.put(m, orphan, "", framework.Persistent)
		hung, blocked := make(chan struct{}), false
		w.run(m, monitor.WithOnEvent(time.Second, func(_ context.Context, e monitor.Event) error {
			if !blocked {
				blocked = true
				<-hung
				return nil
			}
			w.note("x", e)
			return nil
		}))
		w.scans(2)
		w.put(m, contender("/app/other", 1), "", framework.Persistent)
		w.scans(5)
		require.Contains(t, log.text(), "path=/app/other", "log lines go on")
		require.Empty(t, w.news())
		close(hung)
		w.scans(2)
		require.ElementsMatch(t, []string{"x" + begins, "x begins orphan /app/other"}, w.news())
	})
}

// TestScansThatLastLongerThanTheInterval: the leader calls the function after each of them.
func TestScansThatLastLongerThanTheInterval(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.timeout = 10 * time.Minute // so that the delay ends no session
		m := w.member("x")
		w.put(m, orphan, "", framework.Persistent)
		w.put(m, contender("/app/other", 1), "", framework.Persistent)
		w.DelayReplies(interval, zktest.Match{Op: zktest.OpMultiRead, Session: m.Status().SessionID})
		w.run(m, monitor.WithOnEvent(time.Second, func(_ context.Context, e monitor.Event) error {
			w.note("x", e)
			return nil
		}))
		w.scans(20)
		require.ElementsMatch(t, []string{"x" + begins, "x begins orphan /app/other"}, w.news())
	})
}

// TestManyFindings: the record is bounded, and findings without room begin when others have ended.
func TestManyFindings(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		for n := range 520 {
			w.put(m, contender(fmt.Sprintf("/app/many/%03d", n), n), "", framework.Persistent)
		}
		w.watch("x")
		w.scans(3)
		first := w.news()
		require.Equal(t, 500, len(first))
		for _, e := range first[:30] {
			lock := strings.TrimPrefix(e, "x begins orphan ")
			w.remove(m, lock+"/"+w.Children(lock)[0])
		}
		w.scans(5)
		require.Equal(t, 30+20, len(w.news()))
	})
}

func TestRunRefusesInvalidArgumentsAndRecords(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("x")
		for text, invalid := range map[string]*monitor.Monitor{
			"the client is nil":  monitor.New(nil, path, root),
			"invalid path \"x\"": monitor.New(m.Client, "x", root),
			"invalid path \"y\"": monitor.New(m.Client, path, "y"),
			"WithInterval: 1ms":  monitor.New(m.Client, path, root, monitor.WithInterval(time.Millisecond)),
			"WithHysteresis: 0":  monitor.New(m.Client, path, root, monitor.WithHysteresis(2, 0)),
			"WithOnEvent: a timeout of 0s": monitor.New(m.Client, path, root,
				monitor.WithOnEvent(0, func(context.Context, monitor.Event) error { return nil })),
		} {
			require.ErrorContains(t, invalid.Validate(), text)
			require.ErrorContains(t, invalid.Run(t.Context()), text)
		}
		for data, want := range map[string]error{
			`{"v":1,"root":"/other","findings":[]}`: framework.ErrForeign,
			`{"v":2,"root":"/app"}`:                 framework.ErrNewer,
			`x`:                                     framework.ErrBadRecord,
			`{"v":1,"root":"/app","findings":[{}]}`: framework.ErrBadRecord,
		} {
			w.put(m, path+"/findings", data, framework.Persistent)
			require.ErrorIs(t, monitor.New(m.Client, path, root).Run(t.Context()), want)
			w.remove(m, path+"/findings")
		}
	})
}

func TestCheckScansOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("x")
		report, err := monitor.Check(t.Context(), m.Client, root)
		require.NoError(t, err, "there is no such root")
		require.Empty(t, report.Findings)
		require.Zero(t, len(report.Locks)+len(report.Jobs)+len(report.Queues))
		w.put(m, orphan, "", framework.Persistent)
		before := w.Tree("/")
		report, err = monitor.Check(t.Context(), m.Client, "/")
		require.NoError(t, err)
		require.Equal(t, before, w.Tree("/"), "it writes nothing")
		require.Len(t, report.Locks, 1)
		require.Len(t, report.Findings, 1)
		require.Equal(t, monitor.ProblemOrphan, report.Findings[0].Problem)
		report, err = monitor.Check(t.Context(), m.Client, "/", monitor.WithoutProblems(monitor.ProblemOrphan))
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		_, err = monitor.Check(t.Context(), m.Client, "/", monitor.WithWaiters(-1))
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}
