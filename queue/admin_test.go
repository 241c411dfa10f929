package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func (m *member) length() int {
	m.t.Helper()
	n, err := m.Len(m.t.Context())
	require.NoError(m.t, err)
	return n
}

// TestSetCapacityWhileQueueIsInUse by members that were made with the old one, and go on.
func TestSetCapacityWhileQueueIsInUse(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, WithCapacity(2)), w.member("b", WithCapacity(2), WithFailWhenFull())
		a.put(names(0, 2)...)
		require.ErrorIs(t, b.Put(t.Context(), "x"), ErrFull)
		put := make(chan error, 2)
		for i := range 2 {
			go func() { put <- a.Put(within(t, time.Hour), fmt.Sprint("waits ", i)) }()
		}
		time.Sleep(time.Minute)
		require.NoError(t, w.member("operator").SetCapacity(t.Context(), 3))
		require.NoError(t, <-put)
		synctest.Wait()
		require.Equal(t, 3, a.length())
		require.NoError(t, b.SetCapacity(t.Context(), 5))
		require.NoError(t, <-put)
		time.Sleep(time.Second) // nobody stands in line any more
		require.NoError(t, b.Put(t.Context(), "x"))
		require.ErrorIs(t, b.Put(t.Context(), "y"), ErrFull)
		a.drain(5)
		require.NoError(t, b.SetCapacity(t.Context(), 1))
		a.put("only")
		require.ErrorIs(t, b.Put(t.Context(), "y"), ErrFull)
		require.Equal(t, []string{"only"}, a.drain(1))

		err := w.member("c", WithCapacity(2)).Put(t.Context(), "z")
		var mismatch *MismatchError
		require.ErrorAs(t, err, &mismatch)
		require.Equal(t, "1", mismatch.Stored)
		require.ErrorContains(t, err, "SetCapacity")
		require.NoError(t, w.member("d", WithCapacity(1)).Put(t.Context(), "z"))
	})
}

// TestSetCapacityLowerBlocksPutsUntilThereIsRoom, although producers had places ahead.
func TestSetCapacityLowerBlocksPutsUntilThereIsRoom(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		operator, consumer := w.member("operator", WithCapacity(400)), w.member("consumer")
		operator.put("the first")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 4)
		for i := range 4 {
			p := w.member(fmt.Sprint("p", i), WithFailWhenFull())
			p.put("first") // and takes places ahead
			p.link.Delay(time.Duration(i+1) * 7 * time.Millisecond)
			go func() {
				for ctx.Err() == nil {
					if err := p.Put(ctx, "x"); err != nil && !errors.Is(err, ErrFull) {
						done <- err
						return
					}
					time.Sleep(time.Millisecond)
				}
				done <- nil
			}()
		}
		for _, capacity := range []int{40, 120, 60, 200, 10} {
			time.Sleep(500 * time.Millisecond)
			require.NoError(t, operator.SetCapacity(t.Context(), capacity))
			before := operator.length()
			time.Sleep(time.Second)
			after := operator.length()
			require.LessOrEqual(t, after, max(before, capacity))
			n := max(0, after-capacity)
			consumer.drain(n)
			time.Sleep(time.Second)
			require.LessOrEqual(t, operator.length(), capacity)
			consumer.drain(capacity / 2)
		}
		cancel()
		for range 4 {
			if err := <-done; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
	})
}

func TestUnboundedQueueStaysUnbounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("x")
		err := a.SetCapacity(t.Context(), 5)
		require.ErrorIs(t, err, errOption)
		require.ErrorContains(t, err, "without a bound")
		require.ErrorIs(t, a.SetCapacity(t.Context(), 0), errOption)
		require.ErrorIs(t, a.SetCapacity(t.Context(), maxCapacity+1), errOption)
		require.ErrorIs(t, a.SetDedup(t.Context(), time.Millisecond), errOption)
	})
}

// TestSetDedupLongerWindowHoldsForOtherProducers: it must not forget ids as it would have.
func TestSetDedupLongerWindowHoldsForOtherProducers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithDedup(time.Minute)), w.member("b")
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
		time.Sleep(61 * time.Second)
		// in another bucket: the end of that one would forget the first
		require.NoError(t, a.Put(t.Context(), "x", WithID("0")))
		require.NoError(t, b.SetDedup(t.Context(), time.Hour))
		for i := range 5 {
			time.Sleep(3 * time.Minute)
			require.NoError(t, a.Put(t.Context(), "x", WithID(fmt.Sprint("other ", i))))
		}
		require.ErrorIs(t, a.Put(t.Context(), "x", WithID("1")), ErrDuplicate)
		require.ErrorIs(t, b.Put(t.Context(), "x", WithID("other 0")), ErrDuplicate)
		require.NoError(t, b.SetDedup(t.Context(), time.Second))
		for range 2 {
			time.Sleep(time.Minute)
			require.NoError(t, b.Put(t.Context(), "x", WithID(time.Now().String())))
		}
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
		require.ErrorContains(t, w.member("c", WithDedup(time.Minute)).Put(t.Context(), "x"), "SetDedup")
	})
}

func TestSetDedupOnQueueWithoutDedup(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b")
		require.ErrorIs(t, a.Put(t.Context(), "x", WithID("1")), errOption)
		require.NoError(t, b.SetDedup(t.Context(), time.Hour))
		require.NoError(t, a.Put(t.Context(), "x", WithID("1")), "it was told nothing")
		require.ErrorIs(t, b.Put(t.Context(), "x", WithID("1")), ErrDuplicate)
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}

// TestSetCapacityIsAppliedOnceAfterLostReply, and a change during an outage when that is over,
// unless its context ends.
func TestSetCapacityIsAppliedOnceAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithCapacity(5), WithFailWhenFull())
		a.put(names(0, 5)...)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool {
			return len(r.Parts) > 0 && r.Parts[0].Path == testPath+"/in"
		}})
		require.NoError(t, a.SetCapacity(t.Context(), 6))
		require.Equal(t, 5, a.length())
		a.link.BlackHole(true, true)
		require.ErrorIs(t, a.SetCapacity(within(t, time.Second), 7), context.DeadlineExceeded)
		time.AfterFunc(time.Minute, func() { a.link.BlackHole(false, false) }) // the session is lost
		require.NoError(t, a.SetCapacity(within(t, time.Hour), 8))
		a.put(names(5, 8)...)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull)
		n, _ := w.Node(testPath)
		require.Equal(t, `{"v":2,"recipe":"queue","order":"parallel","capacity":8}`, string(n.Data))
		a.drain(8)
		a.put(names(0, 8)...)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull)
	})
}

// TestBatchLargerThanLoweredCapacityFails: it waits for room that will never be there, and it must
// not keep others from theirs.
func TestBatchLargerThanLoweredCapacityFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a", WithCapacity(100)), w.member("b"), w.member("c")
		require.NoError(t, a.PutBatch(t.Context(), names(0, 100)))
		a.link.Delay(slow) // the queue is empty when a learns of the capacity
		large, behind, other := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { large <- a.PutBatch(within(t, time.Hour), names(100, 150)) }()
		time.Sleep(time.Minute)
		go func() { behind <- a.Put(within(t, time.Hour), "behind") }()
		time.Sleep(time.Minute)
		go func() { other <- b.Put(within(t, time.Hour), "other") }()
		time.Sleep(time.Minute)
		require.NoError(t, w.member("operator").SetCapacity(t.Context(), 20))
		c.drain(100)
		require.ErrorIs(t, <-large, ErrFull)
		require.NoError(t, <-behind)
		require.NoError(t, <-other)
		require.ElementsMatch(t, []string{"behind", "other"}, c.drain(2))
	})
}

// TestChangeOfQueueBeingDroppedMakesItAnew: the caller of Drop has died, and who changes the queue
// has known it before.
func TestChangeOfQueueBeingDroppedMakesItAnew(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, m *member) error{
		"capacity": func(t *testing.T, m *member) error { return m.SetCapacity(within(t, time.Minute), 7) },
		"window":   func(t *testing.T, m *member) error { return m.SetDedup(within(t, time.Minute), time.Hour) },
		"policy": func(t *testing.T, m *member) error {
			return m.SetRetry(within(t, time.Minute), RetryPolicy{Min: time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, c := w.member("a", WithCapacity(5)), w.member("b"), w.member("c")
				a.put("old")
				b.link.Delay(slow)
				w.beforeRequest(b, zktest.OpMulti, "", func() { b.link.Cut() })
				require.Error(t, b.Drop(within(t, 5*time.Second)))
				require.Contains(t, string(w.only(testPath)), "dropped")
				require.NoError(t, change(t, a))
				a.put("new")
				c.link.Delay(time.Millisecond)
				require.Equal(t, []string{"new"}, c.drain(1))
				require.NotContains(t, string(w.only(testPath)), "dropped")
			})
		})
	}
}
