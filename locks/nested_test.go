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

func TestANestedLeaseSharesTheNode(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		c := w.member("a").Client
		outer := held(t, t.Context(), kind.make(c, locks.WithReentry()))
		before := w.requests()
		m := kind.make(c, locks.WithReentry()) // the context counts, not the value
		nested := held(t, outer.Context(), m)
		tried, err := m.TryLock(nested.Context())
		require.NoError(t, err)
		for _, l := range []*locks.Lease{nested, tried} {
			require.Equal(t, outer.Node(), l.Node())
			require.Equal(t, outer.Token(), l.Token())
			require.Equal(t, outer.Turn(), l.Turn())
			require.Equal(t, outer.Session(), l.Session())
			require.Equal(t, outer.Path(), l.Path())
			require.Equal(t, outer.Remaining(), l.Remaining())
		}
		require.Equal(t, before, w.requests(), "nothing is asked of the servers")
		require.Len(t, w.zk.Children(path), 1)
		_, err = c.Multi(t.Context(), tried.Guard(), framework.CreateOp("/guarded", nil, framework.Persistent))
		require.NoError(t, err)
		released(t, outer)
		_, err = c.Multi(t.Context(), tried.Guard(), framework.DeleteOp("/guarded", framework.AnyVersion))
		require.ErrorIs(t, err, locks.ErrReleased)
	})
}

func TestTheReleaseOfANestedLeaseLeavesTheOuter(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		m := kind.make(w.member("a").Client, locks.WithReentry())
		outer := held(t, t.Context(), m)
		middle := held(t, outer.Context(), m)
		inner := held(t, middle.Context(), m)
		released(t, middle)
		require.ErrorIs(t, context.Cause(middle.Context()), locks.ErrReleased)
		require.ErrorIs(t, inner.Err(), locks.ErrReleased, "what is nested in it ends with it")
		require.Error(t, inner.Context().Err())
		require.NoError(t, outer.Err())
		require.NoError(t, outer.Context().Err())
		refusedSoon(t, kind.rival(w.member("b").Client))
		again := held(t, outer.Context(), m)
		released(t, inner, again)
		require.Len(t, w.zk.Children(path), 1)
		released(t, outer)
		w.nothingLeft(t)
	})
}

func TestANestedLeaseEndsWithTheOuter(t *testing.T) {
	for name, end := range map[string]struct {
		how   func(t *testing.T, w *world, outer *locks.Lease)
		cause error
	}{
		"released": {func(t *testing.T, _ *world, outer *locks.Lease) { released(t, outer) }, locks.ErrReleased},
		"session lost": {func(t *testing.T, w *world, outer *locks.Lease) {
			require.NoError(t, w.zk.Expire(outer.Session()))
			<-outer.Context().Done()
		}, framework.ErrSessionLost},
	} {
		t.Run(name, func(t *testing.T) {
			eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
				m := kind.make(w.member("a").Client, locks.WithReentry())
				outer := held(t, t.Context(), m)
				nested := held(t, outer.Context(), m)
				deep := held(t, nested.Context(), m)
				end.how(t, w, outer)
				for _, l := range []*locks.Lease{nested, deep} {
					require.ErrorIs(t, l.Err(), end.cause)
					require.ErrorIs(t, context.Cause(l.Context()), end.cause)
					require.Zero(t, l.Remaining())
				}
				require.NoError(t, deep.Release(t.Context()))
				require.NoError(t, nested.Release(t.Context()))
				released := held(t, t.Context(), kind.rival(w.member("b").Client))
				require.Greater(t, released.Token(), outer.Token())
			})
		})
	}
}

// TestTheFirstEndOfANestedLeaseCounts: it was released, then the outer one's session is lost.
func TestTheFirstEndOfANestedLeaseCounts(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		m := kind.make(w.member("a").Client, locks.WithReentry())
		outer := held(t, t.Context(), m)
		nested := held(t, outer.Context(), m)
		released(t, nested)
		require.NoError(t, w.zk.Expire(outer.Session()))
		<-outer.Context().Done()
		require.ErrorIs(t, nested.Err(), locks.ErrReleased)
		require.ErrorIs(t, outer.Err(), framework.ErrSessionLost)
	})
}

// TestGoroutinesInheritTheHold lets many goroutines nest at once with a context that they
// inherited.
func TestGoroutinesInheritTheHold(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		m := kind.make(w.member("a").Client, locks.WithReentry())
		outer := held(t, t.Context(), m)
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(outer.Context(), key{}, "mine"))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				l := held(t, ctx, m)
				require.Equal(t, "mine", l.Context().Value(key{}))
				time.Sleep(time.Second)
				require.NoError(t, l.Err())
				released(t, l)
			})
		}
		wg.Wait()
		l := held(t, ctx, m)
		cancel()
		require.NoError(t, l.Err(), "a lease has the values of the context that asked, not its end")
		require.Len(t, w.zk.Children(path), 1)
		require.NoError(t, outer.Err())
		released(t, outer)
	})
}

// TestWithoutReentryTheRequestIsRefused would hang for ever without the refusal.
func TestWithoutReentryTheRequestIsRefused(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		c := w.member("a").Client
		m := kind.make(c)
		outer := held(t, t.Context(), kind.make(c, locks.WithReentry()))
		before := w.requests()
		for _, ask := range []func(context.Context) (*locks.Lease, error){m.Lock, m.TryLock} {
			_, err := ask(outer.Context())
			require.ErrorIs(t, err, locks.ErrHeld)
			require.ErrorContains(t, err, path)
			require.False(t, failure.IsTransient(err))
		}
		require.Equal(t, before, w.requests())
		require.NoError(t, outer.Err())
		elsewhere := held(t, outer.Context(), locks.NewMutex(c, "/locks/elsewhere"))
		released(t, elsewhere, outer)
	})
}

// TestReentryIsByContext has goroutines with contexts of their own: the lock's value and the client
// are the same, and still they exclude each other.
func TestReentryIsByContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithReentry())
		var wg sync.WaitGroup
		inside := 0
		for range 10 {
			wg.Go(func() {
				l := held(t, t.Context(), m)
				inside++
				require.Equal(t, 1, inside)
				nested := held(t, l.Context(), m)
				time.Sleep(time.Millisecond)
				released(t, nested)
				require.Equal(t, 1, inside)
				inside--
				released(t, l)
			})
		}
		wg.Wait()
		w.nothingLeft(t)
	})
}

// TestAnEndedLeasesContextIsNoHold asks again with what is left of a former hold.
func TestAnEndedLeasesContextIsNoHold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		m := locks.NewMutex(a.Client, path, locks.WithReentry())
		outer := held(t, t.Context(), m)
		former := context.WithoutCancel(outer.Context())
		released(t, outer)
		other := lock(t, b.Client)
		refused, cancel := context.WithTimeout(former, time.Second)
		defer cancel()
		_, err := m.Lock(refused)
		require.ErrorIs(t, err, context.DeadlineExceeded, "it waits like everybody")
		released(t, other)
		l := held(t, former, m)
		require.NotEqual(t, outer.Node(), l.Node())
		require.NoError(t, held(t, l.Context(), m).Release(t.Context()))
		released(t, l)
	})
}

// TestAnotherClientsContextIsNoHold: a hold belongs to a client, not to a process.
func TestAnotherClientsContextIsNoHold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		outer := held(t, t.Context(), locks.NewMutex(w.member("a").Client, path, locks.WithReentry()))
		// before the request looks for a deadlock, which this is
		ctx, cancel := context.WithTimeout(outer.Context(), time.Second/2)
		defer cancel()
		_, err := locks.NewMutex(w.member("b").Client, path, locks.WithReentry()).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		released(t, outer)
	})
}

// TestNestedWriterDowngradesToReader goes on from a nested write lease.
func TestNestedWriterDowngradesToReader(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rw := locks.NewRWLock(w.member("a").Client, path, locks.WithReentry())
		outer := held(t, t.Context(), rw)
		nested := held(t, outer.Context(), rw)
		r := held(t, nested.Context(), rw.RLocker())
		require.Equal(t, outer.Token(), r.Token())
		require.NotEqual(t, outer.Node(), r.Node())
		rr := held(t, r.Context(), rw.RLocker())
		require.Equal(t, r.Node(), rr.Node())
		_, err := rw.Lock(rr.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		released(t, nested, outer)
		require.NoError(t, rr.Err())
		beside := held(t, t.Context(), locks.NewRWLock(w.member("b").Client, path).RLocker())
		released(t, rr, r, beside)
		w.nothingLeft(t)
	})
}
