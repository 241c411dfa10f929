package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
)

func TestFactoryClosesItsQueues(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		f := NewFactory(a.client)
		one, two := Make(f, testPath, codec.Text()), Make(f, "/queues/other", codec.Text())
		require.NoError(t, one.Put(t.Context(), "x"))
		require.NoError(t, two.Close(t.Context()))
		require.NoError(t, f.Close(t.Context()))
		require.ErrorIs(t, one.Put(t.Context(), "y"), errClosed)
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}
