package locks_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

var errFoo = errors.New("foo")

func TestDoHoldsMeanwhile(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		type key struct{}
		l, other := kind.make(w.member("a").Client), kind.make(w.member("b").Client)
		node := ""
		err := locks.Do(context.WithValue(t.Context(), key{}, 1), l,
			func(ctx context.Context, lease *locks.Lease) error {
				node = lease.Node()
				require.NoError(t, ctx.Err())
				require.NoError(t, lease.Err())
				require.Equal(t, 1, ctx.Value(key{}))
				_, err := other.TryLock(t.Context())
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				return nil
			})
		require.NoError(t, err)
		require.NotEmpty(t, node)
		_, there := w.zk.Node(node)
		require.False(t, there, "it is released when Do returns")
		w.nothingLeft(t)
	})
}

func TestDoReturnsTheError(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		err := locks.Do(t.Context(), kind.make(w.member("a").Client),
			func(context.Context, *locks.Lease) error { return errFoo })
		require.Equal(t, errFoo, err)
		require.Empty(t, w.ephemerals())
	})
}

func TestDoReleasesAfterAPanic(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := kind.make(w.member("a").Client)
		var lease *locks.Lease
		require.PanicsWithValue(t, "boom", func() {
			_ = locks.Do(t.Context(), l, func(_ context.Context, l *locks.Lease) error { lease = l; panic("boom") })
		})
		require.ErrorIs(t, lease.Err(), locks.ErrReleased)
		require.Empty(t, w.ephemerals())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = locks.Do(t.Context(), l, func(context.Context, *locks.Lease) error { runtime.Goexit(); return nil })
		}()
		<-ended
		w.nothingLeft(t)
	})
}

func TestDoIsNotRunWithoutTheLock(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := held(t, t.Context(), kind.make(w.member("a").Client))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := locks.Do(ctx, kind.make(w.member("b").Client), func(context.Context, *locks.Lease) error {
			t.Error("it runs")
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		released(t, l)
		w.nothingLeft(t)
	})
}

// TestDoTellsOfALossInside, whatever the function returns.
func TestDoTellsOfALossInside(t *testing.T) {
	for _, returned := range []error{nil, errFoo, context.Canceled} {
		eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
			err := locks.Do(t.Context(), kind.make(w.member("a").Client),
				func(ctx context.Context, lease *locks.Lease) error {
					require.NoError(t, w.zk.Expire(lease.Session()))
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), framework.ErrSessionLost)
					return returned
				})
			require.ErrorIs(t, err, framework.ErrSessionLost)
			if returned != nil {
				require.ErrorIs(t, err, returned)
			}
			w.nothingLeft(t)
		})
	}
}

func TestDoReportsLossOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		err := locks.Do(t.Context(), locks.NewMutex(w.member("a").Client, path),
			func(ctx context.Context, lease *locks.Lease) error {
				require.NoError(t, w.zk.Expire(lease.Session()))
				<-ctx.Done()
				return lease.Err()
			})
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.NotContains(t, err.Error(), "\n", "once is enough")
	})
}

func TestDoEndsInTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		began := time.Now()
		err := locks.Do(t.Context(), locks.NewMutex(w.member("a").Client, path, locks.WithMaxHold(time.Minute)),
			func(ctx context.Context, _ *locks.Lease) error { <-ctx.Done(); return nil })
		require.ErrorIs(t, err, locks.ErrMaxHold)
		require.Equal(t, time.Minute, time.Since(began).Round(time.Second))
	})
}

// TestTheFunctionsContextEndsWithTheCallers, and the lock is held until the function has returned.
func TestTheFunctionsContextEndsWithTheCallers(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := locks.Do(ctx, kind.make(w.member("a").Client), func(ctx context.Context, lease *locks.Lease) error {
			cancel(errFoo)
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
			require.Equal(t, errFoo, context.Cause(ctx))
			require.NoError(t, lease.Err(), "the lease stands")
			time.Sleep(time.Minute)
			require.NotEmpty(t, w.ephemerals())
			return context.Cause(ctx)
		})
		require.Equal(t, errFoo, err)
		w.nothingLeft(t) // released in the background
	})
}

// TestDoReturnsWhileCutOff: the release is finished in the background at the latest when the
// session has ended.
func TestDoReturnsWhileCutOff(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a := w.member("a")
		began := time.Now()
		err := locks.Do(t.Context(), kind.make(a.Client), func(context.Context, *locks.Lease) error {
			a.Link.Cut()
			return nil
		})
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), timeout)
		a.Link.Heal()
		time.Sleep(2 * timeout)
		w.nothingLeft(t)
	})
}

// TestDoEndsItsReleaseWhileCutOff: a release that cannot reach the servers holds nobody up for
// longer than a cleanup may last.
func TestDoEndsItsReleaseWhileCutOff(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a := w.member("a")
		ctx, cancel := context.WithCancel(t.Context())
		ended := time.Now()
		err := locks.Do(ctx, kind.make(a.Client), func(ctx context.Context, _ *locks.Lease) error {
			a.Link.BlackHole(true, true)
			cancel()
			<-ctx.Done()
			ended = time.Now()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, timeout/3, time.Since(ended))
		a.Link.Heal()
		time.Sleep(2 * timeout)
		w.nothingLeft(t)
	})
}
