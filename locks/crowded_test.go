package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// foreigners makes n children in the lock's directory that no lock counts.
func foreigners(t *testing.T, c *framework.Client, n int) {
	const atOnce = 5000
	require.NoError(t, c.MakeDirs(t.Context(), path))
	for i := 0; i < n; i += atOnce {
		ops := make([]framework.Op, 0, atOnce)
		for k := i; k < min(n, i+atOnce); k++ {
			ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/%07d", path, k), nil, framework.Persistent))
		}
		_, err := c.Multi(t.Context(), ops...)
		require.NoError(t, err)
	}
}

// TestVeryManyForeignChildren make every look at the line long, and nothing else. So it counts the
// looks: one for each contender that is not proven alone and not behind another of its session. A
// million children pass too, and take too long with the race detector.
func TestVeryManyForeignChildren(t *testing.T) {
	const children = 300_000
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		foreigners(t, a.Client, children)
		lists := func() int64 { return w.zk.Requests()[zktest.OpGetChildren2] }
		before := lists()
		first := held(t, t.Context(), locks.NewMutex(a.Client, path))
		waiters := newAsker(t)
		waiters.ask("a", locks.NewMutex(a.Client, path).Lock)
		waiters.ask("b", locks.NewMutex(b.Client, path).Lock)
		require.Empty(t, waiters.now())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := locks.NewMutex(b.Client, path).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		released(t, first)
		require.Equal(t, []string{"a"}, waiters.now())
		waiters.release("a")
		require.Equal(t, []string{"b"}, waiters.now())
		waiters.release("b")
		synctest.Wait()
		require.LessOrEqual(t, lists()-before, int64(4), "looks at so many names")
		_, err = locks.Inspect(t.Context(), a.Client, path)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.ErrorContains(t, err, "300000 children")
		require.Empty(t, w.ephemerals())
	})
}
