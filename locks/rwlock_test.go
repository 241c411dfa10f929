package locks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
)

// asker asks for leases in the background and tells in which order they were granted.
type asker struct {
	t       *testing.T
	granted chan string
	mu      sync.Mutex
	leases  map[string]*locks.Lease
}

func newAsker(t *testing.T) *asker {
	return &asker{t: t, granted: make(chan string, 100), leases: map[string]*locks.Lease{}}
}

// ask asks by one of a lock's functions and returns when the request has come as far as it can.
func (a *asker) ask(name string, lock func(context.Context) (*locks.Lease, error)) {
	go func() {
		l, err := lock(a.t.Context())
		if err != nil {
			a.granted <- name + ": " + err.Error()
			return
		}
		a.mu.Lock()
		a.leases[name] = l
		a.mu.Unlock()
		a.granted <- name
	}()
	synctest.Wait()
}

// now returns who was granted since.
func (a *asker) now() (names []string) {
	synctest.Wait()
	for {
		select {
		case n := <-a.granted:
			names = append(names, n)
		default:
			return names
		}
	}
}

func (a *asker) lease(name string) *locks.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leases[name]
}

func (a *asker) release(names ...string) {
	for _, n := range names {
		require.NoError(a.t, a.lease(n).Release(a.t.Context()))
	}
}

// rwMembers runs a test with contenders on sessions of their own, and all on one.
func rwMembers(t *testing.T, test func(t *testing.T, w *world, lock func() *locks.RWLock)) {
	t.Run("own sessions", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			test(t, w, func() *locks.RWLock { return locks.NewRWLock(w.member("m").Client, path) })
		})
	})
	t.Run("one session", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			c := w.member("m").Client
			test(t, w, func() *locks.RWLock { return locks.NewRWLock(c, path) })
		})
	})
}

func TestReadersHoldTogetherInOrder(t *testing.T) {
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		a := newAsker(t)
		a.ask("r1", lock().RLock)
		a.ask("r2", lock().RLock)
		require.ElementsMatch(t, []string{"r1", "r2"}, a.now())
		a.ask("w1", lock().Lock)
		a.ask("r3", lock().RLock)
		a.ask("r4", lock().RLock)
		a.ask("w2", lock().Lock)
		a.ask("r5", lock().RLock)
		require.Empty(t, a.now())
		a.release("r2")
		require.Empty(t, a.now())
		a.release("r1")
		require.Equal(t, []string{"w1"}, a.now())
		a.release("w1")
		require.ElementsMatch(t, []string{"r3", "r4"}, a.now())
		a.release("r3", "r4")
		require.Equal(t, []string{"w2"}, a.now())
		require.Greater(t, a.lease("w2").Token(), a.lease("w1").Token())
		a.release("w2")
		require.Equal(t, []string{"r5"}, a.now())
		a.release("r5")
		require.Empty(t, w.zk.Children(path))
	})
}

func TestCancelledWriterLetsReadersPass(t *testing.T) {
	rwMembers(t, func(t *testing.T, _ *world, lock func() *locks.RWLock) {
		a := newAsker(t)
		a.ask("r1", lock().RLock)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		writer := lock()
		go func() { _, err := writer.Lock(ctx); done <- err }()
		synctest.Wait()
		a.ask("r2", lock().RLock)
		a.ask("r3", lock().RLock)
		require.Equal(t, []string{"r1"}, a.now())
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"r2", "r3"}, a.now())
		a.release("r1", "r2", "r3")
	})
}

func TestTriesOfReadersAndWriters(t *testing.T) {
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		r, err := lock().TryRLock(t.Context())
		require.NoError(t, err)
		r2, err := lock().TryRLock(t.Context())
		require.NoError(t, err)
		_, err = lock().TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, r.Release(t.Context()))
		require.NoError(t, r2.Release(t.Context()))
		wl, err := lock().TryLock(t.Context())
		require.NoError(t, err)
		_, err = lock().TryRLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, wl.Release(t.Context()))
		require.Empty(t, w.zk.Children(path))
	})
}

func TestWriterDowngradesToReader(t *testing.T) {
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		a, rw := newAsker(t), lock()
		a.ask("w1", rw.Lock)
		a.ask("r2", lock().RLock)
		a.ask("w2", lock().Lock)
		a.ask("r3", lock().RLock)
		require.Equal(t, []string{"w1"}, a.now())
		w1 := a.lease("w1")
		a.ask("r1", func(context.Context) (*locks.Lease, error) { return rw.RLock(w1.Context()) })
		require.Equal(t, []string{"r1"}, a.now())
		require.Equal(t, w1.Token(), a.lease("r1").Token())
		a.release("w1")
		require.Equal(t, []string{"r2"}, a.now(), "the readers behind")
		require.NoError(t, a.lease("r1").Err())
		a.release("r2")
		require.Empty(t, a.now())
		a.release("r1")
		require.Equal(t, []string{"w2"}, a.now())
		a.release("w2")
		require.Equal(t, []string{"r3"}, a.now())
		a.release("r3")
		require.Empty(t, w.zk.Children(path))
	})
}

func TestDowngradedReaderMayReleaseFirst(t *testing.T) {
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		a, rw := newAsker(t), lock()
		a.ask("w1", rw.Lock)
		r1, err := rw.RLock(a.lease("w1").Context())
		require.NoError(t, err)
		require.NoError(t, r1.Release(t.Context()))
		a.ask("r2", lock().RLock)
		a.ask("w2", lock().Lock)
		require.Equal(t, []string{"w1"}, a.now())
		a.release("w1")
		require.Equal(t, []string{"r2"}, a.now())
		a.release("r2")
		require.Equal(t, []string{"w2"}, a.now())
		a.release("w2")
		require.Empty(t, w.zk.Children(path))
	})
}

func TestUpgradeIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rw := locks.NewRWLock(w.member("a").Client, path)
		r, err := rw.RLock(t.Context())
		require.NoError(t, err)
		_, err = rw.Lock(r.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		require.ErrorContains(t, err, path)
		_, err = rw.TryLock(r.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		_, err = rw.RLock(r.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		require.NoError(t, r.Err())
		require.Len(t, w.zk.Children(path), 1)
	})
}

// TestAReaderInAWritersPlaceIsSeen has a writer of another session wait behind one that goes on as
// a reader, which looks to it as if its predecessor were gone.
func TestAReaderInAWritersPlaceIsSeen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := locks.NewRWLock(w.member("a").Client, path), locks.NewRWLock(w.member("b").Client, path)
		wl, err := a.Lock(t.Context())
		require.NoError(t, err)
		got := newAsker(t)
		got.ask("b", b.Lock)
		rl, err := a.RLock(wl.Context())
		require.NoError(t, err)
		require.NoError(t, wl.Release(t.Context()))
		time.Sleep(time.Second)
		require.Empty(t, got.now())
		require.NoError(t, rl.Release(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, []string{"b"}, got.now())
	})
}

func TestReadersAndMutexesDoNotMix(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		lock(t, c)
		for _, ask := range []func(context.Context) (*locks.Lease, error){
			locks.NewRWLock(c, path).Lock, locks.NewRWLock(c, path).RLock, locks.NewRWLock(c, path).TryLock,
			locks.NewRWLock(c, path).TryRLock,
		} {
			_, err := ask(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign)
		}
		synctest.Wait()
		require.Len(t, w.zk.Children(path), 1)
		require.False(t, failure.IsTransient(framework.ErrForeign))
	})
}
