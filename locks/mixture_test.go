package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// TestKindsOfOnePathRefuseEachOther holds each kind at one path and asks for the others. A mutex
// and a semaphore were both granted once.
func TestKindsOfOnePathRefuseEachOther(t *testing.T) {
	kinds := map[string]func(*framework.Client) locks.Locker{
		"mutex":     func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
		"writer":    func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path) },
		"reader":    func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path).RLocker() },
		"semaphore": func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, path, 3) },
	}
	family := func(kind string) string {
		if kind == "reader" {
			return "writer"
		}
		return kind
	}
	for holder, hold := range kinds {
		for asker, ask := range kinds {
			if family(holder) == family(asker) {
				continue
			}
			t.Run(asker+" beside "+holder, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					l, err := hold(w.member("a").Client).Lock(t.Context())
					require.NoError(t, err)
					b := w.member("b").Client
					_, err = ask(b).TryLock(t.Context())
					require.ErrorIs(t, err, framework.ErrForeign)
					_, err = ask(b).Lock(t.Context())
					require.ErrorIs(t, err, framework.ErrForeign)
					require.ErrorContains(t, err, path)
					require.NoError(t, l.Err())
				})
			})
		}
	}
}

func TestKazoosOwnNamesAreRefused(t *testing.T) {
	for _, name := range []string{"__lock__", "__rlock__"} {
		in(t, func(t *testing.T, w *world) {
			c := w.member("a").Client
			require.NoError(t, c.MakeDirs(t.Context(), path))
			require.NoError(t, c.Create(t.Context(), path+"/5f2b"+name+"0000000004", []byte("host"),
				framework.Ephemeral))
			_, err := locks.NewMutex(c, path).Lock(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign)
			require.ErrorContains(t, err, "5f2b"+name+"0000000004")
		})
	}
}

func TestALockMayHaveOneNeighbourNamedAsASemaphoresPart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		_, err := locks.NewMutex(c, path+"/leases").Lock(t.Context())
		require.NoError(t, err)
		lock(t, c)
	})
}

func TestOnWaitIsCalledForFirstInSemaphoreLine(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		held, err := locks.NewSemaphore(w.member("a").Client, pool, 1).Lock(t.Context())
		require.NoError(t, err)
		var ahead []int
		s := locks.NewSemaphore(w.member("b").Client, pool, 1,
			locks.WithOnWait(func(n int) { ahead = append(ahead, n) }))
		time.AfterFunc(time.Second, func() { _ = held.Release(t.Context()) })
		_, err = s.Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{0}, ahead)
		synctest.Wait()
	})
}

// TestKazoosOwnNamesTakePart waits for those that stand before, and is waited for by nobody else's
// doing.
func TestKazoosOwnNamesTakePart(t *testing.T) {
	for name, ask := range map[string]func(*framework.Client) locks.Locker{
		"mutex":  func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path, locks.WithKazoo()) },
		"writer": func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path, locks.WithKazoo()) },
		"reader": func(c *framework.Client) locks.Locker {
			return locks.NewRWLock(c, path,
				locks.WithKazoo()).RLocker()
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				c, ctx := w.member("a").Client, t.Context()
				require.NoError(t, c.MakeDirs(ctx, path))
				lock := create(t, c, "5f2b__lock__0000000000")
				read := create(t, c, "77aa__rlock__0000000000")
				for range 2 { // the server's next number comes behind both
					create(t, c, "x")()
				}
				_, err := ask(c).TryLock(ctx)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				granted := make(chan *locks.Lease, 1)
				go func() {
					l, err := ask(c).Lock(ctx)
					require.NoError(t, err)
					granted <- l
				}()
				synctest.Wait()
				require.Empty(t, granted, "__lock__ stands before")
				lock()
				synctest.Wait()
				if name != "reader" {
					require.Empty(t, granted, "__rlock__ stands before")
				}
				read()
				require.NoError(t, (<-granted).Release(ctx))
			})
		})
	}
}

// create creates a child of the lock's path, and returns what deletes it.
func create(t *testing.T, c *framework.Client, name string) (remove func()) {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), znode.Join(path, name), nil, framework.Ephemeral))
	return func() { require.NoError(t, c.Delete(t.Context(), znode.Join(path, name), framework.AnyVersion)) }
}
