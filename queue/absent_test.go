package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadOnlyCallsMakeNoQueue: else a name with a slip in it would be one, and the first look would settle the order.
func TestReadOnlyCallsMakeNoQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		c, err := a.Counts(t.Context())
		require.NoError(t, err)
		require.Zero(t, c)
		_, err = a.Peek(t.Context())
		require.ErrorIs(t, err, ErrEmpty)
		require.Empty(t, a.dead())
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
