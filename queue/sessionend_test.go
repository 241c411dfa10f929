package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestItemOfSlowlyClosingClientComesBack: the consumer's place in line must not leave before its
// tickets. The recoverer sweeps when a place has gone, and would find the tickets that go with the
// session a moment later still there.
func TestItemOfSlowlyClosingClientComesBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, closing := w.member("recoverer", WithOrder(Parallel)), w.member("closing", WithOrder(Parallel))
		recoverer.put("first", "second")
		require.Equal(t, "first", recoverer.take().Value)
		require.Equal(t, "second", closing.take().Value)
		synctest.Wait()
		closing.link.Delay(100 * time.Millisecond)
		require.NoError(t, closing.client.Close(within(t, time.Minute)))
		require.Equal(t, "second", recoverer.take().Value)
	})
}
