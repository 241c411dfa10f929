package barrier_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	timeout = 10 * time.Second
	path    = "/barriers/a"
)

var config = framework.Config{SessionTimeout: timeout}

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

func in(t *testing.T, test func(t *testing.T, w *world), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t, opts...), t}) })
}

func (w *world) member(name string) *zktest.Member { return w.Member(w.t, name, config) }

// awakeMember is a client whose sessions prove their life also while it waits, so that it may give
// a session up before the servers do.
func (w *world) awakeMember(name string) *zktest.Member {
	awake := config
	awake.AlwaysAwake = true
	return w.Member(w.t, name, awake)
}

// members are clients on links of their own.
func (w *world) members(n int) []*zktest.Member {
	all := make([]*zktest.Member, n)
	for i := range all {
		all[i] = w.member(string(rune('a' + i)))
	}
	return all
}

func (w *world) session(m *zktest.Member) *framework.Session {
	w.t.Helper()
	s, err := m.Session(w.t.Context())
	require.NoError(w.t, err)
	return s
}

// in is the directory of the members of the barrier at path.
func (w *world) in() string {
	for _, name := range w.Children(path) {
		if strings.HasPrefix(name, "in-") {
			return path + "/" + name
		}
	}
	return path + "/in-"
}

// nobody requires that no member's node is left.
func (w *world) nobody() {
	w.t.Helper()
	for _, n := range w.Tree("/") {
		require.NotEqual(w.t, zktest.Ephemeral, n.Mode, n.Path)
	}
}

// entrance is one Enter in a goroutine.
type entrance struct {
	t    *testing.T
	done chan struct{}
	r    *barrier.Round
	err  error
}

func enter(t *testing.T, ctx context.Context, b *barrier.DoubleBarrier) *entrance {
	e := &entrance{t: t, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		e.r, e.err = b.Enter(ctx)
	}()
	synctest.Wait()
	return e
}

func (e *entrance) over() bool {
	synctest.Wait()
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// round waits for the round.
func (e *entrance) round() *barrier.Round {
	e.t.Helper()
	<-e.done
	require.NoError(e.t, e.err)
	require.NoError(e.t, e.r.Err())
	return e.r
}

// failed waits for the error.
func (e *entrance) failed() error {
	e.t.Helper()
	<-e.done
	require.Nil(e.t, e.r)
	require.Error(e.t, e.err)
	return e.err
}

// enterAll lets all enter one after the other.
func enterAll(t *testing.T, bs ...*barrier.DoubleBarrier) []*barrier.Round {
	t.Helper()
	waits := make([]*entrance, len(bs))
	for i, b := range bs {
		waits[i] = enter(t, t.Context(), b)
	}
	rs := make([]*barrier.Round, len(bs))
	for i, e := range waits {
		rs[i] = e.round()
	}
	return rs
}

// exit is one Leave in a goroutine.
type exit struct {
	done chan struct{}
	err  error
}

func leave(ctx context.Context, r *barrier.Round) *exit {
	x := &exit{done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.err = r.Leave(ctx)
	}()
	synctest.Wait()
	return x
}

func (x *exit) over() bool {
	synctest.Wait()
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

func leaveAll(t *testing.T, rs ...*barrier.Round) {
	t.Helper()
	all := make([]*exit, len(rs))
	for i, r := range rs {
		all[i] = leave(t.Context(), r)
	}
	for _, x := range all {
		<-x.done
		require.NoError(t, x.err)
	}
}

// doubles makes a barrier of so many for each member.
func doubles(n int, ms ...*zktest.Member) []*barrier.DoubleBarrier {
	bs := make([]*barrier.DoubleBarrier, len(ms))
	for i, m := range ms {
		bs[i] = barrier.NewDoubleBarrier(m.Client, path, n)
	}
	return bs
}
