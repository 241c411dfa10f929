package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestStrictNackDelayIsKept: the next consumer does not know it, whatever has ended the one
// before, and gets the item at once and first.
func TestStrictNackDelayIsKept(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *member){
		"closed":   func(t *testing.T, m *member) { require.NoError(t, m.Close(t.Context())) },
		"killed":   func(_ *testing.T, m *member) { m.kill() },
		"lingered": func(*testing.T, *member) {},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				strict := WithOrder(Strict)
				a, b := w.member("a", strict), w.member("b", strict)
				a.put(names(0, 2)...)
				require.NoError(t, a.take().Nack(t.Context(), time.Hour, nil))
				began := time.Now()
				end(t, a)
				d := b.take()
				require.Equal(t, "item 0", d.Value)
				require.Equal(t, 2, d.Attempt)
				require.Less(t, time.Since(began), 2*timeout)
				b.ack(d)
				require.Equal(t, names(1, 2), b.drain(1))
			})
		})
	}
}

// TestStrictNackedItemGoesAlone: not beside what is open, and not before somebody asks for it,
// whatever is to be claimed ahead: it may be what kills its consumers.
func TestStrictNackedItemGoesAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		opts := []Option{WithOrder(Strict), WithMaxInFlight(3), WithPrefetch(3)}
		a, b := w.member("a", opts...), w.member("b", opts...)
		a.put(names(0, 3)...)
		ds := []*Delivery[string]{a.take(), a.take(), a.take()}
		require.NoError(t, ds[0].Nack(t.Context(), 0, nil))
		_, err := a.Take(within(t, 10*time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.ack(ds[1])
		a.ack(ds[2])
		time.Sleep(time.Second)
		a.kill()
		d := b.take()
		require.Equal(t, "item 0", d.Value)
		require.Equal(t, 2, d.Attempt)
		b.ack(d)
	})
}

func TestStrictNackedItemsGoByPriority(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict), WithMaxInFlight(2))
		a.put("low")
		require.NoError(t, a.Put(t.Context(), "high", WithPriority(5)))
		high, low := a.take(), a.take()
		require.Equal(t, "low", low.Value)
		require.NoError(t, low.Nack(t.Context(), 0, nil))
		require.NoError(t, high.Nack(t.Context(), 0, nil))
		require.Equal(t, []string{"high", "low"}, a.drain(2))
	})
}

// TestStrictNackHoldsUpLaterItems: not what was claimed ahead either.
func TestStrictNackHoldsUpLaterItems(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict), WithMaxInFlight(5), WithPrefetch(5))
		a.put(names(0, 3)...)
		d := a.take()
		time.Sleep(time.Second)
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("again")))
		require.Equal(t, names(0, 3), a.drain(3))
	})
}

// TestStrictDelayedNackHoldsUpOnlyLaterItems: an urgent item goes before it, whether it comes
// before or after.
func TestStrictDelayedNackHoldsUpOnlyLaterItems(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict), WithIdleTimeout(2*time.Hour))
		urgent := func(value string, priority int) {
			require.NoError(t, a.Put(t.Context(), value, WithPriority(priority)))
		}
		urgent("5", 5)
		a.put("0")
		d := a.take()
		require.Equal(t, "5", d.Value)
		require.NoError(t, d.Nack(t.Context(), time.Hour, nil))
		began := time.Now()
		urgent("9", 9)
		urgent("4", 4)
		urgent("5 again", 5)
		require.Equal(t, []string{"9"}, a.drain(1))
		a.requireNone()
		urgent("6", 6)
		require.Equal(t, []string{"6"}, a.drain(1))
		for _, want := range []string{"5", "5 again", "4", "0"} {
			d, err := a.Take(within(t, 2*time.Hour))
			require.NoError(t, err)
			require.Equal(t, want, d.Value)
			require.GreaterOrEqual(t, time.Since(began), time.Hour)
			a.ack(d)
		}
	})
}

// TestNackEndsContextBeforeRedelivery: as soon as the servers have it back.
func TestNackEndsContextBeforeRedelivery(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				a.put("x")
				d := a.take()
				stood := make(chan error, 10)
				stop := w.Observe(func(r zktest.Request) {
					if r.Op == zktest.OpMulti && deletes("/tickets/")(r) {
						stood <- d.Context().Err()
					}
				})
				require.NoError(t, d.Nack(t.Context(), after, nil))
				stop()
				require.Error(t, <-stood)
			})
		})
	}
}

// TestReturnedItemCountsNoAttempt, and keeps the reason of a former failure.
func TestReturnedItemCountsNoAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxAttempts(2))
		a.put("x")
		require.NoError(t, a.take().Nack(t.Context(), 0, errors.New("why")))
		for range 5 {
			d := a.take()
			require.Equal(t, 2, d.Attempt)
			require.Equal(t, "why", d.LastError)
			require.NoError(t, d.Return(t.Context()))
			require.ErrorIs(t, d.Context().Err(), context.Canceled)
			require.ErrorIs(t, d.Ack(t.Context()), ErrSettled)
		}
		require.Equal(t, []string{"x"}, a.drain(1))
	})
}
