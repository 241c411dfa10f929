package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

func (w *world) inspect() Report {
	w.t.Helper()
	report, err := Inspect(w.t.Context(), w.Member(w.t, "look", config).Client, testPath)
	require.NoError(w.t, err)
	return report
}

// TestInspectShowsItemsThatFailAgainAndAgain: those that are returned at once, in both orders.
func TestInspectShowsItemsThatFailAgainAndAgain(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithDedup(time.Hour))
		require.NoError(t, a.Put(t.Context(), "poison", WithID("order-17")))
		a.put("good")
		require.Equal(t, Retried{}, w.inspect().Retried)
		for n := range 4 {
			d := a.take()
			require.Equal(t, "poison", d.Value)
			require.Equal(t, n+1, d.Attempt)
			require.NoError(t, d.Nack(t.Context(), 0, errors.New("no disk")))
		}
		a.closeSlowly()
		r := w.inspect()
		require.Equal(t, 2, r.Items)
		want := Retried{Items: 1, Attempts: 4, Node: r.Retried.Node, ID: "order-17", LastError: "no disk"}
		if strings.Contains(r.Retried.Node, "/items/") {
			want.Attempts, want.LastError = 3, "" // of four, the first is not stored, nor are reasons
		}
		require.Equal(t, want, r.Retried)
		d := w.member("b", order).take()
		require.Equal(t, "poison", d.Value)
		require.Equal(t, "order-17", w.inspect().Retried.ID, "while a consumer has it again")
	})
}

// TestInspectShowsDelayedItemsThatFailAgainAndAgain: behind many delayed items, the one that has
// failed most often waits longest.
func TestInspectShowsDelayedItemsThatFailAgainAndAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithDedup(24*time.Hour))
		for _, id := range []string{"once", "often"} {
			require.NoError(t, a.Put(t.Context(), id, WithID(id)))
		}
		require.NoError(t, a.take().Nack(t.Context(), 2*time.Minute, errors.New("it waits")))
		for n := range 5 {
			d := a.take()
			require.Equal(t, "often", d.Value)
			after := time.Duration(0)
			if n == 4 {
				after = time.Hour
			}
			require.NoError(t, d.Nack(t.Context(), after, errors.New("no disk")))
		}
		for n := range 60 {
			require.NoError(t, a.Put(t.Context(), "later", WithDelay(time.Duration(n+20)*time.Second)))
		}
		r := w.inspect()
		require.Equal(t, Counts{Delayed: 62}, r.Counts)
		require.True(t, r.Retried.More, "it does not read 62 items")
		require.Equal(t, "often", r.Retried.ID)
		require.Equal(t, 5, r.Retried.Attempts)
		require.Equal(t, "no disk", r.Retried.LastError)
	})
}

// TestASearchForReturnedItemsIsBounded in items, in bytes, and in what it lists.
func TestASearchForReturnedItemsIsBounded(t *testing.T) {
	for size, want := range map[int]int{10: retriedReads, 100_000: 2, 120_000: 2, 60_000: 4, 300_000: 2} {
		var delayed []filledDir
		for n := range 1000 {
			delayed = append(delayed, filledDir{fmt.Sprintf("/q/later/1/%010d", n), 1})
		}
		s := newRetriedSearch([]filledDir{{"/q/lanes/redo/0000000000", maxRetriedNames + 1},
			{"/q/lanes/redo/0000000001", 500}}, delayed)
		require.Len(t, s.dirs, 1+2*retriedAtEnds)
		require.Equal(t, "/q/lanes/redo/0000000001", s.dirs[0], "the other has too many")
		for n := range s.dirs {
			var names []string
			for k := range map[bool]int{true: 500, false: 1}[n == 0] {
				names = append(names, "i-"+queuelayout.FormatNumber(int64(k)))
			}
			s.addNames(n, names)
		}
		read, requests := 0, 0
		var found Retried
		for items := s.next(); len(items) > 0; items = s.next() {
			if requests++; requests == 1 {
				require.Contains(t, items, "/q/later/1/0000000999/i-0000000000",
					"the item that is due last is among the first")
			}
			nodes := make([]framework.Node, len(items))
			for i := range nodes {
				data, err := queuelayout.Envelope{Header: queuelayout.Header{Attempts: 1},
					Payload: make([]byte, size)}.Encode()
				require.NoError(t, err)
				nodes[i].Data = data
			}
			read += len(items)
			require.NoError(t, s.learn(&found, items, nodes))
		}
		require.Equal(t, want, read, "of %d bytes", size)
		require.Equal(t, want, found.Items)
		require.True(t, found.More)
		require.LessOrEqual(t, requests, 3)
	}
}

// TestInspectShowsTheItemThatIsHeldLongest of each priority, from when it came, not from when
// its ticket was drawn.
func TestInspectShowsTheItemThatIsHeldLongest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithMaxInFlight(1), WithDedup(time.Hour)), w.member("b", WithMaxInFlight(1))
		require.Empty(t, w.inspect().Held)
		taken := make(chan *Delivery[string], 2)
		go func() { taken <- a.take() }() // its ticket waits for a minute
		time.Sleep(time.Minute)
		a.put("first")
		first := <-taken
		require.NoError(t, a.Put(t.Context(), "second", WithID("s"), WithPriority(2)))
		time.Sleep(time.Minute)
		second := b.take()
		held := w.inspect().Held
		require.Equal(t, first.Node(), held.Node)
		require.Equal(t, "a", held.Owner)
		require.Equal(t, 1, held.Attempt)
		require.Empty(t, held.Data)
		require.WithinDuration(t, first.Enqueued, held.Since, time.Second)
		a.ack(first)
		held = w.inspect().Held
		require.Equal(t, second.Node(), held.Node)
		require.Equal(t, "s", held.ID)
		require.Equal(t, b.client.Status().SessionID, held.Session)
		b.ack(second)
		require.Empty(t, w.inspect().Held)
	})
}

// TestALookAtManyReturnedItemsTakesFewRequests more than one at none.
func TestALookAtManyReturnedItemsTakesFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxInFlight(300))
		a.put(names(0, 300)...)
		var all []*Delivery[string]
		for range 300 {
			all = append(all, a.take())
		}
		for _, d := range all {
			require.NoError(t, d.Nack(t.Context(), 0, errors.New("no disk")))
		}
		a.closeSlowly()
		look := w.Member(t, "look", config).Client
		_, err := look.Session(t.Context())
		require.NoError(t, err)
		requests := 0
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMultiRead && r.Session == look.Status().SessionID {
				requests++
			}
		})()
		report, err := Inspect(t.Context(), look, testPath)
		require.NoError(t, err)
		require.Equal(t, Retried{Items: 32, More: true, Attempts: 1, Node: report.Retried.Node,
			LastError: "no disk"}, report.Retried)
		require.LessOrEqual(t, requests, 10)
	})
}
