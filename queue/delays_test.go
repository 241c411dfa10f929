package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestDelayIsKeptAfterALateReply: it does not set the estimate of the ensemble's clock back.
func TestDelayIsKeptAfterALateReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b, p := w.member("b"), w.member("p")
		p.put("x")
		b.drain(1)
		s, err := p.client.Session(t.Context())
		require.NoError(t, err)
		late := w.DelayReplies(3*time.Second,
			zktest.Match{Op: zktest.OpMulti, Session: s.ID(), Func: zktest.Request.Writes})
		p.put("y")
		late.Cancel()
		b.drain(1)
		time.Sleep(5 * time.Second)
		began := time.Now()
		require.NoError(t, p.Put(t.Context(), "late", WithDelay(2*time.Second)))
		d := b.take()
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
		b.ack(d)
	})
}

// TestDelayIsKeptOnASlowLink: the estimate of the ensemble's clock is behind it by the time that an
// answer took. The item would be due a second sooner.
func TestDelayIsKeptOnASlowLink(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b, p := w.member("b"), w.member("p")
		p.link.Delay(30 * time.Millisecond) // one way
		p.put("x")
		b.drain(1)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 20*time.Millisecond)))
		began := time.Now()
		require.NoError(t, p.Put(t.Context(), "late", WithDelay(2*time.Second)))
		d := b.take()
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
		b.ack(d)
	})
}

// TestDelayedPutOnSlowLink: the second that it is due at is made before the transaction, and must
// be the same then.
func TestDelayedPutOnSlowLink(t *testing.T) {
	for _, delay := range []time.Duration{100, 200, 300, 600} {
		t.Run(fmt.Sprint(2*delay*time.Millisecond), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := w.member("p")
				p.put("x")
				p.link.Delay(delay * time.Millisecond) // one way
				go func() { _ = p.Put(within(t, 3*time.Minute), "late", WithDelay(time.Minute)) }()
				time.Sleep(5 * time.Second)
				require.NoError(t, p.Put(within(t, 2*time.Minute), "now"))
			})
		})
	}
}

// TestPutsWithIDsFitIntoATransaction: their paths weigh more than they do.
func TestPutsWithIDsFitIntoATransaction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		path := "/production/eu-west-1/payments/settlement/queues/incoming-orders-of-merchants/v2/events"
		m := w.Member(t, "a", config)
		q := New(m.Client, path, codec.Text(), WithDedup(time.Second))
		defer q.Close(context.Background())
		require.NoError(t, q.Put(t.Context(), "x", WithID("0")))
		time.Sleep(2 * time.Second)
		require.NoError(t, q.Put(t.Context(), "x", WithID("00"))) // another bucket
		defer w.DelayReplies(100*time.Millisecond,
			zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes}).Cancel()
		var all []*Pending
		first := q.PutAsync(t.Context(), "x", WithID("1st")) // what follows waits for its answer
		time.Sleep(10 * time.Millisecond)
		for i := range 1000 {
			all = append(all, q.PutAsync(t.Context(), strings.Repeat("x", 300), WithID(fmt.Sprint("id ", i))))
		}
		require.NoError(t, first.Wait(t.Context()))
		for _, p := range all {
			require.NoError(t, p.Wait(t.Context()))
		}
	})
}

// TestDueItemsAreMovedTogether: in order, and many items share a request.
func TestDueItemsAreMovedTogether(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		const items = 1000
		for i := 0; i < items; i += 200 {
			require.NoError(t, p.PutBatch(t.Context(), names(i, i+200), WithDelay(time.Minute)))
		}
		require.NoError(t, p.Pause(t.Context()))
		got := a.takeInBackground()
		time.Sleep(30 * time.Second)
		sent := func() (n int64) {
			for op, count := range w.Requests() {
				if op != zktest.OpPing && op != zktest.OpSync {
					n += count
				}
			}
			return n
		}
		before := sent()
		time.Sleep(time.Minute)
		require.Less(t, sent()-before, int64(items/5), "also those of the sessions' proofs of life")
		require.Empty(t, w.Children(testPath+"/later"))
		require.NoError(t, p.Resume(t.Context()))
		d := <-got
		require.Equal(t, "item 0", d.Value)
		a.ack(d)
		require.Equal(t, names(1, 50), a.drain(49))
		_, err := p.Purge(t.Context())
		require.NoError(t, err)
	})
}

// TestBatchOfTheLargestSize: as documented, also at a long path.
func TestBatchOfTheLargestSize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.Member(t, "a", config)
		q := New(m.Client, "/queues/"+strings.Repeat("long", 50), codec.Text(), WithCapacity(2000))
		defer q.Close(context.Background())
		values := make([]string, maxBatch)
		for i := range values {
			values[i] = strings.Repeat("x", maxBatchBytes/maxBatch)
		}
		require.NoError(t, q.PutBatch(t.Context(), values, WithPriority(3)))
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, maxBatch, n)
		values[0] += "x"
		require.ErrorIs(t, q.PutBatch(t.Context(), values), framework.ErrTooLarge)
		require.ErrorIs(t, q.PutBatch(t.Context(), names(0, maxBatch+1)), framework.ErrTooLarge)
	})
}

// A second of more than ten digits has no directory that consumers find: the item would be lost.
func TestNackForTooLongIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.member("b")
		b.put("x")
		d := b.take()
		require.ErrorIs(t, d.Nack(t.Context(), 292*365*24*time.Hour, nil), errOption)
		require.NoError(t, d.Nack(t.Context(), queuelayout.MaxDelay, nil), "it is open still")
		c, err := b.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{Delayed: 1}, c)
	})
}
