package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
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

func TestPriorityItemsGoFirst(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, segmentSize(3))
		for i := range 5 {
			for _, priority := range []int{0, 2, 9, 1} {
				require.NoError(t, a.Put(t.Context(), fmt.Sprintf("%d.%d", priority, i), WithPriority(priority)))
			}
		}
		got := a.drain(20)
		require.True(t, slices.IsSortedFunc(got, func(x, y string) int {
			if c := strings.Compare(y[:1], x[:1]); c != 0 {
				return c
			}
			return strings.Compare(x, y)
		}), "%v", got)
		a.requireNone()
	})
}

func TestPriorityItemWakesIdleConsumer(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		for i := range 5 {
			got := make(chan string, 1)
			go func() { got <- b.drain(1)[0] }()
			time.Sleep(time.Second)
			require.NoError(t, a.Put(t.Context(), fmt.Sprint(i), WithPriority(5)))
			require.Equal(t, fmt.Sprint(i), <-got)
		}
	})
}

func TestDelayedItemsComeWhenTheyAreDue(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, segmentSize(2))
		began := time.Now()
		for _, s := range []int{5000, 90, 10, 10, 10} {
			require.NoError(t, a.Put(t.Context(), fmt.Sprint(s), WithDelay(time.Duration(s)*time.Second)))
		}
		a.put("0")
		for _, want := range []int{0, 10, 10, 10, 90, 5000} {
			d, err := a.Take(within(t, 2*time.Hour))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(want), d.Value)
			require.Equal(t, 1, d.Attempt)
			late := time.Since(began) - time.Duration(want)*time.Second
			require.True(t, late >= 0 && late < 3*time.Second, "%v", late)
			a.ack(d)
		}
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestNackWithDelay(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put(names(0, 2)...)
		d := a.take()
		began := time.Now()
		require.NoError(t, d.Nack(t.Context(), 30*time.Second, nil))
		if strings.HasSuffix(t.Name(), "parallel") {
			require.Equal(t, names(1, 2), a.drain(1), "the one behind goes on")
		}
		d = a.take()
		require.Equal(t, "item 0", d.Value)
		require.Equal(t, 2, d.Attempt)
		require.GreaterOrEqual(t, time.Since(began), 30*time.Second)
		a.ack(d)
	})
}

func TestDeadLetters(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxAttempts(3), segmentSize(2))
		a.put("poison", "good")
		for attempt := range 3 {
			d := a.take()
			require.Equal(t, "poison", d.Value)
			require.Equal(t, attempt+1, d.Attempt)
			require.NoError(t, d.Nack(t.Context(), 0, fmt.Errorf("failure %d", attempt+1)))
		}
		require.Equal(t, []string{"good"}, a.drain(1))
		letters := a.dead()
		require.Len(t, letters, 1)
		require.Equal(t, "poison", string(letters[0].Data))
		require.Equal(t, "failure 3", letters[0].LastError)
		require.Equal(t, 3, letters[0].Attempts)
		n, err := a.Requeue(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		d := a.take()
		require.Equal(t, "poison", d.Value)
		require.Equal(t, 1, d.Attempt)
		a.ack(d)
		require.Empty(t, a.dead())
	})
}

// TestPurgeOfOneLetter removes one dead letter of three and leaves the others.
func TestPurgeOfOneLetter(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxAttempts(1))
		a.put("first", "second", "third")
		for range 3 {
			require.NoError(t, a.take().Nack(t.Context(), 0, errors.New("fails")))
		}
		second := a.dead()[1]
		n, err := a.PurgeLetters(t.Context(), second.Node)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = a.PurgeLetters(t.Context(), second.Node)
		require.NoError(t, err)
		require.Zero(t, n, "it has gone")
		segment := path.Dir(second.Node)
		for _, purge := range []func(context.Context, ...string) (int, error){a.PurgeLetters, a.RequeueLetters} {
			n, err = purge(t.Context(), segment, path.Dir(segment), testPath+"/items", "/nothing")
			require.NoError(t, err)
			require.Zero(t, n, "there are no dead letters")
			n, err = purge(t.Context())
			require.NoError(t, err)
			require.Zero(t, n, "no node is not all of them")
		}
		left := a.dead()
		require.Len(t, left, 2)
		require.NotContains(t, []string{left[0].Node, left[1].Node}, second.Node)
		n, err = a.PurgeDead(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

func (m *member) dead() (all []DeadLetter) {
	m.t.Helper()
	for letter, err := range m.DeadLetters(m.t.Context()) {
		require.NoError(m.t, err)
		all = append(all, letter)
	}
	return all
}

// TestPoisonItemTakesNoOtherItems: each consumer dies with the item in its hands.
func TestPoisonItemTakesNoOtherItems(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("before", "poison", "after", "last")
		for i := range 3 {
			opts := []Option{order, WithMaxAttempts(2)}
			if strings.HasSuffix(t.Name(), "strict") {
				opts = append(opts, WithPrefetch(2), WithMaxInFlight(4))
			}
			b := w.member(fmt.Sprint("b", i), opts...)
			for {
				d, err := b.Take(within(t, time.Minute))
				if errors.Is(err, context.DeadlineExceeded) {
					break
				}
				require.NoError(t, err)
				if d.Value == "poison" {
					b.kill()
					break
				}
				b.ack(d)
			}
		}
		letters := a.dead()
		require.Len(t, letters, 1)
		require.Equal(t, "poison", string(letters[0].Data))
		require.Equal(t, 2, letters[0].Attempts)
		require.Contains(t, letters[0].LastError, "attempt 2 ended without an answer")
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestAConsumerWithFewerAttemptsKeepsTheReason of the last failure in the dead letter.
func TestAConsumerWithFewerAttemptsKeepsTheReason(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxAttempts(5))
		a.put("poison")
		for range 2 {
			d, err := a.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Nack(t.Context(), 0, errors.New("no such address")))
		}
		require.NoError(t, a.Close(t.Context()))
		b := w.member("b", WithMaxAttempts(1))
		_, err := b.Take(within(t, time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		letters := b.dead()
		require.Len(t, letters, 1)
		require.Equal(t, 2, letters[0].Attempts)
		require.Contains(t, letters[0].LastError, "no such address")
	})
}

func TestUndecodableItemDoesNotBlockQueue(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("one")
		require.NoError(t, a.client.Create(t.Context(), testPath+"/items/0000000000/i-0000000001", []byte{9, 9},
			framework.Persistent))
		numbers := New(a.client, testPath, codec.JSON[int](), order)
		defer numbers.Close(context.Background())
		require.NoError(t, numbers.Put(t.Context(), 7))
		d, err := numbers.Take(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, 7, d.Value)
		require.NoError(t, d.Ack(t.Context()))
		synctest.Wait()
		letters := a.dead()
		require.Len(t, letters, 2)
		require.Equal(t, "one", string(letters[0].Data))
		require.Contains(t, letters[0].LastError, "decode")
		require.Equal(t, "\x09\x09", string(letters[1].Data))
		require.Contains(t, letters[1].LastError, "newer release")
		require.NoError(t, numbers.Close(t.Context()))
		n, err := a.RequeueLetters(t.Context(), letters[0].Node)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"one"}, a.drain(1))
	})
}

func TestCapacityIsNotExceeded(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		const capacity = 5
		a, b := w.member("a", order, WithCapacity(capacity)), w.member("b", order)
		most := 0
		stop := w.Observe(func(zktest.Request) {})
		defer stop()
		done := make(chan error, 40)
		for i := range 40 {
			p := []*member{a, b}[i%2]
			if i == 1 {
				time.Sleep(time.Second) // a has made the queue
			}
			go func() { done <- p.Put(context.Background(), fmt.Sprint(i)) }()
		}
		for range 40 {
			synctest.Wait()
			n, err := a.Len(t.Context())
			require.NoError(t, err)
			most = max(most, n)
			a.drain(1)
		}
		require.Equal(t, capacity, most)
		for range 40 {
			require.NoError(t, <-done)
		}
		a.requireNone()
	})
}

func TestPutFailsWhenFull(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithCapacity(3), WithFailWhenFull())
		a.put(names(0, 3)...)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull)
		require.ErrorIs(t, a.PutBatch(t.Context(), names(0, 4)), ErrFull)
		require.ErrorIs(t, a.PutAsync(t.Context(), "x").Wait(t.Context()), ErrFull)
		d := a.take()
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull, "an item that is being worked on counts")
		a.ack(d)
		a.put("x")
		b := w.member("b", WithCapacity(4))
		require.ErrorIs(t, b.Put(t.Context(), "y"), errMismatch)
		require.ErrorContains(t, b.Put(t.Context(), "y"), "the stored capacity is 3, given is 4")
		c := w.member("c")
		ctx := within(t, time.Second)
		require.ErrorIs(t, c.Put(ctx, "y"), context.DeadlineExceeded, "it waits")
		n, err := a.Purge(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n)
		time.Sleep(time.Second) // c has left the line
		a.put(names(0, 3)...)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull)
	})
}

func TestDedupRefusesDuplicateInWindow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithDedup(time.Minute)), w.member("b")
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
		require.ErrorIs(t, a.Put(t.Context(), "x", WithID("1")), ErrDuplicate)
		require.ErrorIs(t, b.Put(t.Context(), "x", WithID("1")), ErrDuplicate)
		d := b.take()
		require.Equal(t, "1", d.ID)
		b.ack(d)
		time.Sleep(50 * time.Second)
		require.ErrorIs(t, a.Put(t.Context(), "x", WithID("1")), ErrDuplicate, "also when it was taken")
		require.NoError(t, a.Put(t.Context(), "y", WithID("2")))
		time.Sleep(50 * time.Second)
		require.NoError(t, a.Put(t.Context(), "z", WithID("3")), "opens another bucket")
		require.ErrorIs(t, b.Put(t.Context(), "y", WithID("2")), ErrDuplicate)
		time.Sleep(70 * time.Second)
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")), "it is forgotten")
		time.Sleep(time.Second)
		require.Len(t, w.Children(testPath+"/ids"), 2, "and gone")
		b.drain(3)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: creates("/items/")})
		require.NoError(t, a.Put(t.Context(), "x", WithID("4")), "a lost reply is no duplicate")
		b.drain(1)
		require.ErrorIs(t, a.PutBatch(t.Context(), names(0, 2), WithID("5")), errOption)
	})
}

func TestPausedQueueHandsOutNoItems(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("zero")
		a.drain(1)
		require.NoError(t, a.Pause(t.Context()))
		require.NoError(t, a.Pause(t.Context()))
		paused, err := a.Paused(t.Context())
		require.NoError(t, err)
		require.True(t, paused)
		time.Sleep(time.Second)
		a.put("one")
		a.requireNone()
		got := make(chan string, 1)
		go func() { got <- a.drain(1)[0] }()
		time.Sleep(time.Second)
		require.NoError(t, a.Resume(t.Context()))
		require.NoError(t, a.Resume(t.Context()))
		require.Equal(t, "one", <-got)
	})
}

func TestPurgeRemovesPresentItems(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, segmentSize(4))
		a.put(names(0, 10)...)
		require.NoError(t, a.Put(t.Context(), "urgent", WithPriority(3)))
		require.NoError(t, a.Put(t.Context(), "later", WithDelay(time.Hour)))
		open := a.take()
		require.Equal(t, "urgent", open.Value)
		counts, err := a.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{Items: 11, Delayed: 1}, counts)
		n, err := a.Purge(t.Context())
		require.NoError(t, err)
		require.Equal(t, 12, n)
		require.ErrorIs(t, open.Ack(t.Context()), ErrLost)
		a.put(names(20, 25)...)
		require.Equal(t, names(20, 25), a.drain(5))
		a.requireNone()
	})
}

// TestPeekFindsItemThatIsReturnedMeanwhile: it had listed the returned items before the item came
// there, and its segment afterwards.
func TestPeekFindsItemThatIsReturnedMeanwhile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p")
		a.put("x")
		d := a.take()
		_, err := p.Len(t.Context()) // finds the queue
		require.NoError(t, err)
		p.link.Delay(slow)
		returned := make(chan error, 1)
		w.beforeRequest(p, zktest.OpGetChildren2, testPath+"/items", func() { returned <- d.Nack(t.Context(), 0, nil) })
		item, err := p.Peek(within(t, time.Minute))
		require.NoError(t, <-returned)
		require.NoError(t, err)
		require.Equal(t, "x", item.Value)
	})
}

func TestPeekReturnsFirstItem(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		_, err := a.Peek(t.Context())
		require.ErrorIs(t, err, ErrEmpty)
		a.put(names(0, 2)...)
		v, err := a.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "item 0", v.Value)
		require.NoError(t, a.Put(t.Context(), "urgent", WithPriority(1)))
		v, err = a.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "urgent", v.Value)
	})
}

// TestNewItemsWakeOneConsumerEach: 50 idle consumers, and the requests that an item makes them
// send.
func TestNewItemsWakeOneConsumerEach(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("zero")
		got := make(chan string)
		for i := range 50 {
			m := w.member(fmt.Sprint("c", i))
			go func() {
				for d := range m.Deliveries(t.Context()) {
					got <- d.Value
					<-t.Context().Done()
				}
			}()
		}
		<-got
		time.Sleep(time.Second)
		reads := func() int64 {
			r := w.Requests()
			return r[zktest.OpGetData] + r[zktest.OpExists] + r[zktest.OpGetChildren2] + r[zktest.OpGetChildren]
		}
		before := reads()
		for _, v := range names(0, 10) {
			a.put(v)
			<-got
		}
		require.LessOrEqual(t, reads()-before, int64(20))
	})
}

func TestForeignRecordsAreRefused(t *testing.T) {
	for data, want := range map[string]error{
		`{"v":3,"recipe":"queue","order":"strict"}`:               framework.ErrNewer,
		`{"v":1,"recipe":"queue","order":"strict"}`:               errNotQueue,
		`{"v":2,"recipe":"queue","order":"some"}`:                 errNotQueue,
		`{"v":2,"recipe":"queue","order":"strict","capacity":-1}`: errNotQueue,
		`{"v":1,"declared":3}`:                                    errNotQueue,
		"10.0.0.1":                                                errNotQueue,
	} {
		_, err := queuelayout.DecodeRecord([]byte(data))
		require.ErrorIs(t, err, want, data)
	}
}

func TestInvalidPutOptionsAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		for _, o := range []PutOption{WithPriority(-1), WithPriority(10), WithDelay(-1),
			WithDelay(queuelayout.MaxDelay + 1),
			WithID(""), WithID(strings.Repeat("x", maxID+1))} {
			require.ErrorIs(t, a.Put(t.Context(), "x", o), errOption)
		}
		for _, o := range []Option{WithCapacity(0), WithCapacity(-1), WithMaxAttempts(0), WithDedup(0),
			WithDedup(time.Millisecond)} {
			require.ErrorIs(t, New(a.client, testPath, codec.Text(), o).Put(t.Context(), "x"), errOption)
		}
		require.Empty(t, w.Children("/queues"))
	})
}

func TestDeliveryHasFieldsOfItsItem(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.Put(t.Context(), "x", WithPriority(4)))
		d := a.take()
		require.Equal(t, 4, d.Priority)
		require.Empty(t, d.LastError)
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("no paper")))
		d = a.take()
		require.Equal(t, 4, d.Priority)
		require.Equal(t, "no paper", d.LastError)
		require.Equal(t, 2, d.Attempt)
		a.ack(d)
	})
}
