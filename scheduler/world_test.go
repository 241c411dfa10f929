package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

const (
	timeout  = 10 * time.Second
	testPath = "/cron"
)

var config = framework.Config{SessionTimeout: timeout}

// patient is for tests of days: proofs of life are rare.
var patient = framework.Config{SessionTimeout: time.Hour}

// world is a server in memory and a cluster of schedulers, in virtual time.
type world struct {
	*zktest.Server
	t      *testing.T
	log    *journal
	config framework.Config
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t, &journal{}, config}) })
}

func inDays(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithSessionTimeouts(time.Second, time.Hour),
			zktest.WithContainerInterval(24*time.Hour))
		test(t, &world{srv, t, &journal{}, patient})
	})
}

// until lets virtual time pass until a moment.
func until(t time.Time) {
	time.Sleep(time.Until(t))
	synctest.Wait()
}

// journal is what all members of a world have told of.
type journal struct {
	mu     sync.Mutex
	events []entry
}

// entry is an event, with its member and when it happened.
type entry struct {
	member string
	when   time.Time
	Event
}

func (j *journal) of(member string) Option {
	return WithOnEvent(func(e Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events = append(j.events, entry{member, time.Now(), e})
	})
}

// all returns the events of a kind.
func (j *journal) all(kind EventKind) (out []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// ticks returns the ticks that were started, as times of the day.
func (j *journal) ticks() (out []string) {
	for _, e := range j.all(EventStarted) {
		out = append(out, e.Run.Tick.Format(time.TimeOnly))
	}
	return out
}

// actor is one scheduler on a link of its own.
type actor struct {
	*Scheduler
	name   string
	client *framework.Client
	link   *zktest.Link
	stop   context.CancelFunc
	done   chan error
}

// member makes a scheduler that does not run yet.
func (w *world) member(name string, all []Job, opts ...Option) *actor {
	w.t.Helper()
	m := w.Member(w.t, name, w.config)
	s := New(m.Client, testPath, append([]Option{w.log.of(name)}, opts...)...)
	for _, j := range all {
		require.NoError(w.t, s.Add(j))
	}
	return &actor{Scheduler: s, name: name, client: m.Client, link: m.Link, done: make(chan error, 2)}
}

// start makes a scheduler that runs until the test ends or it is stopped.
func (w *world) start(name string, all []Job, opts ...Option) *actor {
	w.t.Helper()
	m := w.member(name, all, opts...)
	m.run(w.t)
	return m
}

func (m *actor) run(t *testing.T) {
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		m.stop()
		<-ended
	})
	go func() {
		defer close(ended)
		m.done <- m.Run(ctx)
	}()
	synctest.Wait()
}

// sessionID is that of the member's present session.
func (m *actor) sessionID(t *testing.T) framework.SessionID {
	t.Helper()
	session, err := m.client.Session(t.Context())
	require.NoError(t, err)
	return session.ID()
}

// kill takes a member away as a crash does: nobody hears of it any more.
func (m *actor) kill() {
	m.link.Cut()
	m.stop()
	_ = m.client.Close(context.Background())
	<-m.done
}

func (w *world) state(job string) State {
	w.t.Helper()
	state := w.stored(job)
	return state.publicState(job)
}

func (w *world) stored(job string) jobState {
	w.t.Helper()
	n, ok := w.Node(testPath + "/jobs/" + job)
	require.True(w.t, ok)
	state, err := decodeState(n.Data)
	require.NoError(w.t, err)
	if state.Registered = state.Reregistered; state.Registered.IsZero() {
		state.Registered = n.Stat.Ctime
	}
	return state
}

// claims are the claims of a job's runs.
func (w *world) claims(job string) (claims []string) {
	for _, name := range w.Children(testPath + "/jobs/" + job) {
		if strings.HasPrefix(name, "run-") {
			claims = append(claims, name)
		}
	}
	return claims
}

// leader is the name of the member that leads, or "".
func (w *world) leader() string {
	names := w.Children(testPath + "/election")
	if len(names) == 0 {
		return ""
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	n, _ := w.Node(testPath + "/election/" + names[0])
	return string(n.Data)
}

// setPermissions changes what all clients may do with a node, as an operator does with setAcl.
func (w *world) setPermissions(node string, perms framework.Perms) {
	w.t.Helper()
	conn, _, err := zk.Connect(w.Servers(), timeout, zk.WithDialer(w.Link("operator").Dial), zk.WithLogInfo(false))
	require.NoError(w.t, err)
	defer conn.Close()
	_, err = conn.SetACL(node, zk.WorldACL(int32(perms)), framework.AnyVersion)
	require.NoError(w.t, err)
}

func quick(context.Context, Run) error { return nil }

// lasting returns a job function that takes some time.
func lasting(d time.Duration) func(context.Context, Run) error {
	return func(ctx context.Context, _ Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func jobs(name, spec string, run func(context.Context, Run) error) []Job {
	return []Job{{Name: name, Spec: spec, Run: run}}
}

// requireBalanced checks that every tick of a job that was due was run or missed, once.
func (w *world) requireBalanced(name, spec string) State {
	w.t.Helper()
	state := w.state(name)
	schedule, err := ParseSpec(spec, nil)
	require.NoError(w.t, err)
	var due int64
	for t := schedule.Next(state.Registered); !t.After(state.Last); t = schedule.Next(t) {
		due++
	}
	require.Equal(w.t, due, state.Due(), fmt.Sprintf("%s: fired %d, missed %v", name, state.Fired, state.Missed))
	return state
}
