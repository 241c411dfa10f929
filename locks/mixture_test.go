package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// TestKindsOfOnePathRefuseEachOther holds each kind at one path and asks for the others. A mutex and a
// semaphore were both granted once.
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
					require.ErrorIs(t, err, locks.ErrKindMixed)
					_, err = ask(b).Lock(t.Context())
					require.ErrorIs(t, err, locks.ErrKindMixed)
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
			require.NoError(t, c.Create(t.Context(), path+"/5f2b"+name+"0000000004", []byte("host"), framework.Ephemeral))
			_, err := locks.NewMutex(c, path).Lock(t.Context())
			require.ErrorIs(t, err, locks.ErrKindMixed)
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

func TestTheFirstInLineOfASemaphoreIsToldThatItWaits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		held, err := locks.NewSemaphore(w.member("a").Client, pool, 1).Lock(t.Context())
		require.NoError(t, err)
		var ahead []int
		s := locks.NewSemaphore(w.member("b").Client, pool, 1, locks.WithQueued(func(n int) { ahead = append(ahead, n) }))
		time.AfterFunc(time.Second, func() { _ = held.Release(t.Context()) })
		_, err = s.Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{0}, ahead)
		synctest.Wait()
	})
}
