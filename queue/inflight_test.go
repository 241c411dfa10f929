package queue

import (
	"strings"
	"testing"
	"time"

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
		require.Equal(t, 1, claims[0].Attempt)
		require.False(t, claims[0].Since.IsZero())
		require.False(t, claims[0].Enqueued.IsZero())
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		d = a.take()
		claims, err = b.InFlight(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, claims[0].Attempt)
		a.ack(d)
		claims, err = b.InFlight(t.Context())
		require.NoError(t, err)
		for _, c := range claims {
			require.NotEqual(t, "item 0", string(c.Data), "the next ones may be claimed ahead")
		}
	})
}

// TestInFlightReadsLargeItemsInParts: together they are larger than an answer of the server may be.
// That costs no connection.
func TestInFlightReadsLargeItemsInParts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 32 + 8
		a, look := w.member("a", WithMaxInFlight(n)), w.member("look")
		large := strings.Repeat("x", 490_000)
		for range n {
			a.put(large)
			a.take()
		}
		claims, err := look.InFlight(within(t, time.Hour))
		require.NoError(t, err)
		require.Len(t, claims, n)
		require.NoError(t, look.client.Status().Cause, "a connection was lost")
	})
}
