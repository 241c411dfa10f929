package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestItemComesBackAfterItsTicketWasDeleted: an operator has deleted the ticket of an open
// delivery. Its consumer stays in line, so that the recoverer does not see it leave.
func TestItemComesBackAfterItsTicketWasDeleted(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, d *Delivery[string]){
		"and the handler waits for its context": func(t *testing.T, d *Delivery[string]) {
			<-d.Context().Done()
			require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		},
		"before the acknowledgement": func(t *testing.T,
			d *Delivery[string]) {
			require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		},
		"before the item is returned": func(t *testing.T, d *Delivery[string]) {
			require.ErrorIs(t, d.Nack(t.Context(), 0, nil), ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, p := w.member("a"), w.member("p")
				p.put("one", "two")
				lost, other := a.take(), a.take()
				require.NoError(t, p.client.Delete(t.Context(), lost.item.ticket, framework.AnyVersion))
				then(t, lost)
				again := a.take()
				require.Equal(t, lost.Value, again.Value)
				require.Equal(t, 2, again.Attempt)
				a.ack(other)
				a.ack(again)
			})
		})
	}
}

// TestItemComesBackWhoseTicketWasDeletedBeforeItsPut: its consumer waited for it with that ticket.
func TestItemComesBackWhoseTicketWasDeletedBeforeItsPut(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p")
		p.put("zero")
		zero := a.take()
		waiting := a.takeInBackground()
		time.Sleep(time.Second)
		tickets := w.Children(testPath + "/tickets/items/0000000000")
		require.Len(t, tickets, 2)
		last := tickets[slices.IndexFunc(tickets, func(name string) bool { return strings.HasSuffix(name, "1") })]
		require.NoError(t, p.client.Delete(t.Context(), testPath+"/tickets/items/0000000000/"+last,
			framework.AnyVersion))
		p.put("one")
		d := <-waiting
		<-d.Context().Done()
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		again := a.take()
		require.Equal(t, "one", again.Value)
		a.ack(again)
		a.ack(zero)
	})
}

// TestPrefetchedItemComesBackAfterItsTicketWasDeleted: no call of Take has got it before.
func TestPrefetchedItemComesBackAfterItsTicketWasDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithPrefetch(1)), w.member("p")
		p.put("one", "two")
		other := a.take()
		time.Sleep(time.Second)
		ahead := a.engine.consumer.takes.claims.readyItems()
		require.Len(t, ahead, 1)
		require.NoError(t, p.client.Delete(t.Context(), ahead[0].ticket, framework.AnyVersion))
		<-ahead[0].hold.Context().Done()
		again := a.take()
		require.NotEqual(t, other.Value, again.Value)
		a.ack(again)
		a.ack(other)
	})
}

// TestItemComesBackWhoseTicketWasDeletedWhileItsHandlerHangs: another consumer gets it, also while
// the first one lives and settles nothing.
func TestItemComesBackWhoseTicketWasDeletedWhileItsHandlerHangs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithMaxInFlight(1)), w.member("b")
		a.put("one")
		lost := a.take()
		require.NoError(t, b.client.Delete(t.Context(), lost.item.ticket, framework.AnyVersion))
		again := b.take()
		require.Equal(t, "one", again.Value)
		require.Error(t, lost.Context().Err())
		b.ack(again)
	})
}
