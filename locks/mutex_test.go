package locks_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

const (
	timeout = 10 * time.Second
	path    = "/locks/a"
)

var config = framework.Config{SessionTimeout: timeout}

// world is a server with members, one lock each.
type world struct {
	t  *testing.T
	zk *zktest.Server
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{t, zktest.Start(t)}) })
}

func (w *world) member(name string) *zktest.Member { return w.zk.Member(w.t, name, config) }

func lock(t *testing.T, c *framework.Client) *locks.Lease {
	t.Helper()
	l, err := locks.NewMutex(c, path).Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Err())
	return l
}

func TestLockAndRelease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		la := lock(t, a.Client)
		_, err := locks.NewMutex(b.Client, path).TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.False(t, failure.IsTransient(err))
		require.Len(t, w.zk.Children(path), 1)

		require.NoError(t, la.Release(t.Context()))
		require.NoError(t, la.Release(t.Context()))
		require.ErrorIs(t, la.Err(), locks.ErrReleased)
		require.ErrorIs(t, context.Cause(la.Context()), locks.ErrReleased)
		require.Empty(t, w.zk.Children(path))

		lb, err := locks.NewMutex(b.Client, path).TryLock(t.Context())
		require.NoError(t, err)
		require.Greater(t, lb.Token(), la.Token())
	})
}

func TestGrantsAreInOrderAndTokensRise(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var order []int
		var last int64
		held := lock(t, w.member("holder").Client)
		var wg sync.WaitGroup
		for i := range 20 {
			m := w.member("m")
			wg.Go(func() {
				l := lock(t, m.Client)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				require.Greater(t, l.Token(), last)
				last = l.Token()
				require.NoError(t, l.Release(t.Context()))
			})
			synctest.Wait()
		}
		require.NoError(t, held.Release(t.Context()))
		wg.Wait()
		for i, who := range order {
			require.Equal(t, i, who)
		}
		require.Empty(t, w.zk.Children(path))
	})
}

func TestTheNodeNamesItsOwner(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		l := lock(t, w.member("alice").Client)
		n, _ := w.zk.Node(l.Node())
		o := ownerIn(t, n.Data)
		require.Equal(t, "alice", o.Owner)
		require.Positive(t, o.PID)
		r := inspect(t, w.member("bob").Client, path)
		require.Len(t, r.Holders, 1)
		require.Empty(t, r.Waiters)
		e := r.Holders[0]
		require.Equal(t, []any{l.Node(), l.Token(), l.Session(), "alice", o.PID},
			[]any{e.Node, e.Token, e.Session, e.Owner, e.PID})
	})
}

// TestNoTwoHolders cuts the holder off in every way, at many phases.
func TestNoTwoHolders(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Server, *zktest.Member){
		"cut":             func(_ *zktest.Server, m *zktest.Member) { m.Link.Cut() },
		"black hole":      func(_ *zktest.Server, m *zktest.Member) { m.Link.BlackHole(true, true) },
		"nothing goes up": func(_ *zktest.Server, m *zktest.Member) { m.Link.BlackHole(true, false) },
		"nothing comes":   func(_ *zktest.Server, m *zktest.Member) { m.Link.BlackHole(false, true) },
		"half open":       func(_ *zktest.Server, m *zktest.Member) { m.Link.HalfOpen(true); m.Link.Reset() },
		"restart, then cut": func(zk *zktest.Server, m *zktest.Member) {
			zk.Restart()
			m.Link.Cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for phase := range 20 {
				in(t, func(t *testing.T, w *world) {
					a, b := w.member("a"), w.member("b")
					la := lock(t, a.Client)
					won := make(chan *locks.Lease)
					go func() { won <- lock(t, b.Client) }()
					time.Sleep(3*timeout + time.Duration(phase)*timeout/80)
					fault(w.zk, a)
					lb := <-won
					require.ErrorIs(t, la.Err(), framework.ErrSessionLost, "phase %d", phase)
					require.Greater(t, lb.Token(), la.Token())
					_, err := a.Multi(t.Context(), la.Guard())
					require.ErrorIs(t, err, framework.ErrSessionLost)
					a.Link.Heal()
				})
			}
		})
	}
}

// TestCancelledWaitLeavesNoNodes ends the wait's context at every step, with replies lost on the
// way.
func TestCancelledWaitLeavesNoNodes(t *testing.T) {
	for seed := range uint64(60) {
		in(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 1))
			h, a := w.member("h"), w.member("a")
			held := lock(t, h.Client)
			a.Link.Delay(10 * time.Millisecond)
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpDelete,
				zktest.OpMulti} {
				if r.IntN(2) == 0 {
					s, _ := a.Session(t.Context())
					w.zk.DropReply(1, zktest.Match{Op: op, Session: s.ID()})
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(200))*time.Millisecond)
			defer cancel()
			_, err := locks.NewMutex(a.Client, path).Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(timeout)
			require.Equal(t, []string{held.Node()[len(path)+1:]}, w.zk.Children(path), "seed %d", seed)
		})
	}
}

func TestTimedOutWaitsLeaveOneWatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, a := w.member("h"), w.member("a")
		held := lock(t, h.Client)
		m := locks.NewMutex(a.Client, path)
		for range 10000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := m.Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		time.Sleep(time.Second)
		waiters := w.zk.Watches()
		// of its own node
		waiters = slices.DeleteFunc(waiters,
			func(watch zktest.Watch) bool { return watch.Session == held.Session() })
		require.LessOrEqual(t, len(waiters), 1)
		require.Len(t, w.zk.Children(path), 1)
		require.NoError(t, held.Release(t.Context()))
		time.Sleep(time.Second)
		require.Empty(t, w.zk.Watches())
	})
}

func TestErrorsTellWhy(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, a := w.member("h"), w.member("a")
		held := lock(t, h.Client)
		m := locks.NewMutex(a.Client, path)

		ctx, cancel := context.WithCancelCause(t.Context())
		why := context.Canceled
		cancel(why)
		_, err := m.Lock(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "acquire "+path)

		done := make(chan error, 1)
		go func() { _, err := m.Lock(t.Context()); done <- err }()
		synctest.Wait()
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, <-done, framework.ErrClosed)
		require.NoError(t, held.Err())
	})
}

func TestBadInput(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		for bad, want := range map[string]string{
			"": `invalid path ""`, "a": `invalid path "a"`, "/a/": `invalid path "/a/"`,
			"/":     `the root cannot be a lock`,
			"/a//b": "empty element", "/a/../b": "relative element",
			"/zookeeper": "belong to the servers", "/zookeeper/config": "belong to the servers",
		} {
			m := locks.NewMutex(c, bad)
			for _, ask := range []func(context.Context) (*locks.Lease, error){m.Lock, m.TryLock} {
				_, err := ask(t.Context())
				require.ErrorIs(t, err, framework.ErrInvalid, bad)
				require.ErrorContains(t, err, want)
			}
		}
		_, err := locks.NewMutex(nil, path).Lock(t.Context())
		require.ErrorContains(t, err, "the client is nil")
		_, err = locks.NewMutex(c, path, locks.WithData(make([]byte, 65<<10))).Lock(t.Context())
		require.ErrorContains(t, err, "66560 bytes")
		_, err = locks.NewMutex(c, path, locks.WithOnWait(nil)).Lock(t.Context())
		require.ErrorContains(t, err, "the function is nil")
		require.Empty(t, w.zk.Children("/"+strings.Split(path, "/")[1]))
	})
}

func TestForeignChildrenAndOtherKinds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.MakeDirs(t.Context(), path))
		require.NoError(t, a.Create(t.Context(), path+"/readme", nil, framework.Persistent))
		l := lock(t, a.Client)
		require.NoError(t, l.Release(t.Context()))
		_, err := primitives.Of(sessionOf(t, a)).CreateProtected(t.Context(),
			primitives.ProtectedCreate{Dir: path, Name: "__READ__"})
		require.NoError(t, err)
		_, err = locks.NewMutex(a.Client, path).Lock(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		_, err = locks.NewMutex(a.Client, path).TryLock(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		synctest.Wait()
		require.Len(t, w.zk.Children(path), 2, "the refused contender is gone")
	})
}

func sessionOf(t *testing.T, m *zktest.Member) *framework.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	require.NoError(t, err)
	return s
}

func TestQueuedTellsThePlace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, a := w.member("h"), w.member("a")
		held := lock(t, h.Client)
		ahead := 0
		m := locks.NewMutex(a.Client, path, locks.WithOnWait(func(n int) { ahead = n }))
		go func() { time.Sleep(time.Second); _ = held.Release(t.Context()) }()
		_, err := m.Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, ahead)
	})
}
