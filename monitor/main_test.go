package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	path     = "/lockstep/monitors/app"
	root     = "/app"
	interval = 30 * time.Second
)

// world is a server in memory, in virtual time, and the events that monitors have reported.
type world struct {
	*zktest.Server
	t       *testing.T
	timeout time.Duration // of sessions
	mu      sync.Mutex
	// unread are the events since the last call of news, as "monitor begins problem path".
	unread []string
	all    []monitor.Event
}

// in runs a test in a synctest bubble.
func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &world{Server: zktest.Start(t, zktest.WithSessionTimeouts(time.Second, time.Hour)), t: t,
			timeout: 10 * time.Second})
	})
}

func (w *world) member(name string, opts ...framework.Option) *zktest.Member {
	return w.Member(w.t, name, framework.Config{SessionTimeout: w.timeout}, opts...)
}

// watcher is a running monitor and its client.
type watcher struct {
	*zktest.Member
	stop context.CancelFunc
	done chan error
}

// watch runs a monitor until the end of the test, and counts its events. It returns a second after
// the monitor has started.
func (w *world) watch(name string, opts ...monitor.Option) *watcher {
	w.t.Helper()
	m := w.member(name)
	return w.run(m, append([]monitor.Option{monitor.WithOnEvent(time.Second,
		func(_ context.Context, e monitor.Event) error {
			w.note(name, e)
			return nil
		})}, opts...)...)
}

func (w *world) run(m *zktest.Member, opts ...monitor.Option) *watcher {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	p := &watcher{m, stop, make(chan error, 1)}
	running := monitor.New(m.Client, path, root, opts...)
	go func() { p.done <- running.Run(ctx) }()
	w.t.Cleanup(func() { p.end(w.t) })
	time.Sleep(time.Second)
	return p
}

// end stops a monitor and waits for it.
func (p *watcher) end(t *testing.T) {
	t.Helper()
	p.stop()
	select {
	case err := <-p.done:
		p.done <- err
		require.True(t, err == nil || errors.Is(err, framework.ErrClosed), "%v", err)
	case <-time.After(time.Hour):
		require.Fail(t, "the monitor does not end")
	}
}

// note records an event that the monitor with this name has reported.
func (w *world) note(name string, e monitor.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread = append(w.unread, fmt.Sprintf("%s %s %s %s", name, e.Kind, e.Problem, e.Path))
	w.all = append(w.all, e)
}

// news returns the events since the last call.
func (w *world) news() (events []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	events, w.unread = w.unread, nil
	return events
}

// last is the latest event.
func (w *world) last() monitor.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[len(w.all)-1]
}

// scans lets time pass for so many scans.
func (w *world) scans(n int) { time.Sleep(time.Duration(n) * interval) }

// put makes a node and the directories above it.
func (w *world) put(m *zktest.Member, path, data string, mode framework.Mode) {
	w.t.Helper()
	require.NoError(w.t, m.MakeDirs(w.t.Context(), path[:strings.LastIndexByte(path, '/')]))
	require.NoError(w.t, m.Create(w.t.Context(), path, []byte(data), mode))
}

func (w *world) remove(m *zktest.Member, path string) {
	w.t.Helper()
	require.NoError(w.t, m.Delete(w.t.Context(), path, framework.AnyVersion))
}
