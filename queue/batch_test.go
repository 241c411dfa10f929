package queue

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

// changes are the paths of what is created, set or deleted from now on, until stop.
func (w *world) changes() (paths func() []string, stop func()) {
	var mu sync.Mutex
	var all []string
	stop = w.Observe(func(r zktest.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, part := range append(r.Parts, r) {
			switch part.Op {
			case zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer, zktest.OpSetData, zktest.OpDelete:
				all = append(all, part.Path)
			}
		}
	})
	return func() []string { mu.Lock(); defer mu.Unlock(); return all }, stop
}

// requireTryTakeEmpty checks that TryTake returns ErrEmpty.
func (m *member) requireTryTakeEmpty() {
	m.t.Helper()
	began := time.Now()
	d, err := m.TryTake(within(m.t, time.Minute))
	require.ErrorIs(m.t, err, ErrEmpty, "%+v", d)
	require.Less(m.t, time.Since(began), maxTryWait, "it has waited for an item")
}

func (m *member) tryTake() *Delivery[string] {
	m.t.Helper()
	d, err := m.TryTake(within(m.t, time.Minute))
	require.NoError(m.t, err)
	return d
}

func TestTryTakeTakesOnlyPresentItems(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b, p := w.member("a", order, WithMaxInFlight(2)), w.member("b", order), w.member("p", order)
		a.requireTryTakeEmpty()
		_, there := w.Node(testPath)
		require.False(t, there, "a look makes no queue")
		p.put(names(0, 3)...)
		d, e := a.tryTake(), a.tryTake()
		require.Equal(t, []string{"item 0", "item 1"}, []string{d.Value, e.Value})
		a.requireTryTakeEmpty() // its window is full
		a.ack(d)
		a.ack(e)
		require.Equal(t, "item 2", func() string { f := a.tryTake(); a.ack(f); return f.Value }())
		a.requireTryTakeEmpty()
		p.put("hand")
		f := a.tryTake()
		b.requireTryTakeEmpty() // it is in another's hand
		require.Len(t, w.Children(testPath+"/lock"), 1, "who finds nothing does not join the line")
		a.ack(f)
		require.NoError(t, p.Pause(t.Context()))
		synctest.Wait() // the consumers learn of it
		p.put("paused")
		a.requireTryTakeEmpty()
		require.NoError(t, p.Resume(t.Context()))
		a.ack(a.tryTake())
		require.NoError(t, p.Put(t.Context(), "later", WithDelay(time.Hour)))
		a.requireTryTakeEmpty()
		time.Sleep(time.Hour + 2*time.Second)
		a.ack(a.tryTake())
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(3)))
		a.ack(a.tryTake())
		a.requireTryTakeEmpty()
	})
}

// TestTryTakeSeesEarlierPuts: also by another client, and while the consumer has a ticket or reads
// ahead.
func TestTryTakeSeesEarlierPuts(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		for i := range 30 {
			p.put("x")
			a.ack(a.tryTake()) // it holds a ticket for the next one
			a.requireTryTakeEmpty()
			a.link.Delay(time.Duration(i) * time.Millisecond)
		}
	})
}

// TestTryTakeFindsItemsOfDeadConsumers: no consumer stands in line to return it.
func TestTryTakeFindsItemsOfDeadConsumers(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b, p := w.member("a", order), w.member("b", order), w.member("p", order)
		p.put("x")
		a.take()
		a.kill()
		b.requireTryTakeEmpty() // its session has not ended
		time.Sleep(time.Minute)
		d := b.tryTake()
		require.Equal(t, 2, d.Attempt)
		b.ack(d)
	})
}

// TestTryTakeOfEmptyQueueCreatesNoNode: neither TryTake nor a Take that ends soon.
func TestTryTakeOfEmptyQueueCreatesNoNode(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("x")
		p.drain(1)
		require.NoError(t, p.Put(t.Context(), "later", WithDelay(time.Hour)))
		time.Sleep(time.Minute)
		a.requireTryTakeEmpty() // learns the ensemble's time
		time.Sleep(time.Minute) // the consumers have gone home
		require.Empty(t, w.Children(testPath+"/lock"))
		written, stop := w.changes()
		defer stop()
		before := w.requests()
		for range 10 {
			a.requireTryTakeEmpty()
		}
		require.LessOrEqual(t, w.requests()-before, int64(10*5)) // a sync, a read, and two for what is kept for later
		for range 10 {
			_, err := a.Take(within(t, 50*time.Millisecond))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Empty(t, written())
	})
}

// TestTryTakeOfEmptyQueueCostsTwoRequests: the lists of segments are not read again.
func TestTryTakeOfEmptyQueueCostsTwoRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p", segmentSize(2))
		p.put(names(0, 7)...)
		p.drain(7)
		time.Sleep(time.Minute + 100*time.Millisecond)
		a.requireTryTakeEmpty()
		before := w.requests()
		for range 10 {
			a.requireTryTakeEmpty()
		}
		require.Equal(t, int64(20), w.requests()-before)
	})
}

// TestLostDrawLeavesNoTicket: an item that comes later goes to the consumer that waits for it.
func TestLostDrawLeavesNoTicket(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a"), w.member("b"), w.member("p")
		p.put("zero", "x")
		busy := b.take() // b is the recoverer
		_, err := a.Len(t.Context())
		require.NoError(t, err)
		a.link.Delay(10 * time.Millisecond)
		w.beforeRequest(a, zktest.OpGetData, testPath+"/lanes", func() { // a has seen an item, and stands in line
			if d, err := b.Take(t.Context()); err != nil || d.Ack(t.Context()) != nil {
				t.Error("no item", err)
			}
		})
		lost := make(chan error, 1)
		go func() {
			_, err := a.TryTake(within(t, time.Minute))
			lost <- err
		}()
		require.ErrorIs(t, <-lost, ErrEmpty)
		b.ack(busy)
		time.Sleep(time.Second)
		got := b.takeInBackground()
		time.Sleep(time.Second)
		p.put("y")
		began := time.Now()
		b.ack(<-got)
		require.Less(t, time.Since(began), time.Second)
	})
}

// removals counts the transactions that remove items, until stop.
func (w *world) removals() (count func() int, stop func()) {
	var n atomic.Int64
	stop = w.Observe(func(r zktest.Request) {
		for _, part := range r.Parts {
			if _, name := znode.Split(part.Path); part.Op == zktest.OpDelete && strings.HasPrefix(name, "i-") {
				n.Add(1)
				return
			}
		}
	})
	return func() int { return int(n.Load()) }, stop
}

func TestTakeBatch(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order, WithMaxInFlight(20)), w.member("p", order)
		_, err := a.TakeBatch(t.Context(), 0)
		require.ErrorIs(t, err, errOption)
		require.NoError(t, p.PutBatch(t.Context(), names(0, 50)))
		var got []string
		for _, want := range []int{20, 20, 10} {
			ds, err := a.TakeBatch(within(t, time.Minute), 30)
			require.NoError(t, err)
			require.Len(t, ds, want)
			for _, d := range ds {
				got = append(got, d.Value)
				require.Equal(t, 1, d.Attempt)
			}
			count, stop := w.removals()
			require.NoError(t, AckAll(t.Context(), ds...))
			stop()
			require.LessOrEqual(t, count(), 2, "acknowledgements share transactions")
			require.ErrorIs(t, AckAll(t.Context(), ds...), ErrSettled)
		}
		require.Equal(t, names(0, 50), got)
		go func() {
			time.Sleep(30 * time.Second)
			_ = p.Put(t.Context(), "late")
		}()
		ds, err := a.TakeBatch(within(t, time.Minute), 5)
		require.NoError(t, err, "it waits for the first")
		require.Len(t, ds, 1)
		require.NoError(t, ds[0].Nack(t.Context(), 0, nil))
		require.NoError(t, AckAll[string](t.Context()))
		_, err = a.TakeBatch(within(t, time.Hour), 5)
		require.NoError(t, err)
		_, err = a.TakeBatch(within(t, time.Minute), 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestAckAllSettlesEachDelivery: one of the items was purged meanwhile; and the reply is lost.
func TestAckAllSettlesEachDelivery(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order, WithMaxInFlight(4)), w.member("p", order)
		require.NoError(t, p.PutBatch(t.Context(), names(0, 4)))
		ds, err := a.TakeBatch(t.Context(), 4)
		require.NoError(t, err)
		require.Len(t, ds, 4)
		require.NoError(t, p.client.Delete(t.Context(), ds[1].Node(), framework.AnyVersion))
		fault := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		err = AckAll(t.Context(), ds...)
		<-fault.Hit()
		require.ErrorIs(t, err, ErrLost)
		require.ErrorContains(t, err, ds[1].Node())
		require.NotContains(t, err.Error(), ds[2].Node())
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestTryTakeEndsWithContextAndClose: the servers cannot be reached.
func TestTryTakeEndsWithContextAndClose(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("x")
		a.ack(a.tryTake())
		a.link.BlackHole(true, true)
		began := time.Now()
		_, err := a.TryTake(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), time.Second)
		ended := make(chan error, 1)
		go func() {
			_, err := a.TryTake(t.Context())
			ended <- err
		}()
		time.Sleep(time.Second)
		go func() { _ = a.Close(t.Context()) }()
		require.ErrorIs(t, <-ended, errClosed)
		_, err = a.TryTake(t.Context())
		require.ErrorIs(t, err, errClosed)
	})
}

// TestTryTakeContinuesAfterLostSession: it comes to a result on the next one.
func TestTryTakeContinuesAfterLostSession(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("x")
		a.ack(a.tryTake())
		a.link.Cut()
		p.put("y")
		go func() {
			time.Sleep(time.Minute)
			a.link.Heal()
		}()
		d, err := a.TryTake(within(t, 5*time.Minute))
		require.NoError(t, err)
		require.Equal(t, "y", d.Value)
		a.ack(d)
		a.requireTryTakeEmpty()
	})
}

func TestTryTakeDoesNotWaitInStrictLine(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		order := WithOrder(Strict)
		a, b, p := w.member("a", order), w.member("b", order, WithMaxInFlight(2)), w.member("p", order)
		p.put(names(0, 3)...)
		d := a.take()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := b.Take(ctx)
			ended <- err
		}()
		time.Sleep(time.Second)
		require.Len(t, w.Children(testPath+"/lock"), 2, "b stands in line")
		b.requireTryTakeEmpty()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		a.ack(d)
	})
}
