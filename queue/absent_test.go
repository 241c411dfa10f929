package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestReadOnlyCallsMakeNoQueue: else a name with a slip in it would be one, and the first look
// would settle the order.
func TestReadOnlyCallsMakeNoQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		c, err := a.Counts(t.Context())
		require.NoError(t, err)
		require.Zero(t, c)
		_, err = a.Peek(t.Context())
		require.ErrorIs(t, err, ErrEmpty)
		require.Empty(t, a.dead())
		paused, err := a.Paused(t.Context())
		require.NoError(t, err)
		require.False(t, paused)
		for _, remove := range []func() (int, error){
			func() (int, error) { return a.Purge(t.Context()) },
			func() (int, error) { return a.PurgeDead(t.Context()) },
			func() (int, error) { return a.Requeue(t.Context()) },
		} {
			n, err := remove()
			require.NoError(t, err)
			require.Zero(t, n)
		}
		_, there := w.Node(testPath)
		require.False(t, there)
		b := w.member("b", WithOrder(Strict))
		b.put("x")
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// TestPausedDoesNotFinishDrop: it would remove what another client may still look at.
func TestPausedDoesNotFinishDrop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p")
		p.put("x")
		require.NoError(t, p.Pause(t.Context()))
		_, err := p.client.Set(t.Context(), testPath,
			[]byte(`{"v":2,"recipe":"queue","order":"parallel","dropped":true}`), framework.AnyVersion)
		require.NoError(t, err)
		paused, err := w.member("a").Paused(t.Context())
		require.NoError(t, err)
		require.False(t, paused)
		require.Equal(t, 1, len(w.Children(testPath+"/items/0000000000")))
	})
}

// TestReadOnlyCallsAfterDropByOther: they find no queue, as in a Queue that has never known it.
// When it was made anew, they find that one.
func TestReadOnlyCallsAfterDropByOther(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, WithDedup(time.Hour)), w.member("b")
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
		require.NoError(t, b.Drop(t.Context()))
		for range 2 {
			c, err := a.Counts(t.Context())
			require.NoError(t, err)
			require.Zero(t, c)
			_, err = a.Peek(t.Context())
			require.ErrorIs(t, err, ErrEmpty)
			oldest, err := a.Oldest(t.Context())
			require.NoError(t, err)
			require.Zero(t, oldest)
			claims, err := a.InFlight(t.Context())
			require.NoError(t, err)
			require.Empty(t, claims)
			n, err := a.Purge(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
			require.ErrorIs(t, a.Cancel(t.Context(), "1"), errUnknownID)
		}
		_, there := w.Node(testPath)
		require.False(t, there)
		c := w.member("c", order, WithDedup(time.Hour))
		require.NoError(t, c.Put(t.Context(), "y", WithID("2")))
		require.Equal(t, 1, a.length())
		require.NoError(t, a.Cancel(t.Context(), "2"))
	})
}
