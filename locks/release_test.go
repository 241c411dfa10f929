package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAReleasedLockCanBeTriedAtOnce by the one who has waited for the release.
func TestAReleasedLockCanBeTriedAtOnce(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := kind.make(w.member("a").Client)
		for range 100 {
			lease, err := l.TryLock(t.Context())
			require.NoError(t, err)
			released(t, lease)
		}
	})
}

// TestSecondReleaseHasNoEffect, with an ended context or none; what was done in the background once
// is not done twice.
func TestSecondReleaseHasNoEffect(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a, b := kind.make(w.member("a").Client), kind.make(w.member("b").Client)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		first := held(t, t.Context(), a)
		require.NoError(t, first.Release(ended))
		require.ErrorIs(t, first.Err(), locks.ErrReleased)
		second := held(t, t.Context(), b)
		for _, ctx := range []context.Context{ended, t.Context(), ended} {
			require.NoError(t, first.Release(ctx))
		}
		time.Sleep(timeout)
		require.NoError(t, second.Err(), "the second's node is not the first's")
		refusedSoon(t, a)
		released(t, second)
		w.nothingLeft(t)
	})
}

// TestALeaseIsReleasedByAnyGoroutine, not only by the one that asked.
func TestALeaseIsReleasedByAnyGoroutine(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := kind.make(w.member("a").Client)
		leases := make(chan *locks.Lease)
		go func() { leases <- held(t, t.Context(), l) }()
		released(t, <-leases)
		released(t, held(t, t.Context(), l))
		w.nothingLeft(t)
	})
}

// TestALeaseUsedAfterItsEnd tells why it ended, has no time left and guards nothing; what it was
// stays known.
func TestALeaseUsedAfterItsEnd(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		c := w.member("a").Client
		l := held(t, t.Context(), kind.make(c))
		node, token, session := l.Node(), l.Token(), l.Session()
		released(t, l)
		require.Zero(t, l.Remaining())
		require.Equal(t, node, l.Node())
		require.Equal(t, token, l.Token())
		require.Equal(t, session, l.Session())
		synctest.Wait()
		before := w.zk.Zxid()
		for _, guard := range append(l.Guards(), l.Guard()) {
			_, err := c.Multi(t.Context(), guard, framework.CreateOp("/late", nil, framework.Persistent))
			require.ErrorIs(t, err, locks.ErrReleased)
		}
		require.Equal(t, before, w.zk.Zxid())
		select {
		case <-l.Revoked():
			require.Fail(t, "nobody has asked")
		default:
		}
		w.nothingLeft(t)
	})
}

// TestAReleaseOnWriteReturnsBeforeTheServersAnswer, and the node goes nevertheless.
func TestAReleaseOnWriteReturnsBeforeTheServersAnswer(t *testing.T) {
	const delay = 100 * time.Millisecond
	for _, kind := range exclusives {
		t.Run(kind.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				l := held(t, t.Context(), kind.make(a.Client, locks.WithAsyncRelease()))
				strict := held(t, t.Context(), locks.NewMutex(a.Client, "/other"))
				a.Link.Delay(delay)
				defer a.Link.Delay(0)
				began := time.Now()
				released(t, l)
				switch kind.name {
				case "multi-lock": // has no such option: its release waits for all parts
				case "claim": // looks first whether the node is its own
					require.Equal(t, 2*delay, time.Since(began))
				default:
					require.Less(t, time.Since(began), delay)
				}
				began = time.Now()
				released(t, strict)
				require.GreaterOrEqual(t, time.Since(began), 2*delay, "the other mode waits for the answer")
				w.nothingLeft(t)
			})
		})
	}
}

// TestAReleaseOnWriteReturnsWhenItCannotBeWritten before the session has ended.
func TestAReleaseOnWriteReturnsWhenItCannotBeWritten(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a := w.member("a")
		l := held(t, t.Context(), kind.make(a.Client, locks.WithAsyncRelease()))
		a.Link.Cut()
		time.Sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, l.Release(t.Context()), framework.ErrUnconfirmed)
		require.Less(t, time.Since(began), 2*timeout)
		a.Link.Heal()
		released(t, held(t, t.Context(), kind.make(w.member("b").Client)))
	})
}

// TestCloseWaitsForAReleaseOnWrite to reach the servers.
func TestCloseWaitsForAReleaseOnWrite(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		l := held(t, t.Context(), locks.NewMutex(a.Client, path, locks.WithAsyncRelease()))
		deleted := false
		w.zk.Observe(func(r zktest.Request) { deleted = deleted || r.Op == zktest.OpDelete && r.Path == l.Node() })
		a.Link.Delay(100 * time.Millisecond)
		released(t, l)
		require.NoError(t, a.Close(t.Context()))
		require.True(t, deleted, "by the release, not by the session's end")
	})
}

// TestMultiReleaseContinuesAfterFailedPart: the client of the last part is cut off.
func TestMultiReleaseContinuesAfterFailedPart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		l := held(t, t.Context(), locks.NewMultiLock(locks.NewMutex(a.Client, "/m/a"),
			locks.NewMutex(b.Client, "/m/b")))
		b.Link.Cut()
		go func() { _ = l.Release(t.Context()) }()
		time.Sleep(timeout / 10)
		got, err := locks.NewMutex(c.Client, "/m/a").TryLock(t.Context())
		require.NoError(t, err)
		released(t, got)
		b.Link.Heal()
	})
}

// TestEndedContextCreatesNoNode: no node is made.
func TestEndedContextCreatesNoNode(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := kind.make(w.member("a").Client)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := w.zk.Zxid()
		for range 20 {
			_, err := l.Lock(ctx)
			require.ErrorIs(t, err, context.Canceled)
			_, err = l.TryLock(ctx)
			require.ErrorIs(t, err, context.Canceled)
		}
		synctest.Wait()
		require.Equal(t, before, w.zk.Zxid())
		w.nothingLeft(t)
	})
}
