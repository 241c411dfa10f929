package queue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

// What docs/curator.md tells of queues, where no other test shows it.

// TestRepeatedNackDoesNotGrowItem: neither its name nor its data.
func TestRepeatedNackDoesNotGrowItem(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("x")
		var names, sizes []int
		for range 8 {
			d := a.take()
			n, _ := w.Node(d.Node())
			names, sizes = append(names, len(n.Path)), append(sizes, len(n.Data))
			require.NoError(t, d.Nack(t.Context(), 0, errors.New("why")))
		}
		for i := 2; i < 8; i++ { // it has moved once
			require.Equal(t, names[1], names[i])
			require.Equal(t, sizes[1], sizes[i])
		}
	})
}

// TestCloseFinishesPutsInProgress: all that was put without waiting is there when Close returns.
func TestCloseFinishesPutsInProgress(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.link.Delay(slow)
		var puts []*Pending
		for _, v := range names(0, 50) {
			puts = append(puts, a.PutAsync(t.Context(), v))
		}
		a.closeSlowly()
		for _, p := range puts {
			require.NoError(t, p.Wait(within(t, time.Millisecond)))
		}
		require.Equal(t, names(0, 50), b.drain(50))
	})
}

// TestSoonerDelayedItemComesFirst: it is put after that, while a consumer waits.
func TestSoonerDelayedItemComesFirst(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		require.NoError(t, p.Put(t.Context(), "in years", WithDelay(queuelayout.MaxDelay)))
		got := a.takeInBackground()
		time.Sleep(10 * time.Second)
		began := time.Now()
		require.NoError(t, p.Put(t.Context(), "soon", WithDelay(5*time.Second)))
		d := <-got
		require.Equal(t, "soon", d.Value)
		require.Less(t, time.Since(began), 10*time.Second)
		a.ack(d)
	})
}

// TestConsumerContinuesAfterLongPartition: it waits through hours of it, and goes on with the next
// session.
func TestConsumerContinuesAfterLongPartition(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		got := make(chan string, 1)
		go func() {
			d, err := a.Take(within(t, 24*time.Hour))
			if err == nil {
				err = d.Ack(t.Context())
			}
			if err != nil {
				t.Error(err)
				got <- ""
				return
			}
			got <- d.Value
		}()
		time.Sleep(time.Minute)
		a.link.BlackHole(true, true)
		time.Sleep(3 * time.Hour)
		b.put("x")
		b.drain(1)
		require.NoError(t, b.Close(t.Context()))
		a.link.Heal()
		time.Sleep(time.Minute)
		p := w.member("p", order)
		p.put("y")
		require.Equal(t, "y", <-got)
	})
}

// TestCostDoesNotDependOnQueueLength: a put and a take make as many requests at a depth of
// thousands, and nobody lists more than a segment.
func TestCostDoesNotDependOnQueueLength(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, segmentSize(1000)), w.member("b", order)
		cost := func() (requests int) {
			synctest.Wait()
			stop := w.Observe(func(r zktest.Request) {
				if r.Path != "/" && r.Op != zktest.OpPing {
					requests++
				}
			})
			defer stop()
			for range 50 {
				a.put("x")
				b.ack(b.take())
			}
			synctest.Wait()
			return requests
		}
		b.ack(func() *Delivery[string] { a.put("first"); return b.take() }())
		shallow := cost()
		for range 20 {
			require.NoError(t, a.PutBatch(t.Context(), names(0, 250)))
		}
		require.LessOrEqual(t, cost(), shallow+shallow/4)
		for _, seg := range w.Children(testPath + "/items") {
			require.LessOrEqual(t, len(w.Children(testPath+"/items/"+seg)), 1250)
		}
	})
}
