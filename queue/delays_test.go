package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestADelayIsKeptAfterALateReply: it does not set the estimate of the ensemble's clock back.
func TestADelayIsKeptAfterALateReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b, p := w.member("b"), w.member("p")
		p.put("x")
		b.drain(1)
		s, err := p.client.Session(t.Context())
		require.NoError(t, err)
		late := w.DelayReplies(3*time.Second, zktest.Match{Op: zktest.OpMulti, Session: s.ID()})
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

// TestADelayedPutOnASlowLink: the second that it is due at is made before the transaction, and must be the same then.
func TestADelayedPutOnASlowLink(t *testing.T) {
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
		q := New(m.Client, path, Text(), WithDedup(time.Second))
		defer q.Close(context.Background())
		require.NoError(t, q.Put(t.Context(), "x", WithID("0")))
		time.Sleep(2 * time.Second)
		require.NoError(t, q.Put(t.Context(), "x", WithID("00"))) // another bucket
		defer w.DelayReplies(100*time.Millisecond, zktest.Match{Op: zktest.OpMulti}).Cancel()
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
