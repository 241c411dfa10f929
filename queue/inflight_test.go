package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInFlightListsWhatConsumersHave(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		claims, err := a.InFlight(t.Context())
		require.NoError(t, err)
		require.Empty(t, claims, "there is no queue yet")
		a.put(names(0, 3)...)
		claims, err = a.InFlight(t.Context())
		require.NoError(t, err)
		require.Empty(t, claims)
		d := a.take()
		b := w.member("look", order)
		claims, err = b.InFlight(t.Context())
		require.NoError(t, err)
		require.Len(t, claims, 1)
		require.Equal(t, "item 0", string(claims[0].Data))
		require.NotZero(t, claims[0].Session)
		require.Equal(t, "a", claims[0].Owner)
		require.False(t, claims[0].Since.IsZero())
		require.False(t, claims[0].Put.IsZero())
		a.ack(d)
		claims, err = b.InFlight(t.Context())
		require.NoError(t, err)
		for _, c := range claims {
			require.NotEqual(t, "item 0", string(c.Data), "the next ones may be claimed ahead")
		}
	})
}
