package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// What follows is of docs/adr/0038-one-claim-mechanism-for-all-lines.md.

// requests counts what was asked of the server, without pings.
func (w *world) requests() (n int64) {
	for op, c := range w.Requests() {
		if op != zktest.OpPing {
			n += c
		}
	}
	return n
}

// draws counts the tickets that are drawn below a directory, until stop.
func (w *world) draws(below string) (count func() int, stop func()) {
	var mu sync.Mutex
	n := 0
	stop = w.Observe(func(r zktest.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, part := range append(r.Parts, r) {
			if part.Op == zktest.OpCreate && r.Err == part.Err && strings.HasPrefix(part.Result, testPath+below) &&
				strings.Contains(part.Result, "/t-") {
				n++
			}
		}
	})
	return func() int { mu.Lock(); defer mu.Unlock(); return n }, stop
}

func TestItemCostsFewRequestsInEachLine(t *testing.T) {
	for _, inHand := range []int{0, 100} {
		for _, priority := range []int{0, 5} {
			t.Run(fmt.Sprintf("priority %d, %d in hand", priority, inHand), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					a, p := w.member("a", WithMaxInFlight(200)), w.member("p")
					require.NoError(t, p.PutBatch(t.Context(), names(0, 500), WithPriority(priority)))
					for range inHand {
						a.take()
					}
					a.drain(1)
					a.link.Delay(time.Millisecond)
					before := w.requests()
					a.drain(100)
					require.LessOrEqual(t, w.requests()-before, int64(300))
				})
			})
		}
	}
}

// TestReturnedItemsCostAFewRequests: each item is given back once by one of several consumers, each
// of which has others in hand.
func TestReturnedItemsCostAFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const items, consumers, hands = 500, 6, 4
		p := w.member("p")
		require.NoError(t, p.PutBatch(t.Context(), names(0, items)))
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		done := make(chan struct{}, items)
		before := w.requests()
		for c := range consumers {
			m := w.member(fmt.Sprint("c", c), WithMaxInFlight(hands))
			m.link.Delay(time.Millisecond)
			for range hands {
				working.Go(func() {
					for {
						d, err := m.Take(ctx)
						if err != nil {
							return
						}
						if d.Attempt == 1 {
							_ = d.Nack(t.Context(), 0, nil)
						} else if d.Ack(t.Context()) == nil {
							done <- struct{}{}
						}
					}
				})
			}
		}
		for range items {
			<-done
		}
		require.LessOrEqual(t, w.requests()-before, int64(2*items*4))
		cancel()
		working.Wait()
	})
}

// TestPriorityItemGoesBeforeLaterBurst: all consumers wait when it comes, and the burst follows
// some round trips later.
func TestPriorityItemGoesBeforeLaterBurst(t *testing.T) {
	for name, urgent := range map[string]func(t *testing.T, p *member) func(){
		"urgent": func(t *testing.T, p *member) func() {
			return func() { require.NoError(t, p.Put(t.Context(), "first", WithPriority(9))) }
		},
		"given back": func(t *testing.T, p *member) func() {
			p.put("first")
			d := p.take()
			return func() { require.NoError(t, d.Nack(t.Context(), 0, nil)) }
		},
	} {
		for after := time.Duration(0); after <= 60*time.Millisecond; after += 4 * time.Millisecond {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					a, p := w.member("a", WithMaxInFlight(1)), w.member("p")
					comes := urgent(t, p)
					got := a.takeInBackground()
					time.Sleep(time.Second)
					a.link.Delay(time.Millisecond)
					comes()
					time.Sleep(after)
					require.NoError(t, p.PutBatch(t.Context(), names(0, 100)))
					d := <-got
					for before := 0; d.Value != "first"; before++ {
						require.Less(t, before, 2)
						a.ack(d)
						d = a.take()
					}
					a.ack(d)
				})
			})
		}
	}
}

// TestPriorityItemsWakeOneConsumerEach: the others keep their tickets.
func TestPriorityItemsWakeOneConsumerEach(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p")
		p.put("zero")
		got := make(chan *Delivery[string], 12)
		for i := range 12 {
			m := w.member(fmt.Sprint("m", i), WithMaxInFlight(1))
			if i == 0 {
				m.drain(1)
			}
			go func() {
				if d, err := m.Take(within(t, time.Hour)); err == nil {
					got <- d
				}
			}()
		}
		time.Sleep(time.Minute)
		drawn, stop := w.draws("/tickets/")
		defer stop()
		for i := range 3 {
			require.NoError(t, p.Put(t.Context(), fmt.Sprint(i), WithPriority(3)))
			time.Sleep(time.Second)
			require.Equal(t, fmt.Sprint(i), (<-got).Value)
			require.Equal(t, i+1, drawn(), "only who is woken draws")
		}
		p.put("plain")
		time.Sleep(time.Second)
		require.Equal(t, "plain", (<-got).Value)
		require.Equal(t, 3, drawn())
	})
}

// TestWokenConsumerThatGivesUpPassesItemOn: it finds its ticket void, and no consumer waits there
// for an item any more.
func TestWokenConsumerThatGivesUpPassesItemOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, a, b, p := w.member("recoverer", WithMaxInFlight(1)),
			w.member("a", WithMaxInFlight(1), WithIdleTimeout(2*time.Second)), w.member("b"), w.member("p")
		p.put("zero")
		busy := recoverer.take()
		_, err := a.Len(t.Context())
		require.NoError(t, err)
		gaveUp := make(chan error, 1)
		go func() {
			_, err := a.Take(within(t, 10*time.Second))
			gaveUp <- err
		}()
		time.Sleep(time.Second)
		got := b.takeInBackground() // behind a
		time.Sleep(time.Second)
		time.Sleep(7900 * time.Millisecond) // just before a's Take ends
		a.link.Delay(5 * time.Second)
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(1)))
		require.Error(t, <-gaveUp)
		time.Sleep(time.Minute)
		select {
		case d := <-got:
			require.Equal(t, "urgent", d.Value)
			b.ack(d)
		default:
			require.Fail(t, "the item is nobody's")
		}
		a.link.Delay(0)
		recoverer.ack(busy)
	})
}

// TestLastLaneItemIsDrawnOnce: all look when an urgent item comes, and one of them draws a ticket.
func TestLastLaneItemIsDrawnOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p")
		require.NoError(t, p.PutBatch(t.Context(), names(0, 900)))
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		urgent := make(chan string, 100)
		drawn, stop := w.draws("/tickets/7/")
		defer stop()
		for c := range 6 {
			m := w.member(fmt.Sprint("c", c), WithMaxInFlight(2))
			m.link.Delay(time.Millisecond)
			for range 2 {
				working.Go(func() {
					for d, err := range m.Deliveries(ctx) {
						if err != nil {
							return
						}
						if strings.HasPrefix(d.Value, "urgent") {
							urgent <- d.Value
						}
						_ = d.Ack(t.Context())
					}
				})
			}
		}
		for i := range 30 {
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, p.Put(t.Context(), fmt.Sprint("urgent ", i), WithPriority(7)))
		}
		for range 30 {
			<-urgent
		}
		time.Sleep(time.Minute)
		require.Equal(t, 30, drawn())
		cancel()
		working.Wait()
	})
}

// TestTicketsBeyondLaneItemsAreVoided: a consumer believes that a lane has plenty, and draws
// without a check.
func TestTicketsBeyondLaneItemsAreVoided(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a", WithMaxInFlight(1)), w.member("b", WithMaxInFlight(1)), w.member("p")
		require.NoError(t, p.PutBatch(t.Context(), names(0, 50), WithPriority(2)))
		first := a.take()
		b.drain(49)
		require.NoError(t, b.Close(t.Context()))
		a.ack(first)
		got := a.takeInBackground() // it draws a ticket beyond
		time.Sleep(time.Second)
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(2)))
		d := <-got
		require.Equal(t, "urgent", d.Value)
		require.Equal(t, 1, d.Attempt)
		require.Contains(t, d.Node(), "/lanes/2/")
		a.ack(d)
	})
}

// TestMissingNumberBehindAWaitingTicketIsVoided: the item that comes after the waiting one's goes
// to the next waiting consumer.
func TestMissingNumberBehindAWaitingTicketIsVoided(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c, p := w.member("a"), w.member("b"), w.member("c"), w.member("p")
		p.put("zero")
		a.drain(1)
		first := a.takeInBackground()
		time.Sleep(time.Second)
		dead := b.waiting()
		time.Sleep(time.Second)
		second := c.takeInBackground()
		time.Sleep(time.Second)
		b.kill()
		<-dead
		time.Sleep(time.Minute)
		p.put("one")
		d := <-first
		require.Equal(t, "one", d.Value)
		time.Sleep(time.Second)
		p.put("two")
		e := <-second
		require.Equal(t, "two", e.Value)
		require.Equal(t, 1, e.Attempt)
		require.NotContains(t, e.Node(), "redo", "it was not moved")
		a.ack(d)
		c.ack(e)
	})
}

// TestItemForGivenUpTicketCountsNoAttempt: it comes after its consumer has looked for it last, and
// before the ticket has gone.
func TestItemForGivenUpTicketCountsNoAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(2)), w.member("b"), w.member("p")
		p.put("zero", "one")
		busy, other := recoverer.take(), b.take()
		_, err := b.Take(within(t, time.Second))
		require.Error(t, err)
		b.link.Delay(slow)
		w.beforeRequest(b, zktest.OpGetData, testPath+"/items/0000000000/i-", func() {
			if err := p.Put(t.Context(), "two"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		d := recoverer.take()
		require.Equal(t, "two", d.Value)
		require.Equal(t, 1, d.Attempt)
		recoverer.ack(d)
		recoverer.ack(busy)
		b.ack(other)
	})
}

// TestNackAfterLostReply: the same transaction has drawn a ticket.
func TestNackAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxInFlight(2))
		a.put(names(0, 3)...)
		require.NoError(t, a.take().Nack(t.Context(), 0, nil)) // makes the lane
		d := a.take()
		require.Equal(t, "item 0", d.Value)
		fault := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: creates("/lanes/redo/")})
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		<-fault.Hit()
		d = a.take()
		require.Equal(t, "item 0", d.Value)
		require.Equal(t, 3, d.Attempt)
		a.ack(d)
		require.Equal(t, names(1, 3), a.drain(2))
	})
}

// TestNackAfterRedoSegmentWasRemoved: its consumer does not know yet that the lane goes on in
// another, and draws after the item is there.
func TestNackAfterRedoSegmentWasRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxInFlight(2)), w.member("p")
		a.put(names(0, 3)...)
		require.NoError(t, a.take().Nack(t.Context(), 0, nil))
		require.Equal(t, names(0, 1), a.drain(1))
		d := a.take()
		redo := p.engine.store.nodes.Redo
		s, err := p.client.Session(t.Context())
		require.NoError(t, err)
		_, err = s.Multi(t.Context(), redo.Segment(0).CloseOps()...)
		require.NoError(t, err)
		require.NoError(t, redo.Segment(0).RemoveIfEmpty(t.Context(), s))
		require.Equal(t, []string{"0000000001"}, w.Children(redo.Dir))
		returns, draws := creates(redo.Segment(1).Dir()), creates(redo.Segment(0).TicketDir())
		refused := false
		defer w.Observe(func(r zktest.Request) { refused = refused || returns(r) && draws(r) })()
		// puts the next try off
		fault := w.Throttle(1, zktest.Match{Op: zktest.OpMulti, Func: func(zktest.Request) bool { return refused }})
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("again")))
		<-fault.Hit()
		d = a.take()
		require.Equal(t, "item 1", d.Value)
		require.Equal(t, 2, d.Attempt)
		a.ack(d)
		require.Equal(t, names(2, 3), a.drain(1))
	})
}

// TestReturnedItemComesNextBeforeItsSignal: the consumer that has returned it need not hear of that
// from the servers.
func TestReturnedItemComesNextBeforeItsSignal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxInFlight(2))
		a.put(names(0, 2)...)
		d := a.take()
		views := a.engine.consumer.session.Load().order.(*parallelOrder).views
		views.mu.Lock()
		views.watch.Stop()
		views.watch = nil // the event is not there yet
		views.mu.Unlock()
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		require.Equal(t, names(0, 2), a.drain(2))
	})
}

// TestRecovererDiesWhileOthersWait: no other consumer hears of the urgent item.
func TestRecovererDiesWhileOthersWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer", WithMaxInFlight(1)), w.member("b"), w.member("p")
		p.put("zero")
		recoverer.take()
		got := b.takeInBackground()
		time.Sleep(time.Second)
		recoverer.link.Cut()
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(1)))
		d := <-got
		require.Contains(t, []string{"urgent", "zero"}, d.Value)
		b.ack(d)
		b.drain(1)
	})
}

// TestLaneItemsInSeveralSegmentsWakeAsManyConsumers: the first segment has fewer than there are
// consumers who wait. All items are there before the first ticket is drawn, so that no later ring
// of a put wakes the others.
func TestLaneItemsInSeveralSegmentsWakeAsManyConsumers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p", segmentSize(3))
		p.put("zero")
		var got []chan *Delivery[string]
		for i := range 8 {
			m := w.member(fmt.Sprint("m", i), WithMaxInFlight(1), segmentSize(3))
			if i == 0 {
				m.drain(1)
			}
			got = append(got, m.takeInBackground())
			m.link.Delay(slow)
		}
		time.Sleep(time.Minute)
		require.NoError(t, p.PutBatch(t.Context(), names(0, 2), WithPriority(4)))
		for i := 2; i < 8; i++ {
			require.NoError(t, p.Put(t.Context(), fmt.Sprint("item ", i), WithPriority(4)))
		}
		time.Sleep(time.Minute)
		for _, ch := range got {
			select {
			case d := <-ch:
				require.NoError(t, d.Ack(t.Context()))
			default:
				require.Fail(t, "a consumer waits beside an item")
			}
		}
	})
}

// TestPriorityOfNewerReleaseIsServed: it has more than ten.
func TestPriorityOfNewerReleaseIsServed(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("plain")
		require.NoError(t, a.Put(t.Context(), "nine", WithPriority(9)))
		item, ops := putTarget(a.engine.store.nodes, 12, 0)
		item.data = append([]byte{1, 11}, `{"prio":12}twelve`...)
		require.NoError(t, a.engine.put(t.Context(), &writeRequest{ops: ops, items: []newItem{item}, adds: 1}))
		require.Equal(t, []string{"twelve", "nine", "plain"}, a.drain(3))
		require.Empty(t, a.dead())
	})
}

// TestSegmentClosedByHandIsFollowedByNext: an operator has touched the open one, which once made
// everybody ask for ever.
func TestSegmentClosedByHandIsFollowedByNext(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("zero")
		a.drain(1)
		got := a.takeInBackground()
		time.Sleep(time.Second)
		_, err := p.client.Set(t.Context(), testPath+"/items/0000000000", []byte("by hand"), framework.AnyVersion)
		require.NoError(t, err)
		a.link.Delay(time.Millisecond)
		p.link.Delay(time.Millisecond)
		before := w.requests()
		time.Sleep(time.Second)
		p.put("one", "two")
		a.ack(<-got)
		require.Equal(t, []string{"two"}, a.drain(1))
		time.Sleep(time.Second)
		require.LessOrEqual(t, w.requests()-before, int64(60))
	})
}

func TestCountingDelayedItemsReadsManyAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p")
		for i := range 300 {
			require.NoError(t, p.Put(t.Context(), "x", WithDelay(time.Duration(i+60)*time.Second)))
		}
		before := w.requests()
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 300, n)
		require.LessOrEqual(t, w.requests()-before, int64(12))
	})
}

// TestUnwantedReturnedItemGoesBackSoon: its consumer has drawn it again for its next Take, which
// does not come.
func TestUnwantedReturnedItemGoesBackSoon(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a", WithMaxInFlight(2)), w.member("b"), w.member("p")
		p.put(names(0, 3)...)
		require.NoError(t, a.take().Nack(t.Context(), 0, nil)) // makes the lane
		d := a.take()
		other := a.take()
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		began := time.Now()
		again := b.take()
		if again.Value != d.Value {
			b.ack(again)
			again = b.take()
		}
		require.Equal(t, d.Value, again.Value)
		require.Less(t, time.Since(began), time.Second)
		b.ack(again)
		a.ack(other)
	})
}
