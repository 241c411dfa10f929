package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// What follows strikes between two requests of a consumer whose link is slow, where the rules of
// docs/adr/0021-a-queue-of-segments-and-tickets.md decide.

const slow = 300 * time.Millisecond

// beforeRequest calls f when the servers have done a member's first request of this kind for a path
// that begins so, before the member hears of that. A transaction counts if it writes.
func (w *world) beforeRequest(m *member, op zktest.Op, path string, f func()) {
	s, err := m.client.Session(w.t.Context())
	require.NoError(w.t, err)
	done := make(chan struct{}, 1)
	stop := w.Observe(func(r zktest.Request) {
		if r.Session != s.ID() || r.Op != op || !strings.HasPrefix(r.Path, path) ||
			r.Op == zktest.OpMulti && !r.Writes() {
			return
		}
		select {
		case done <- struct{}{}:
		default:
		}
	})
	go func() {
		defer stop()
		select {
		case <-done:
			f()
		case <-time.After(time.Hour):
			w.t.Errorf("%v %s was not asked for", op, path)
		}
	}()
}

// taking takes in the background.
func (m *member) takeInBackground() chan *Delivery[string] {
	got := make(chan *Delivery[string], 1)
	go func() {
		d, err := m.Take(within(m.t, 5*time.Minute))
		if err != nil {
			m.t.Error(err)
		}
		got <- d
	}()
	return got
}

// TestConsumerJoinsLineBeforeFirstTicket: rule 3.
func TestConsumerJoinsLineBeforeFirstTicket(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p")
		p.put("x")
		_, err := a.Len(t.Context()) // it is connected
		require.NoError(t, err)
		a.link.Delay(slow)
		var inLine, drawn time.Time
		stop := w.Observe(func(r zktest.Request) {
			for _, part := range append(r.Parts, r) {
				switch {
				case inLine.IsZero() && strings.HasPrefix(part.Result, testPath+"/lock/"):
					inLine = time.Now()
				case drawn.IsZero() && strings.HasPrefix(part.Result, testPath+"/tickets/items/0000000000/"):
					drawn = time.Now()
				}
			}
		})
		got := a.takeInBackground()
		time.Sleep(20 * time.Second)
		stop() // after which nothing is noted any more
		require.False(t, inLine.IsZero())
		require.GreaterOrEqual(t, drawn.Sub(inLine), 2*slow, "it has heard that it stands there")
		a.put("x")
		a.ack(<-got)
	})
}

// TestRecovererNoticesDeadConsumer: rule 3. It waits for items itself, and nothing else happens.
func TestRecovererNoticesDeadConsumer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(2)), w.member("b"), w.member("p")
		p.put("w", "x")
		first := recoverer.take()
		d := b.take()
		got := recoverer.takeInBackground()
		time.Sleep(time.Second)
		b.kill()
		again := <-got
		require.Equal(t, d.Value, again.Value)
		require.Equal(t, 2, again.Attempt)
		recoverer.ack(first)
		recoverer.ack(again)
	})
}

// TestRecoveredItemKeepsAttempts: the item's version is raised between the recoverer's read and its
// move.
func TestRecoveredItemKeepsAttempts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(2)), w.member("b"), w.member("p")
		p.put("w", "x")
		first := recoverer.take()
		lost := b.take()
		got := recoverer.takeInBackground()
		time.Sleep(time.Second)
		recoverer.link.Delay(slow)
		w.beforeRequest(recoverer, zktest.OpGetData, lost.Node(), func() {
			data, _, err := p.client.Get(t.Context(), lost.Node())
			if err == nil {
				_, err = p.client.Set(t.Context(), lost.Node(), data, framework.AnyVersion)
			}
			if err != nil {
				t.Error(err)
			}
		})
		b.kill()
		d := <-got
		require.Equal(t, lost.Value, d.Value)
		require.Equal(t, 3, d.Attempt)
		recoverer.ack(d)
		recoverer.ack(first)
	})
}

// TestUnsettleableDeliveryIsGivenBack: rule 4. Its item has another version, so it cannot be
// settled; it is claimed again although its consumer lives on.
func TestUnsettleableDeliveryIsGivenBack(t *testing.T) {
	for name, how := range map[string][]PutOption{"parallel": nil, "of a lane": {WithPriority(2)}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				require.NoError(t, a.Put(t.Context(), "x", how...))
				d := a.take()
				n, _ := w.Node(d.Node())
				_, err := a.client.Set(t.Context(), d.Node(), n.Data, framework.AnyVersion)
				require.NoError(t, err)
				require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
				d = a.take()
				require.Equal(t, "x", d.Value)
				require.Equal(t, 3, d.Attempt)
				a.ack(d)
			})
		})
	}
}

// TestIdleConsumerSignalsAgain: rule 5. The urgent item comes between its look at the lanes and its
// ticket, and the recoverer, who has heard of it, has seen nobody idle.
func TestIdleConsumerSignalsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(1)), w.member("b"), w.member("p")
		p.put("x")
		busy := recoverer.take()
		_, err := b.Len(t.Context())
		require.NoError(t, err)
		b.link.Delay(slow)
		put := func() {
			if err := p.Put(t.Context(), "urgent", WithPriority(1)); err != nil {
				t.Error(err)
			}
		}
		w.beforeRequest(b, zktest.OpGetChildren2, testPath+"/lanes", func() {
			// it looks whether there is anything to claim
			w.beforeRequest(b, zktest.OpGetChildren2, testPath+"/lanes", put) // it has joined the line
		})
		d := b.take()
		require.Equal(t, "urgent", d.Value)
		b.ack(d)
		recoverer.ack(busy)
	})
}

// TestSegmentIsClosedAndRemovedOnce: a roll that comes late changes nothing, be the next segment
// there or removed by then; an open segment, or one with items, is not removed.
func TestSegmentIsClosedAndRemovedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", segmentSize(2))
		l := a.engine.store.nodes.Base
		b := w.member("b", segmentSize(2))
		s, err := b.client.Session(t.Context())
		require.NoError(t, err)
		a.put("x")
		require.NoError(t, l.Segment(0).RemoveIfEmpty(t.Context(), s))
		require.Len(t, w.Children(l.Dir), 1, "it has an item")
		a.drain(1)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, l.Segment(0).RemoveIfEmpty(t.Context(), s))
		require.Len(t, w.Children(l.Dir), 1, "it is open")
		b.put("y", "z")
		require.Equal(t, []string{"0000000000", "0000000001"}, w.Children(l.Dir))
		_, err = b.client.Multi(t.Context(), l.Segment(0).CloseOps()...)
		require.ErrorIs(t, err, framework.ErrBadVersion)
		require.Equal(t, []string{"y", "z"}, b.drain(2))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"0000000001"}, w.Children(l.Dir))
		_, err = b.client.Multi(t.Context(), l.Segment(0).CloseOps()...)
		require.ErrorIs(t, err, framework.ErrNoNode)
	})
}

// TestSegmentOfDeadConsumerIsRemoved: no consumer acknowledges in it.
func TestSegmentOfDeadConsumerIsRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", segmentSize(2)), w.member("b", WithMaxInFlight(2))
		a.put(names(0, 3)...)
		b.take()
		b.take()
		b.kill()
		require.ElementsMatch(t, names(0, 3), a.drain(3))
		time.Sleep(time.Minute)
		require.Len(t, w.Children(testPath+"/items"), 1)
		require.Len(t, w.Children(testPath+"/tickets/items"), 1)
	})
}

// TestItemPutBetweenReadsIsNotVoid: the ticket's number is given to an item after the consumer has
// looked for it and before it asks how many there were.
func TestItemPutBetweenReadsIsNotVoid(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(1)), w.member("b"), w.member("p")
		p.put("x")
		busy := recoverer.take()
		_, err := b.Len(t.Context())
		require.NoError(t, err)
		b.link.Delay(slow)
		w.beforeRequest(b, zktest.OpExists, testPath+"/items/0000000000/i-0000000001", func() {
			if err := p.Put(t.Context(), "y"); err != nil {
				t.Error(err)
			}
		})
		d := b.take()
		require.Equal(t, "y", d.Value)
		require.Equal(t, 1, d.Attempt)
		b.ack(d)
		recoverer.ack(busy)
	})
}

// TestStrictAckWithoutLockIsRefused: no other consumer has the lock yet.
func TestStrictAckWithoutLockIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithOrder(Strict)), w.member("p", WithOrder(Strict))
		p.put("x")
		d := a.take()
		lines := w.Children(testPath + "/lock")
		require.Len(t, lines, 1)
		require.NoError(t, p.client.Delete(t.Context(), testPath+"/lock/"+lines[0], framework.AnyVersion))
		require.NoError(t, d.Context().Err(), "it has not noticed")
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		again := a.take()
		require.Equal(t, 2, again.Attempt)
		a.ack(again)
	})
}

// TestStrictReclaimedItemGoesAlone: of what the dead consumer had, the next one claims one item,
// and none behind it, however many it may have and is asked for. So its death counts for that one
// alone.
func TestStrictReclaimedItemGoesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		had      int // by the first
		attempts []int
	}{"others that were claimed before": {3, []int{3, 2, 2}}, "others that were not": {1, []int{3, 1, 1}}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				strict, takeSeveral := WithOrder(Strict),
					[]Option{WithOrder(Strict), WithMaxInFlight(5), WithPrefetch(5)}
				first, b, last := w.member("first", strict, WithMaxInFlight(c.had)), w.member("b", takeSeveral...),
					w.member("last", strict)
				first.put(names(0, 3)...)
				for range c.had {
					first.take()
				}
				first.kill()
				require.Equal(t, "item 0", b.take().Value)
				_, err := b.Take(within(t, 10*time.Second))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				b.kill()
				for i, attempt := range c.attempts {
					d := last.take()
					require.Equal(t, fmt.Sprint("item ", i), d.Value)
					require.Equal(t, attempt, d.Attempt)
					last.ack(d)
				}
			})
		})
	}
}

// TestStrictNackedItemsComeInOrder: in whatever order it was given back.
func TestStrictNackedItemsComeInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict), WithMaxInFlight(3))
		a.put(names(0, 4)...)
		ds := []*Delivery[string]{a.take(), a.take(), a.take()}
		for _, i := range []int{1, 2, 0} {
			require.NoError(t, ds[i].Nack(t.Context(), time.Second, errors.New("again")))
		}
		require.Equal(t, names(0, 4), a.drain(4))
	})
}

// TestNextSegmentIsMadeBehindTheLastOnly: a consumer has listed the segments before the others of
// these steps, and found the first one closed after them: another client closes a segment and makes
// the next one, which is used and removed before the first one, since that has tickets.
func TestNextSegmentIsMadeBehindTheLastOnly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.Resume(t.Context())) // makes the queue
		l := a.engine.store.nodes.Base
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		for n := range int64(2) {
			_, err = s.Multi(t.Context(), l.Segment(n).CloseOps()...)
			require.NoError(t, err)
		}
		require.NoError(t, l.Segment(1).RemoveIfEmpty(t.Context(), s))
		require.NoError(t, l.Segment(0).MakeNext(t.Context(), s))
		require.Equal(t, []string{"0000000000", "0000000002"}, w.Children(testPath+"/items"))
	})
}

// TestStraySegmentIsClosed: an open segment before the last one keeps no consumer from the items
// behind it.
func TestStraySegmentIsClosed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.Resume(t.Context())) // makes the queue
		l := a.engine.store.nodes.Base
		_, err := a.client.Multi(t.Context(), append(l.Segment(0).CloseOps(), l.Segment(2).MakeOps()...)...)
		require.NoError(t, err)
		a.put("x")
		a.ack(a.take())
		synctest.Wait() // the closed segment is removed in the background
		require.Equal(t, []string{"0000000002"}, w.Children(testPath+"/items"))
	})
}
