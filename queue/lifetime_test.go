package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTakeContinuesAfterSessionLoss: the wait in line ends with its session's context, which was
// once told to whoever called Take.
func TestTakeContinuesAfterSessionLoss(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order), w.member("b", order)
		a.put("x")
		first := a.take()
		_, err := b.Len(within(t, time.Minute)) // connected
		require.NoError(t, err)
		b.link.Delay(3 * time.Second)
		got := make(chan *Delivery[string], 1)
		go func() {
			d, err := b.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- d
		}()
		time.Sleep(4 * time.Second) // on its way into the line
		b.link.Cut()
		time.Sleep(time.Minute)
		b.link.Delay(0)
		b.link.Heal()
		time.Sleep(time.Minute)
		a.ack(first)
		a.put("y")
		require.NoError(t, a.Close(t.Context()))
		d := <-got
		require.NotNil(t, d)
		require.Equal(t, "y", d.Value)
		b.ack(d)
	})
}

// TestTicketWithLostReplyIsGivenBackAtClose: it once lasted until the session ended, and its item
// was nobody's.
func TestTicketWithLostReplyIsGivenBackAtClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		a.put("x")
		a.ack(a.take())
		time.Sleep(time.Minute) // it lingers no more, and keeps no ticket
		a.link.Delay(10 * time.Millisecond)
		drawn := make(chan struct{}, 100)
		stop := w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMulti && creates("/tickets/")(r) {
				drawn <- struct{}{}
			}
		})
		defer stop()
		done := make(chan error, 1)
		go func() {
			_, err := a.Take(within(t, time.Hour))
			done <- err
		}()
		<-drawn // the answer is on its way
		a.link.Cut()
		closing := make(chan error, 1)
		go func() { closing <- a.Close(within(t, time.Minute)) }()
		time.Sleep(timeout / 4)
		a.link.Heal()
		require.Error(t, <-done)
		require.NoError(t, <-closing)
		b.put("y")
		d, err := b.Take(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, "y", d.Value)
		b.ack(d)
	})
}

func TestConcurrentClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("x")
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := a.Close(within(t, time.Minute)); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	})
}

// stopped is the clock of a process that is stopped: when it goes on, time has passed, and no timer
// has fired yet.
type stopped struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *stopped) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

func TestDeliveryContextEndsAtOnceAfterProcessPause(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		clock := &stopped{Clock: clock.Time()}
		client := w.Member(t, "a", config, testclock.WithClock(clock)).Client
		q := New(client, testPath, codec.Text(), order)
		require.NoError(t, q.Put(t.Context(), "x"))
		d, err := q.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Context().Err())
		clock.ahead.Store(int64(timeout))
		require.Error(t, d.Context().Err())
		require.ErrorIs(t, context.Cause(d.Context()), framework.ErrSessionLost)
		require.NoError(t, client.Close(t.Context()))
		require.NoError(t, q.Close(t.Context()))
	})
}

// TestEndedDeliveryIsNotHandedOutAfterProcessPause: it was claimed ahead. The process goes on, and
// calls Take before any of its alarms has rung.
func TestEndedDeliveryIsNotHandedOutAfterProcessPause(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		clock := &stopped{Clock: clock.Time()}
		client := w.Member(t, "a", config, testclock.WithClock(clock)).Client
		q := New(client, testPath, codec.Text(), order, WithMaxInFlight(3), WithPrefetch(2), WithIdleTimeout(time.Hour))
		for _, v := range names(0, 3) {
			require.NoError(t, q.Put(t.Context(), v))
		}
		_, err := q.Take(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		clock.ahead.Store(int64(timeout))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		got, err := q.Take(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "%+v", got)
		require.NoError(t, client.Close(t.Context()))
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestLostSessionIsReplacedAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a"), w.member("p")
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan string, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				d, err := a.Take(ctx)
				if err != nil {
					return
				}
				_ = d.Ack(ctx)
				taken <- d.Value
			}
		})
		var last time.Duration
		for range 14 {
			time.Sleep(time.Hour)
			s, err := a.client.Session(t.Context())
			require.NoError(t, err)
			require.NoError(t, w.Expire(s.ID()))
			time.Sleep(200 * time.Millisecond)
			p.put("x")
			began := time.Now()
			<-taken
			last = time.Since(began)
		}
		cancel()
		wg.Wait()
		require.Less(t, last, time.Second)
	})
}
