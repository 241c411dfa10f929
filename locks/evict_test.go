package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

func TestANodeIsEvictedAsItWasSeen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewMutex(a.Client, "/l"))
		r, err := locks.Inspect(t.Context(), b.Client, "/l")
		require.NoError(t, err)
		seen := r.Holders[0]
		require.ErrorIs(t, locks.Evict(t.Context(), b.Client, seen.Node, seen.Token+1), framework.ErrNotFound,
			"another one of that name")
		require.NoError(t, l.Err())
		require.NoError(t, locks.Evict(t.Context(), b.Client, seen.Node, seen.Token))
		require.ErrorIs(t, locks.Evict(t.Context(), b.Client, seen.Node, seen.Token), framework.ErrNotFound)
		next := held(t, t.Context(), locks.NewMutex(b.Client, "/l"))
		require.Greater(t, next.Token(), seen.Token)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, l.Err(), framework.ErrNodeGone, "the owner notices")
		require.ErrorContains(t, locks.Evict(t.Context(), nil, "/x", 1), "nil")
	})
}
