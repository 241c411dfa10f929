package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
)

// TestPauseHoldsPrefetchedItems: also what an acknowledgement has hoped for.
func TestPauseHoldsPrefetchedItems(t *testing.T) {
	for _, prefetch := range []int{0, 10} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			inEachOrder(t, func(t *testing.T, w *world, order Option) {
				a := w.member("a", order, WithMaxInFlight(20), WithPrefetch(prefetch), WithIdleTimeout(time.Hour))
				a.put(names(0, 5)...)
				values := a.drain(1)
				time.Sleep(time.Second)
				require.NoError(t, a.Pause(t.Context()))
				time.Sleep(time.Second)
				a.requireNone()
				got := a.takeInBackground()
				time.Sleep(time.Second)
				require.Empty(t, got)
				require.NoError(t, a.Resume(t.Context()))
				d := <-got
				a.ack(d)
				values = append(append(values, d.Value), a.drain(3)...)
				require.ElementsMatch(t, names(0, 5), values)
			})
		})
	}
}

// TestWithdrawnPutsAreFreed: while nothing can be sent, and afterwards.
func TestWithdrawnPutsAreFreed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("first")
		a.link.Cut()
		time.Sleep(time.Minute)
		for range 50 {
			err := a.Put(within(t, time.Second), strings.Repeat("x", 100_000))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, errUnknown)
		}
		a.engine.writer.mu.Lock()
		waiting, bytes := len(a.engine.writer.queue), a.engine.writer.bytes
		a.engine.writer.mu.Unlock()
		require.Zero(t, waiting)
		require.Zero(t, bytes)
		a.link.Heal()
		a.put("last")
		require.Equal(t, []string{"first", "last"}, a.drain(2))
	})
}

// TestBacklogIsBounded: and has room again when what waited was sent.
func TestBacklogIsBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithBacklog(500_000))
		a.put("first")
		a.link.Cut()
		time.Sleep(time.Minute)
		var pending []*Pending
		for range 4 {
			pending = append(pending, a.PutAsync(t.Context(), strings.Repeat("x", 100_000)))
		}
		require.ErrorIs(t, a.PutAsync(t.Context(), strings.Repeat("y", 100_000)).Wait(t.Context()), ErrBacklog)
		a.link.Heal()
		for _, p := range pending {
			require.NoError(t, p.Wait(within(t, time.Minute)))
		}
		require.NoError(t, a.PutAsync(t.Context(), strings.Repeat("z", 400_000)).Wait(t.Context()))
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 6, n)
		require.ErrorIs(t, New(a.client, testPath, codec.Text(), WithBacklog(0)).Put(t.Context(), "x"), errOption)
	})
}

// TestLostDeliveryMakesRoom: its handler returns with the context and does not settle it.
func TestLostDeliveryMakesRoom(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxInFlight(1)), w.member("p")
		p.put("x")
		d := a.take()
		_, err := p.Purge(t.Context())
		require.NoError(t, err)
		require.NoError(t, p.client.Delete(t.Context(), d.item.ticket, -1)) // its ticket
		<-d.Context().Done()
		p.put("next")
		next := a.take()
		require.Equal(t, "next", next.Value)
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		a.ack(next)
	})
}

// slowCodec takes its time to decode.
type slowCodec struct{ codec.Codec[string] }

func (s slowCodec) Decode(data []byte) (string, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Codec.Decode(data)
}

// TestSlowCodecDoesNotBlockOthers: neither acknowledgements nor puts wait for the items that were
// claimed ahead.
func TestSlowCodecDoesNotBlockOthers(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		w.member("p", order).put(names(0, 60)...)
		m := w.Member(t, "c", config)
		q := New[string](m.Client, testPath, slowCodec{codec.Text()}, order, WithMaxInFlight(30), WithPrefetch(29))
		defer q.Close(context.Background())
		d, err := q.Take(within(t, time.Minute))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, d.Ack(within(t, time.Minute)))
		require.NoError(t, q.Put(within(t, time.Minute), "x"))
		require.Zero(t, time.Since(began)) // virtual: nobody has decoded meanwhile
	})
}

// TestPrefetchIsBoundedInBytes: of large items fewer are claimed, and read, ahead.
func TestPrefetchIsBoundedInBytes(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		const size, items, most = 100_000, 60, 1_000_000
		p := w.member("p", order)
		for i := range items {
			p.put(fmt.Sprintf("%02d", i) + strings.Repeat("x", size))
		}
		a := w.member("a", order, WithMaxInFlight(50), WithPrefetch(49), WithPrefetchBytes(most),
			WithIdleTimeout(time.Hour))
		a.ack(a.take())
		time.Sleep(time.Second)
		kept := func() (bytes int) {
			for _, d := range a.engine.consumer.session.Load().claims.readyItems() {
				bytes += len(d.env.Payload)
			}
			return bytes
		}
		require.NotZero(t, kept())
		require.LessOrEqual(t, kept(), most+8*size) // what one answer brings
		if strings.HasSuffix(t.Name(), "strict") {
			for _, r := range a.engine.consumer.session.Load().order.(*strictOrder).holder.Load().readers {
				require.LessOrEqual(t, r.bytes.Load(), int64(most+8*size))
			}
		}
		a.drain(items - 1)
	})
}
