package members_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	timeout = 10 * time.Second
	path    = "/groups/web"
)

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

// in runs a test in a synctest bubble.
func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t}) })
}

// peer is a client on a link of its own, and the group on that client.
type peer struct {
	*members.Group
	*zktest.Member
	t *testing.T
}

func (w *world) peer(name string) *peer {
	m := w.Member(w.t, name, framework.Config{SessionTimeout: timeout, Identity: name})
	return &peer{members.New(m.Client, path), m, w.t}
}

// join joins until the end of the test.
func (p *peer) join(id string, opts ...members.JoinOption) *members.Membership {
	p.t.Helper()
	m, err := p.Join(p.t.Context(), id, members.Info{}, opts...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // a drain function may still run
		defer cancel()
		_ = m.Leave(ctx)
	})
	return m
}

func (p *peer) sessionID() framework.SessionID {
	s, err := p.Client.Session(p.t.Context())
	require.NoError(p.t, err)
	return s.ID()
}

// member returns the listed member with an ID.
func (p *peer) member(id string) members.Member {
	p.t.Helper()
	view, err := p.Inspect(p.t.Context())
	require.NoError(p.t, err)
	for _, m := range view.Members {
		if m.ID == id {
			return m
		}
	}
	require.Fail(p.t, "not listed", id)
	return members.Member{}
}

// limit sets a quota on the group's directory, below which nothing is counted yet. The function
// that it returns changes the quota.
func (p *peer) limit(name string, most int) (change func(most int)) {
	p.t.Helper()
	quota := "/zookeeper/quota" + path
	require.NoError(p.t, p.Client.MakeDirs(p.t.Context(), quota))
	require.NoError(p.t, p.Client.Create(p.t.Context(), quota+"/zookeeper_limits",
		fmt.Appendf(nil, "%s=%d", name, most), framework.Persistent))
	require.NoError(p.t, p.Client.Create(p.t.Context(), quota+"/zookeeper_stats", []byte("count=1,bytes=0"),
		framework.Persistent))
	return func(most int) {
		_, err := p.Client.Set(p.t.Context(), quota+"/zookeeper_limits", fmt.Appendf(nil, "%s=%d", name, most),
			framework.AnyVersion)
		require.NoError(p.t, err)
	}
}

// watched are the views that one watcher has received.
type watched struct {
	mu     sync.Mutex
	t      *testing.T
	views  []members.View
	newest int64 // transaction of a change
	err    error
	done   chan struct{}
}

// watch watches until ctx or the test ends, and checks the order of the changes.
func (p *peer) watch(ctx context.Context) *watched {
	w := &watched{t: p.t, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for view, err := range p.Follow(ctx) {
			w.mu.Lock()
			if w.err = err; err == nil {
				w.add(view)
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// add adds a view, and checks that no change comes after a newer one.
func (w *watched) add(view members.View) {
	for _, c := range view.Changes {
		if c.Zxid != 0 && c.Zxid < w.newest {
			w.t.Errorf("%s %s of transaction %d comes after transaction %d", c.Kind, c.Member.ID, c.Zxid, w.newest)
		}
		w.newest = max(w.newest, c.Zxid)
	}
	w.views = append(w.views, view)
}

// view is the latest view.
func (w *watched) view() members.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.views[len(w.views)-1]
}

// failed is the error that was yielded last, or nil.
func (w *watched) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// last is "members: changes" of the latest view.
func (w *watched) last() string {
	view := w.view()
	var ids, changes []string
	for _, m := range view.Members {
		ids = append(ids, m.ID)
	}
	for _, c := range view.Changes {
		changes = append(changes, fmt.Sprint(c.Kind, " ", c.Member.ID))
	}
	return strings.Join(ids, " ") + ": " + strings.Join(changes, ", ")
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.views)
}
