package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestTakeContinuesAfterListedSegmentsAreRemoved: between the list and the look the last segment
// was filled, closed, worked off and removed. This was once told as a path that is no queue.
func TestTakeContinuesAfterListedSegmentsAreRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a", segmentSize(2)), w.member("b", segmentSize(2)), w.member("c", segmentSize(2))
		a.put("x")
		first := c.take() // it is the recoverer, so that the other one lists for itself alone
		s, err := b.client.Session(t.Context())
		require.NoError(t, err)
		listed := make(chan struct{}, 100)
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Path == testPath+"/items" && r.Op == zktest.OpGetChildren2 {
				listed <- struct{}{}
			}
		})
		defer stop()
		b.link.Delay(300 * time.Millisecond)
		got := make(chan error, 1)
		go func() {
			d, err := b.Take(within(t, time.Hour))
			if err == nil && d.Value != "z" {
				t.Errorf("got %s", d.Value)
			}
			got <- err
		}()
		select {
		case <-listed:
		case <-time.After(time.Minute):
			require.Fail(t, "no list")
		}
		c.ack(first)
		a.put("y")
		c.drain(1)
		require.NoError(t, c.Close(t.Context()))
		time.Sleep(time.Minute)
		a.put("z")
		require.NoError(t, <-got)
	})
}
