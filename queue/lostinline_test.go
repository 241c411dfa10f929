package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestATakeOutlastsTheSessionThatStoodInLine: the wait in line ends with its session's context, which was once told to
// whoever called Take.
func TestATakeOutlastsTheSessionThatStoodInLine(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		first := a.take()
		_, err := b.Len(within(t, time.Minute)) // connected
		require.NoError(t, err)
		b.link.Delay(3 * time.Second)
		got := make(chan *Delivery[string], 1)
		go func() {
			d, err := b.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- d
		}()
		time.Sleep(4 * time.Second) // on its way into the line
		b.link.Cut()
		time.Sleep(time.Minute)
		b.link.Delay(0)
		b.link.Heal()
		time.Sleep(time.Minute)
		a.ack(first)
		a.put("y")
		require.NoError(t, a.Close(t.Context()))
		d := <-got
		require.NotNil(t, d)
		require.Equal(t, "y", d.Value)
		b.ack(d)
	})
}
