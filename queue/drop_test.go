package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestDroppedQueueIsMadeAnew: by its users, with the same record and without items.
func TestDroppedQueueIsMadeAnew(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p := w.member("p", order, WithCapacity(50), WithDedup(time.Minute), WithMaxAttempts(1), segmentSize(4))
		a, b := w.member("a"), w.member("b")
		p.put(names(0, 10)...)
		require.NoError(t, p.Put(t.Context(), "urgent", WithPriority(3), WithID("1")))
		require.NoError(t, p.Put(t.Context(), "later", WithDelay(time.Hour)))
		open := a.take()
		got := b.takeInBackground()
		time.Sleep(time.Second)
		before := w.only(testPath)
		require.NoError(t, p.Drop(t.Context()))
		require.NoError(t, p.Drop(t.Context()), "there is none, or it is new")
		require.ErrorIs(t, open.Ack(t.Context()), ErrLost)
		time.Sleep(time.Minute)
		require.NoError(t, p.Put(t.Context(), "new", WithID("1")))
		d := <-got
		require.NotNil(t, d)
		for d.Value != "new" { // b may have had one of the old items
			require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
			d = b.take()
		}
		require.Equal(t, 1, d.Attempt)
		b.ack(d)
		require.Equal(t, before, w.only(testPath))
		c, err := a.Counts(t.Context())
		require.NoError(t, err)
		require.Zero(t, c)
		require.NoError(t, p.PutBatch(t.Context(), names(0, 50)), "there is all the room")
	})
}

// TestInterruptedDropIsFinished: its caller has died. No put goes into the rest of the queue.
func TestInterruptedDropIsFinished(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p")
		p.put(names(0, 5)...)
		_, err := a.Len(t.Context())
		require.NoError(t, err)
		a.link.Delay(slow)
		w.beforeRequest(a, zktest.OpMulti, "", func() { a.link.Cut() }) // its first transaction that writes
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.Error(t, a.Drop(ctx))
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.NotZero(t, n, "it is there, in part")
		p.put("new")
		n, err = p.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"new"}, p.drain(1))
	})
}

// TestDropsRaceWithProducers: items put after the last Drop are there.
func TestDropsRaceWithProducers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		over, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		for i := range 4 {
			m := w.member(fmt.Sprint("m", i), WithCapacity(1000))
			m.put("x")
			m.link.Delay(time.Duration(i+1) * time.Millisecond)
			all.Go(func() {
				for i := 0; over.Err() == nil; i++ {
					if i%100 == 99 {
						require.NoError(t, m.Drop(t.Context()))
					} else {
						require.NoError(t, m.Put(t.Context(), "x", WithPriority(i%2)))
					}
				}
			})
		}
		all.Wait()
		last := w.member("last")
		require.NoError(t, last.Drop(t.Context()))
		last.put(names(0, 3)...)
		n, err := last.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
}

// TestQueueDeletedByHandIsRecreated: under its users, without Drop.
func TestQueueDeletedByHandIsRecreated(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("x")
		a.drain(1)
		got := make(chan *Delivery[string], 1)
		go func() { // as services do: a Take may be told that a part is missing
			for {
				d, err := a.Take(within(t, time.Hour))
				if err == nil {
					got <- d
					return
				}
				time.Sleep(time.Second)
			}
		}()
		time.Sleep(time.Second)
		var remove func(path string)
		remove = func(path string) {
			for _, name := range w.Children(path) {
				remove(path + "/" + name)
			}
			_ = p.client.Delete(t.Context(), path, framework.AnyVersion)
		}
		remove(testPath)
		time.Sleep(3 * time.Minute)
		w.member("fresh", order).put("new")
		d := <-got
		require.Equal(t, "new", d.Value)
		a.ack(d)
		p.put("more")
		a.drain(1)
	})
}

// TestPartlyDeletedQueueIsReported: and can be dropped.
func TestPartlyDeletedQueueIsReported(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.member("p")
		p.put("x")
		s, err := p.client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, removeTree(t.Context(), s, testPath+"/items"))
		a := w.member("a")
		_, err = a.Take(within(t, time.Minute))
		require.ErrorIs(t, err, errNotQueue)
		require.ErrorContains(t, err, "Drop removes the rest")
		require.NoError(t, a.Drop(t.Context()))
		a.put("new")
		require.Equal(t, []string{"new"}, a.drain(1))
	})
}

// TestWaitersOfDroppedQueueDoNotBlockPath: those who wait for a lock make its directory again, and
// the queue's node without a record.
func TestWaitersOfDroppedQueueDoNotBlockPath(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/lock"))
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/room"))
		a.put("x")
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}

// TestPutsThatWaitForRoomGoIntoNewQueue, when the full one is dropped: those of the first producer
// in line, and those behind it.
func TestPutsThatWaitForRoomGoIntoNewQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a", WithCapacity(3)), w.member("b"), w.member("p")
		a.put(names(0, 3)...)
		put := make(chan error, 4)
		for i, m := range []*member{a, a, b, b} {
			go func() { put <- m.Put(within(t, time.Hour), fmt.Sprint("new ", i)) }()
			time.Sleep(time.Second)
		}
		require.NoError(t, p.Drop(t.Context()))
		for range 3 {
			require.NoError(t, <-put)
		}
		time.Sleep(time.Minute)
		require.Empty(t, put, "there is room for three")
		require.Equal(t, 3, p.length())
		got := p.drain(3)
		require.NoError(t, <-put)
		require.ElementsMatch(t, []string{"new 0", "new 1", "new 2", "new 3"}, append(got, p.drain(1)...))
	})
}
