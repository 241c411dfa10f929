package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// What follows is of the order in which the recoverer reads a segment, while others go on between
// two of its requests.

// sweeping makes a recoverer on a slow link, which has an item in hand. It sweeps when another
// consumer dies, which has one, too. The queue has n items more.
func (w *world) sweepWithHook(n int, before func()) (recoverer *member, sweep func()) {
	recoverer, gone, p := w.member("recoverer", WithMaxInFlight(1)), w.member("gone", WithMaxInFlight(1)), w.member("p")
	p.put(names(0, 2+n)...)
	recoverer.take()
	gone.take()
	before()
	time.Sleep(time.Second)
	recoverer.link.Delay(slow)
	return recoverer, gone.kill
}

// TestTicketDrawnDuringSweepOwnsItsItem: the recoverer has listed the tickets before it was drawn,
// and lists the items after.
func TestTicketDrawnDuringSweepOwnsItsItem(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.member("b")
		recoverer, sweep := w.sweepWithHook(1, func() {})
		_, err := b.Len(t.Context())
		require.NoError(t, err)
		got := make(chan *Delivery[string], 1)
		w.beforeRequest(recoverer, zktest.OpGetChildren2, testPath+"/tickets/items/", func() { got <- b.take() })
		sweep()
		d := <-got
		require.Equal(t, "item 2", d.Value)
		time.Sleep(time.Minute)
		require.NoError(t, d.Context().Err())
		b.ack(d)
		again := b.take()
		require.Equal(t, "item 1", again.Value)
		require.Equal(t, 2, again.Attempt)
		b.ack(again)
	})
}

// TestConsumerThatCameAndDiedDuringSweepIsNoticed: the recoverer has listed the line before that
// consumer joined it, and lists it again after it died. The two lists are the same.
func TestConsumerThatCameAndDiedDuringSweepIsNoticed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		brief, c := w.member("brief"), w.member("c")
		recoverer, sweep := w.sweepWithHook(1, func() {})
		died := make(chan struct{})
		w.beforeRequest(recoverer, zktest.OpGetChildren2, testPath+"/tickets/items/", func() {
			defer close(died)
			require.Equal(t, "item 2", brief.take().Value)
			s, err := brief.client.Session(t.Context())
			if err == nil {
				err = w.Expire(s.ID())
			}
			if err != nil {
				t.Error(err)
			}
		})
		sweep()
		<-died
		time.Sleep(time.Minute)
		for _, want := range []string{"item 1", "item 2"} {
			d := c.take()
			require.Equal(t, want, d.Value)
			require.Equal(t, 2, d.Attempt)
			c.ack(d)
		}
	})
}

// TestNumberUsedDuringSweepIsNotMissing: the recoverer has asked how many items there were before
// that item was put, taken and acknowledged. If it made the servers skip a number then, it would be
// that of a consumer which waits.
func TestNumberUsedDuringSweepIsNotMissing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.member("b", WithMaxInFlight(1))
		var waiting chan *Delivery[string]
		recoverer, sweep := w.sweepWithHook(0, func() { waiting = b.takeInBackground() })
		p := w.member("p2")
		_, err := p.Len(t.Context())
		require.NoError(t, err)
		used := make(chan struct{})
		w.beforeRequest(recoverer, zktest.OpMultiRead, "", func() {
			defer close(used)
			p.put("used")
			b.ack(<-waiting)
			waiting = b.takeInBackground()
		})
		sweep()
		<-used
		time.Sleep(time.Minute)
		d := <-waiting
		require.NotNil(t, d, "its number was skipped")
		require.Equal(t, "item 1", d.Value, "it came back")
		b.ack(d)
		waiting = b.takeInBackground()
		time.Sleep(time.Minute)
		p.put("next")
		time.Sleep(time.Second)
		require.Len(t, waiting, 1)
		b.ack(<-waiting)
	})
}

// TestFormerRecovererVoidsNoNumbers: an operator has deleted its place in line. The next recoverer
// has made the servers skip the number that both have missed; a second time it would be the number
// of a consumer that waits.
func TestFormerRecovererVoidsNoNumbers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		former, b, gone, p := w.member("former", WithMaxInFlight(1)), w.member("b", WithMaxInFlight(1)),
			w.member("gone", WithMaxInFlight(1)), w.member("p")
		p.put("first")
		busy := former.take()
		place := testPath + "/lock/" + w.Children(testPath + "/lock")[0]
		ended := gone.waiting()
		time.Sleep(time.Second)
		waiting := b.takeInBackground()
		time.Sleep(time.Second)
		former.link.Delay(slow)
		w.beforeRequest(former, zktest.OpGetChildren2, testPath+"/items/0000000000", func() {
			time.Sleep(slow / 10) // it hears of it after the answer, and has sent what follows
			if err := p.client.Delete(t.Context(), place, framework.AnyVersion); err != nil {
				t.Error(err)
			}
		})
		gone.kill()
		<-ended
		time.Sleep(time.Minute)
		p.put("second")
		time.Sleep(time.Second)
		require.Len(t, waiting, 1)
		b.ack(<-waiting)
		require.ErrorIs(t, busy.Ack(t.Context()), ErrLost)
	})
}
