package locks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// lagging makes a member's server show nothing that is written from now on, until the member syncs
// or writes.
func (w *world) lagging(m *zktest.Member) {
	s, err := m.Session(w.t.Context())
	require.NoError(w.t, err)
	catchUp, err := w.zk.Lag(s.ID())
	require.NoError(w.t, err)
	w.t.Cleanup(catchUp)
}

// TestTryLockAfterAReleaseBehindALaggingServer: nobody holds the lock or waits for it, but the
// server of the member that tries does not show that yet.
func TestTryLockAfterAReleaseBehindALaggingServer(t *testing.T) {
	for name, kind := range map[string]func(c *framework.Client) locks.Locker{
		"mutex": func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
		"read":  func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path).RLocker() },
		"write": func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path) },
		"turn": func(c *framework.Client) locks.Locker {
			return locks.NewMutex(c, path, locks.WithLocalHandoff(timeout))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				l := held(t, t.Context(), kind(a.Client))
				w.lagging(b)
				released(t, l)
				l, err := kind(b.Client).TryLock(t.Context())
				require.NoError(t, err)
				released(t, l)
			})
		})
	}
}

// TestANewNumberOfPermitsBehindALaggingServer: another member has changed the number. This one was
// made with the new number, or asks for more than there were, and its server does not show the
// change yet.
func TestANewNumberOfPermitsBehindALaggingServer(t *testing.T) {
	for name, test := range map[string]struct {
		made int
		call func(ctx context.Context, s *locks.Semaphore) error
	}{
		"TryAcquire": {2, func(ctx context.Context, s *locks.Semaphore) error {
			l, err := s.TryAcquire(ctx, 3)
			if err == nil {
				err = l.Release(ctx)
			}
			return err
		}},
		"Acquire": {3, func(ctx context.Context, s *locks.Semaphore) error {
			l, err := s.Acquire(ctx, 1)
			if err == nil {
				err = l.Release(ctx)
			}
			return err
		}},
		"Limit": {3, func(ctx context.Context, s *locks.Semaphore) error {
			n, err := s.Limit(ctx)
			if err == nil && n != 3 {
				err = fmt.Errorf("%d permits", n)
			}
			return err
		}},
		"SetLimit": {3, func(ctx context.Context, s *locks.Semaphore) error { return s.SetLimit(ctx, 4) }},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				first := locks.NewSemaphore(a.Client, path, 2)
				released(t, held(t, t.Context(), first))
				w.lagging(b)
				require.NoError(t, first.SetLimit(t.Context(), 3))
				require.NoError(t, test.call(t.Context(), locks.NewSemaphore(b.Client, path, test.made)))
				wrong := locks.NewSemaphore(b.Client, path, 7)
				require.ErrorIs(t, test.call(t.Context(), wrong), framework.ErrMismatch)
			})
		})
	}
}

// TestAFailedTryWritesNothing: many clients may try again and again.
func TestAFailedTryWritesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		l, b := lock(t, w.member("a").Client), w.member("b")
		_, err := b.Session(t.Context())
		require.NoError(t, err)
		before := w.zk.Zxid()
		_, err = locks.NewMutex(b.Client, path).TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.Equal(t, before, w.zk.Zxid())
		released(t, l)
	})
}

// TestRevokeAndEvictBehindALaggingServer: the holder's node is there, but the operator's server
// does not show it yet.
func TestRevokeAndEvictBehindALaggingServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, operator := w.member("a"), w.member("operator")
		w.lagging(operator)
		l := lock(t, a.Client)
		require.NoError(t, locks.Revoke(t.Context(), operator.Client, l.Node()))
		<-l.Revoked()
		released(t, l)
		w.lagging(operator)
		l = lock(t, a.Client)
		require.NoError(t, locks.Evict(t.Context(), operator.Client, l.Node(), l.Token()))
		<-l.Context().Done()
		require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
	})
}
