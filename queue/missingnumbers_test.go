package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// A consumer that waits for an item has its ticket before the item is put. If it ends, nobody has
// had that item: its attempts count from one, and while nobody else was there it comes in its
// place.

func TestItemForDepartedConsumerCountsNoAttempt(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, m *member){
		"closed":   func(t *testing.T, m *member) { require.NoError(t, m.Close(t.Context())) },
		"lingered": func(*testing.T, *member) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, p := w.member("a", WithPrefetch(2)), w.member("b"), w.member("p")
				p.put("zero")
				a.drain(1)
				a.requireNone()
				leave(t, a)
				p.put(names(0, 4)...)
				for _, want := range names(0, 4) {
					d := b.take()
					require.Equal(t, want, d.Value)
					require.Equal(t, 1, d.Attempt)
					b.ack(d)
				}
			})
		})
	}
}

func TestItemForDeadConsumerCountsNoAttempt(t *testing.T) {
	for name, before := range map[string]bool{"before the next consumer came": true, "beside another consumer": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, p := w.member("a"), w.member("b"), w.member("p")
				p.put("zero")
				a.drain(1)
				dead := a.waiting()
				var got chan *Delivery[string]
				if !before {
					got = b.takeInBackground()
				}
				time.Sleep(time.Second)
				a.kill()
				<-dead
				time.Sleep(time.Minute)
				p.put("one", "two")
				if before {
					got = b.takeInBackground()
				}
				d := <-got
				require.Equal(t, 1, d.Attempt)
				b.ack(d)
				d = b.take()
				require.Equal(t, 1, d.Attempt)
				b.ack(d)
			})
		})
	}
}

// TestItemPutAsItsTicketGoesCountsNoAttempt: one transaction of another consumer has put the item
// and given up its ticket. The recoverer is faster than that consumer, which would look for the
// item then.
func TestItemPutAsItsTicketGoesCountsNoAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, other := w.member("recoverer", WithMaxInFlight(1)), w.member("other").client
		recoverer.put("zero")
		busy := recoverer.take()
		data, _, err := other.Get(t.Context(), busy.Node())
		require.NoError(t, err)
		tickets := testPath + "/tickets/items/0000000000/t-other-"
		_, err = other.Multi(t.Context(), framework.CreateOp(tickets, nil, framework.EphemeralSequential))
		require.NoError(t, err)
		_, err = other.Multi(t.Context(),
			framework.CreateOp(testPath+"/items/0000000000/i-", data, framework.PersistentSequential),
			framework.DeleteOp(tickets+"0000000001", framework.AnyVersion),
			framework.SetOp(testPath+"/tickets", nil, framework.AnyVersion))
		require.NoError(t, err)
		time.Sleep(time.Second)
		recoverer.ack(busy)
		d := recoverer.take()
		require.Equal(t, 1, d.Attempt)
		recoverer.ack(d)
	})
}

// TestMissingNumberIsWatchedAfterReconnect: the servers forget a connection's watches.
func TestMissingNumberIsWatchedAfterReconnect(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a"), w.member("b"), w.member("p")
		p.put("zero")
		a.drain(1)
		dead := a.waiting()
		time.Sleep(time.Second)
		got := b.takeInBackground()
		time.Sleep(time.Second)
		a.kill()
		<-dead
		time.Sleep(time.Minute)
		b.link.Reset()
		time.Sleep(time.Minute)
		p.put("one")
		time.Sleep(time.Second)
		select {
		case d := <-got:
			require.Equal(t, "one", d.Value)
			b.ack(d)
		default:
			require.Fail(t, "the item is nobody's")
		}
	})
}

// waiting takes in the background, in vain.
func (m *member) waiting() chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := m.Take(within(m.t, 5*time.Minute))
		ended <- err
	}()
	return ended
}

// TestMissingNumbersAreVoidedTogether: each call of Take that ends in vain may leave one.
func TestMissingNumbersAreVoidedTogether(t *testing.T) {
	for _, n := range []int{1, 50, 100, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, p := w.member("a"), w.member("b"), w.member("p")
				p.put("zero")
				a.drain(1)
				for range n { // polls now and then
					_, err := a.Take(within(t, time.Second))
					require.Error(t, err)
					time.Sleep(10 * time.Second)
				}
				got := b.takeInBackground()
				time.Sleep(time.Second)
				b.link.Delay(5 * time.Millisecond)
				began := time.Now()
				p.put("one")
				b.ack(<-got)
				require.Less(t, time.Since(began), time.Second)
			})
		})
	}
}

// TestItemPutWhileRecovererVoidsNumbers: the recoverer has read the segment before it was put.
func TestItemPutWhileRecovererVoidsNumbers(t *testing.T) {
	for after := time.Duration(0); after < 6*time.Second; after += slow / 2 {
		in(t, func(t *testing.T, w *world) {
			a, b, p := w.member("a"), w.member("b"), w.member("p")
			p.put("zero")
			a.drain(1)
			for range 5 {
				_, err := a.Take(within(t, time.Second))
				require.Error(t, err)
				time.Sleep(10 * time.Second)
			}
			_, err := b.Len(t.Context())
			require.NoError(t, err)
			b.link.Delay(slow)
			got := b.takeInBackground()
			time.Sleep(after)
			p.put("one")
			time.Sleep(time.Minute)
			select {
			case d := <-got:
				require.Equal(t, "one", d.Value)
				b.ack(d)
			default:
				require.Fail(t, "the item is nobody's", "put after %v", after)
			}
		})
	}
}
