package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestExpiredItemIsDeadLetter(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithCapacity(3), WithFailWhenFull(), WithDedup(time.Hour))
		require.NoError(t, a.Put(t.Context(), "short", WithExpiry(10*time.Second), WithID("1")))
		require.NoError(t, a.Put(t.Context(), "long", WithExpiry(time.Hour)))
		require.NoError(t, a.Put(t.Context(), "delayed", WithExpiry(20*time.Second), WithDelay(12*time.Second),
			WithPriority(2)))
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull, "it takes room until a consumer meets it")
		require.Equal(t, []string{"long"}, a.drain(1))
		letters := a.dead()
		require.Len(t, letters, 1)
		require.Equal(t, "short", string(letters[0].Data))
		require.Equal(t, "expired", letters[0].LastError)
		require.Zero(t, letters[0].Attempts)
		require.ErrorIs(t, a.Put(t.Context(), "again", WithID("1")), ErrDuplicate, "its id is remembered")
		require.Equal(t, []string{"delayed"}, a.drain(1), "it comes in time")
		require.NoError(t, a.PutBatch(t.Context(), names(0, 3)), "all have left")
		a.drain(3)
		n, err := a.Requeue(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		time.Sleep(time.Hour)
		d := a.take()
		require.Equal(t, "short", d.Value, "what was requeued expires no more")
		require.Equal(t, 1, d.Attempt)
		a.ack(d)
	})
}

// TestReturnedItemThatExpiredIsDeadLetter, while an open delivery of it goes on.
func TestReturnedItemThatExpiredIsDeadLetter(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		require.NoError(t, a.Put(t.Context(), "acked", WithExpiry(10*time.Second)))
		d := a.take()
		time.Sleep(time.Minute)
		require.NoError(t, d.Context().Err())
		a.ack(d)
		require.NoError(t, a.Put(t.Context(), "given back", WithExpiry(10*time.Second)))
		require.NoError(t, a.take().Nack(t.Context(), 9*time.Second, nil))
		d = a.take()
		require.Equal(t, 2, d.Attempt)
		require.NoError(t, d.Nack(t.Context(), 9*time.Second, nil))
		a.requireNone()
		letters := a.dead()
		require.Len(t, letters, 1)
		require.Equal(t, 2, letters[0].Attempts)
	})
}

// TestPrefetchedItemExpires between its claim and the call of Take.
func TestPrefetchedItemExpires(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithPrefetch(8), WithMaxInFlight(8), WithIdleTimeout(time.Hour), WithDropExpired())
		a.put("first")
		d := a.take()
		for _, v := range names(0, 5) {
			require.NoError(t, a.Put(t.Context(), v, WithExpiry(time.Minute)))
		}
		a.put("last")
		time.Sleep(time.Hour)
		require.Equal(t, []string{"last"}, a.drain(1))
		a.ack(d)
		a.requireNone() // reads race: one may lie behind the last
		require.Empty(t, a.dead(), "they were dropped")
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestInvalidExpiriesAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.ErrorIs(t, a.Put(t.Context(), "x", WithExpiry(time.Millisecond)), errOption)
		require.ErrorIs(t, a.Put(t.Context(), "x", WithExpiry(queuelayout.MaxDelay+1)), errOption)
		require.ErrorIs(t, a.Put(t.Context(), "x", WithDelay(time.Minute), WithExpiry(time.Minute)), errOption)
		require.NoError(t, a.Put(t.Context(), "x", WithExpiry(queuelayout.MaxDelay)))
		require.ErrorIs(t, w.member("b", WithDeadExpiry(time.Millisecond)).Put(t.Context(), "x"), errOption)
	})
}

// TestOldDeadLettersAreRemoved by one consumer, a few at a time, and by the next one when it has
// died.
func TestOldDeadLettersAreRemoved(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		opts := []Option{order, WithMaxAttempts(1), WithDeadExpiry(time.Hour), WithMaxInFlight(100),
			WithIdleTimeout(24 * time.Hour), segmentSize(200)}
		a, b := w.member("a", opts...), w.member("b", opts...)
		bury := func(n int) {
			for range n {
				require.NoError(t, a.take().Nack(t.Context(), 0, nil))
			}
		}
		require.NoError(t, a.PutBatch(t.Context(), names(0, 700)))
		require.NoError(t, a.PutBatch(t.Context(), names(700, 710)))
		bury(700)
		first := time.Now()
		time.Sleep(30 * time.Minute)
		bury(10)
		require.Len(t, a.dead(), 710)
		_, err := a.RequeueLetters(t.Context(), a.dead()[0].Node)
		require.NoError(t, err)
		bury(1)
		go func() { _, _ = b.Take(within(t, 12*time.Hour)) }() // stands in line
		time.Sleep(time.Until(first.Add(time.Hour - time.Minute)))
		require.Len(t, a.dead(), 710)

		most := 0 // deletions of a round
		stop := w.Observe(func(r zktest.Request) {
			n := 0
			for _, p := range r.Parts {
				if deletes("/dead/")(zktest.Request{Parts: []zktest.Request{p}}) {
					n++
				}
			}
			most = max(most, n)
		})
		time.Sleep(2 * time.Minute)
		stop()
		require.Len(t, a.dead(), 11)
		require.Equal(t, expiredBatch, most)
		a.kill()
		time.Sleep(time.Hour)
		require.Empty(t, b.dead())
		segments, err := b.engine.store.nodes.Dead.ListSegments(t.Context(), must(b.client.Session(t.Context())))
		require.NoError(t, err)
		require.Len(t, segments, 1, fmt.Sprint(segments))
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
