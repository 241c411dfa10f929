package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestItemsComeOutInOrder(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put(names(0, 30)...)
		require.Equal(t, names(0, 30), a.drain(30))
		a.requireNone()
	})
}

func TestConsumerWaitsForItems(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		got := make(chan string)
		go func() {
			for range 10 {
				d := b.take()
				b.ack(d)
				got <- d.Value
			}
		}()
		for _, v := range names(0, 10) {
			time.Sleep(time.Second)
			a.put(v)
			require.Equal(t, v, <-got)
		}
	})
}

func TestSegmentsRollAndAreRemoved(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, segmentSize(5)), w.member("b", order, segmentSize(5))
		a.put(names(0, 33)...)
		require.Len(t, w.Children(testPath+"/items"), 7)
		require.Equal(t, names(0, 33), b.drain(33))
		a.put(names(33, 50)...)
		require.Equal(t, names(33, 50), b.drain(17))
		a.put("last")
		b.drain(1)
		time.Sleep(time.Minute)
		require.Len(t, w.Children(testPath+"/items"), 1, "only the open one is left")
		require.NoError(t, b.Close(t.Context()))
		require.Empty(t, w.Children(testPath+"/tickets/items/"+w.Children(testPath + "/tickets/items")[0]))
	})
}

func TestBatchStaysTogether(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, segmentSize(4))
		require.NoError(t, a.PutBatch(t.Context(), names(0, 10)))
		require.NoError(t, a.PutBatch(t.Context(), names(10, 20)))
		require.Equal(t, names(0, 20), a.drain(20))
	})
}

func TestAsynchronousPutsKeepTheirOrderAndShareTransactions(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", segmentSize(100))
		a.put("first")
		before := w.Requests()[zktest.OpMulti]
		a.link.Delay(10 * time.Millisecond) // no answer arrives before all puts have begun
		var pending []*Pending
		for _, v := range names(0, 1000) {
			pending = append(pending, a.PutAsync(t.Context(), v))
		}
		for _, p := range pending {
			require.NoError(t, p.Wait(t.Context()))
		}
		require.Less(t, w.Requests()[zktest.OpMulti]-before, int64(10))
		require.Equal(t, append([]string{"first"}, names(0, 1000)...), a.drain(1001))
	})
}

func TestItemOfDeadConsumerComesBack(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b, c := w.member("a", order), w.member("b", order), w.member("c", order)
		a.put(names(0, 3)...)
		lost := b.take()
		require.Equal(t, 1, lost.Attempt)
		b.link.BlackHole(true, true)
		d := c.take()
		if strings.HasSuffix(t.Name(), "parallel") {
			require.Equal(t, "item 1", d.Value)
			c.ack(d)
			require.Equal(t, []string{"item 2"}, c.drain(1))
			d = c.take()
		}
		require.Equal(t, "item 0", d.Value)
		require.Equal(t, 2, d.Attempt)
		require.Error(t, lost.Context().Err(), "it ended before")
		c.ack(d)
		b.link.Heal()
		require.ErrorIs(t, lost.Ack(t.Context()), ErrLost)
	})
}

func TestNackedItemIsFirst(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put(names(0, 3)...)
		d := a.take()
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("not now")))
		require.ErrorIs(t, context.Cause(d.Context()), ErrSettled)
		require.ErrorIs(t, d.Ack(t.Context()), ErrSettled)
		d = a.take()
		require.Equal(t, "item 0", d.Value)
		require.Equal(t, 2, d.Attempt)
		a.ack(d)
		require.Equal(t, names(1, 3), a.drain(2))
	})
}

func TestCloseGivesOpenDeliveriesBack(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, WithMaxInFlight(4), WithPrefetch(4)), w.member("b", order)
		a.put(names(0, 3)...)
		open := a.take()
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, context.Cause(open.Context()), errClosed)
		require.ErrorIs(t, open.Ack(t.Context()), ErrLost)
		_, err := a.Take(t.Context())
		require.ErrorIs(t, err, errClosed)
		require.ErrorIs(t, a.Put(t.Context(), "x"), errClosed)
		got := b.drain(3)
		slices.Sort(got)
		require.Equal(t, names(0, 3), got)
		b.requireNone()
	})
}

// TestTicketGivenUpEarlyLosesNoItem: the gap that a consumer leaves when it goes before its item
// has come.
func TestTicketGivenUpEarlyLosesNoItem(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		a.put("zero")
		require.Equal(t, []string{"zero"}, b.drain(1))
		b.requireNone() // holds the ticket of the next item
		got := make(chan string, 1)
		go func() { got <- c.drain(1)[0] }()
		synctest.Wait()
		require.NoError(t, b.Close(t.Context()))
		a.put("one")
		select {
		case v := <-got:
			require.Equal(t, "one", v)
		case <-time.After(time.Minute):
			t.Fatal("the item was lost sight of")
		}
		a.put("two")
		require.Equal(t, []string{"two"}, c.drain(1))
	})
}

// TestIdleTimeoutGivesTicketBack: it stays in the process, and takes no more.
func TestIdleTimeoutGivesTicketBack(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b, c := w.member("a", order), w.member("b", order), w.member("c", order)
		a.put("zero")
		require.Equal(t, []string{"zero"}, b.drain(1))
		_, err := b.Take(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.put("one")
		require.Equal(t, []string{"one"}, c.drain(1), "after a while")
		time.Sleep(time.Second)
		require.Equal(t, 1, len(w.Children(testPath+"/lock")), "b is no consumer any more")
		a.put("two")
		c.drain(1)
	})
}

func TestPutIsStoredOnceAfterLostReply(t *testing.T) {
	for _, how := range []string{"reset", "session lost"} {
		t.Run(how, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				a.put("first")
				fault := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: creates("/items/")})
				if how == "session lost" {
					go func() {
						<-fault.Hit()
						a.link.Cut()
						time.Sleep(15 * time.Second)
						a.link.Heal()
					}()
				}
				require.NoError(t, a.Put(within(t, time.Minute), "second"))
				a.put("third")
				require.Equal(t, []string{"first", "second", "third"}, b.drain(3))
				b.requireNone()
			})
		})
	}
}

// creates matches transactions that create below a directory of the queue's.
func creates(below string) func(zktest.Request) bool {
	return func(r zktest.Request) bool {
		return slices.ContainsFunc(r.Parts, func(p zktest.Request) bool {
			return p.Op == zktest.OpCreate && strings.Contains(p.Path, below)
		})
	}
}

func deletes(below string) func(zktest.Request) bool {
	return func(r zktest.Request) bool {
		return slices.ContainsFunc(r.Parts, func(p zktest.Request) bool {
			return p.Op == zktest.OpDelete && strings.Contains(p.Path, below)
		})
	}
}

func TestAckIsSettledAfterLostReply(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put(names(0, 2)...)
		d := a.take()
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: deletes("/items/")})
		a.ack(d)
		require.Equal(t, names(1, 2), a.drain(1))
		a.requireNone()
	})
}

func TestTicketIsFoundAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put(names(0, 2)...)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: creates("/tickets/")})
		require.Equal(t, names(0, 2), a.drain(2))
	})
}

func TestPutIsWithdrawnWhileDisconnected(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("first")
		a.link.Cut()
		time.Sleep(time.Minute) // the session is lost
		err := a.Put(within(t, time.Second), "second")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, errUnknown)
		a.link.Heal()
		a.put("third")
		require.Equal(t, []string{"first", "third"}, a.drain(2))
	})
}

func TestOtherOrderIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithOrder(Parallel)), w.member("b", WithOrder(Strict))
		a.put("x")
		_, err := b.Take(within(t, time.Minute))
		require.ErrorIs(t, err, errMismatch)
		require.ErrorContains(t, err, "the stored order is parallel, given is strict")
		require.ErrorIs(t, b.Put(within(t, time.Minute), "y"), errMismatch)
	})
}

func TestPathOfAnotherRecipeIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/locks"))
		require.ErrorIs(t, a.Put(within(t, time.Minute), "x"), errNotQueue)
		_, err := a.Take(within(t, time.Minute))
		require.ErrorIs(t, err, errNotQueue)
	})
}

func TestEmptyNodeBecomesAQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath))
		a.put("x")
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}

func TestForeignNodesAmongItemsAndTickets(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("one")
		for _, dir := range []string{"/items/0000000000/", "/tickets/items/0000000000/"} {
			require.NoError(t, a.client.Create(t.Context(), testPath+dir+"foreign", nil, framework.Persistent))
			require.NoError(t, a.client.Create(t.Context(), testPath+dir+"i-12", nil, framework.Persistent))
		}
		a.put("two", "three")
		got := a.drain(3)
		slices.Sort(got)
		require.Equal(t, []string{"one", "three", "two"}, got)
	})
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		err := a.Put(t.Context(), strings.Repeat("x", queuelayout.MaxItem))
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.ErrorContains(t, err, "500002 bytes, at most 500000")
		require.ErrorIs(t, a.PutBatch(t.Context(), nil), errOption)
		require.ErrorIs(t, a.PutBatch(t.Context(), names(0, maxBatch+1)), framework.ErrTooLarge)
		require.Empty(t, w.Children("/queues"), "nothing was sent")
		for _, o := range []Option{WithMaxInFlight(0), WithPrefetch(-1), WithIdleTimeout(0), WithOrder("some")} {
			q := New(a.client, testPath, codec.Text(), o)
			require.ErrorIs(t, q.Put(t.Context(), "x"), errOption)
			_, err := q.Take(t.Context())
			require.ErrorIs(t, err, errOption)
		}
		require.ErrorIs(t, New(a.client, "relative", codec.Text()).Put(t.Context(), ""), framework.ErrInvalid)
		require.ErrorIs(t, New(a.client, "/", codec.Text()).Put(t.Context(), ""), framework.ErrInvalid)
		require.ErrorIs(t, New[string](nil, "/x", codec.Text()).Put(t.Context(), ""), errOption)
		require.ErrorIs(t, New[string](a.client, "/x", nil).Put(t.Context(), ""), errOption)
		require.ErrorIs(t, New(a.client, "/x", codec.JSON[func()]()).Put(t.Context(), func() {}), errCodec)
		a.put("x")
		require.ErrorIs(t, a.take().Nack(t.Context(), -1, nil), errOption)
	})
}

func TestMessagesEndsWithContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put(names(0, 3)...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		for d, err := range a.Deliveries(ctx) {
			require.NoError(t, err)
			got = append(got, d.Value)
			a.ack(d)
			if len(got) == 3 {
				cancel()
			}
		}
		require.Equal(t, names(0, 3), got)
	})
}
