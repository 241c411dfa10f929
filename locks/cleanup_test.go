package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestReleaseIsACleanup(t *testing.T) {
	for name, lockerOf := range map[string]func(*framework.Client) locks.Locker{
		"mutex": func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
		"handoff": func(c *framework.Client) locks.Locker {
			return locks.NewMutex(c, path, locks.WithLocalHandoff(1))
		},
		"reader":    func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path).RLocker() },
		"semaphore": func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, path, 3).Permits(2) },
		"claim":     func(c *framework.Client) locks.Locker { return locks.NewClaim(c, pathMutex) },
		"multi-lock": func(c *framework.Client) locks.Locker {
			return locks.NewMultiLock(locks.NewMutex(c, "/m/a"), locks.NewMutex(c, "/m/b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
				return held(t, t.Context(), lockerOf(m.Client)).Release
			}}.Check(t)
		})
	}
}

// TestReleaseTellsARefusal of the servers apart: they let this client delete nothing in the lock's
// directory.
func TestReleaseTellsARefusal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		withoutDelete := config
		const perms = framework.PermAll &^ framework.PermDelete
		withoutDelete.ParentACL = []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
		l := lock(t, w.zk.Member(t, "a", withoutDelete).Client)
		err := l.Release(t.Context())
		require.ErrorIs(t, err, framework.ErrUnconfirmed)
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestARefusedReleaseLeavesAWholeClaim: the servers refuse to delete the claim's node. Then the
// node that its guard checks stays, too, until they permit it.
func TestARefusedReleaseLeavesAWholeClaim(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		withoutDelete := config
		const perms = framework.PermAll &^ framework.PermDelete
		withoutDelete.ParentACL = []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
		a, b := w.zk.Member(t, "a", withoutDelete).Client, w.zk.Member(t, "b", config).Client
		lease := held(t, t.Context(), locks.NewClaim(a, "/claims/one"))
		require.ErrorIs(t, lease.Release(t.Context()), framework.ErrNoAuth)
		require.Len(t, w.zk.Children("/claims"), 2)
		_, err := locks.NewClaim(b, "/claims/one").TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, b.SetACL(t.Context(), "/claims", framework.OpenACL()))
		time.Sleep(time.Minute)
		require.Empty(t, w.zk.Children("/claims"))
	})
}

// TestAMultiLockFailsThoughAPartStays: the servers refuse to delete the node of the first part.
func TestAMultiLockFailsThoughAPartStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		withoutDelete := config
		const perms = framework.PermAll &^ framework.PermDelete
		withoutDelete.ParentACL = []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
		a, b := w.zk.Member(t, "a", withoutDelete).Client, w.zk.Member(t, "b", config).Client
		_, err := locks.NewMutex(b, "/two/2").Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = locks.NewMultiLock(locks.NewMutex(a, "/one/1"), locks.NewMutex(a, "/two/2")).TryLock(ctx)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, ctx.Err())
	})
}

// TestDoReleasesAfterTheEndOfItsContext, and waits for the servers.
func TestDoReleasesAfterTheEndOfItsContext(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		within, end := context.WithCancel(t.Context())
		began, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- locks.Do(within, locks.NewMutex(m.Client, path), func(ctx context.Context, _ *locks.Lease) error {
				close(began)
				<-ctx.Done()
				return nil
			})
		}()
		<-began
		return func(context.Context) error {
			end()
			return <-done
		}
	}}.CheckConfirmed(t)
}
