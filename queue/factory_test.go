package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFactoryClosesItsQueues(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		f := NewFactory(a.client)
		one, two := Make(f, testPath, Text()), Make(f, "/queues/other", Text())
		require.NoError(t, one.Put(t.Context(), "x"))
		require.NoError(t, two.Close(t.Context()))
		require.NoError(t, f.Close(t.Context()))
		require.ErrorIs(t, one.Put(t.Context(), "y"), ErrClosed)
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}
