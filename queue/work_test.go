package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// working runs Work beside the test.
func (m *member) working(ctx context.Context, n int, handler Handler[string], opts ...WorkOption) chan error {
	ended := make(chan error, 1)
	go func() { ended <- m.Work(ctx, n, handler, opts...) }()
	return ended
}

// handled keeps what handlers were given.
type handled struct {
	mu  sync.Mutex
	all []string
}

func (h *handled) add(d *Delivery[string]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf("%s #%d %s", d.Value, d.Attempt, d.LastError))
}

func (h *handled) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.all...)
}

func TestWorkSettlesByHandlerResult(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithMaxAttempts(2)), w.member("p")
		p.put("good", "once", "panics", "goexit", "buried", "hopeless", "settles")
		var seen handled
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(ctx context.Context, d *Delivery[string]) error {
			seen.add(d)
			switch {
			case d.Value == "hopeless":
				return RetryAfter(0, errors.New("no hope"))
			case d.Value == "buried":
				return Permanent(errors.New("no use"))
			case d.Value == "settles":
				return d.Ack(ctx)
			case d.Value == "good" || d.Attempt > 1:
				return nil
			case d.Value == "panics":
				panic("help")
			case d.Value == "goexit":
				runtime.Goexit()
			}
			return fmt.Errorf("wrapped: %w", RetryAfter(time.Minute, errors.New("busy")))
		})
		time.Sleep(2 * time.Minute)
		cancel()
		require.NoError(t, <-ended)
		require.ElementsMatch(t,
			[]string{"good #1 ", "once #1 ", "once #2 wrapped: busy", "panics #1 ", "panics #2 panic: help",
				"goexit #1 ", "goexit #2 panic: it has ended its goroutine (runtime.Goexit)", "buried #1 ",
				"hopeless #1 ", "hopeless #2 no hope", "settles #1 "}, seen.list())
		var reasons []string
		for _, letter := range a.dead() {
			reasons = append(reasons, letter.LastError)
		}
		require.ElementsMatch(t, []string{"no use", "no hope"}, reasons)
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestWorkContinuesAfterPanic: in both orders the item comes again, and those behind it come.
func TestWorkContinuesAfterPanic(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put(names(0, 5)...)
		var done atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(_ context.Context, d *Delivery[string]) error {
			if d.Attempt == 1 {
				panic(d.Value)
			}
			if done.Add(1) == 5 {
				cancel()
			}
			return nil
		})
		require.NoError(t, <-ended)
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestWorkDrains: running handlers finish, and no more items are taken.
func TestWorkDrains(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, b := w.member("a", order, WithMaxInFlight(3)), w.member("b", order)
		a.put(names(0, 5)...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 2, func(ctx context.Context, d *Delivery[string]) error {
			time.Sleep(20 * time.Second)
			return ctx.Err()
		})
		time.Sleep(5 * time.Second)
		cancel()
		began := time.Now()
		require.NoError(t, <-ended)
		require.Equal(t, 15*time.Second, time.Since(began))
		require.NoError(t, a.Close(t.Context()))
		var left []string // in a parallel queue, what was given back comes in any order
		for range 3 {
			d := b.take()
			require.Equal(t, 1, d.Attempt)
			left = append(left, d.Value)
			b.ack(d)
		}
		require.ElementsMatch(t, names(2, 5), left)
		require.NoError(t, b.Work(ctx, 1, func(context.Context, *Delivery[string]) error { return nil }),
			"its context has ended")
	})
}

// TestWorkGraceEnds: the handler's context ends, its item is given back when it has returned, and
// not before.
func TestWorkGraceEnds(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		for name, ignores := range map[string]time.Duration{"obeys": 0, "ignores": time.Hour} {
			a, b := w.member("a "+name, order), w.member("b "+name, order)
			a.put("x")
			ctx, cancel := context.WithCancel(t.Context())
			var returned atomic.Bool
			ended := a.working(ctx, 1, func(ctx context.Context, d *Delivery[string]) error {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), errDraining) {
					t.Error(context.Cause(ctx))
				}
				time.Sleep(ignores)
				returned.Store(true)
				return nil // it is not believed
			}, WithGrace(10*time.Second))
			time.Sleep(time.Minute)
			cancel()
			began := time.Now()
			got := make(chan *Delivery[string], 1)
			go func() {
				d, err := b.Take(within(t, 2*time.Hour))
				if err != nil || !returned.Load() {
					t.Error("another consumer has the item while the handler works", err)
				}
				got <- d
			}()
			require.ErrorIs(t, <-ended, framework.ErrDraining)
			require.Equal(t, 10*time.Second+ignores, time.Since(began))
			require.NoError(t, a.Close(t.Context()))
			d := <-got
			require.Equal(t, 2, d.Attempt)
			b.ack(d)
			require.NoError(t, b.Close(t.Context()))
		}
	})
}

// TestProcessingTimeoutIsFailedAttempt: also if the handler ignores its context and returns nil in
// the end. Only one works on the item.
func TestProcessingTimeoutIsFailedAttempt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithMaxAttempts(2))
		a.put("x")
		var busy, most atomic.Int32
		var seen handled
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 3, func(ctx context.Context, d *Delivery[string]) error {
			seen.add(d)
			most.Store(max(most.Load(), busy.Add(1)))
			defer busy.Add(-1)
			began := time.Now()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), errProcessingTimeout) || time.Since(began) != time.Minute {
				t.Error(context.Cause(ctx), time.Since(began))
			}
			time.Sleep(10 * time.Minute)
			return nil
		}, WithProcessingTimeout(time.Minute))
		time.Sleep(time.Hour)
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, []string{"x #1 ", "x #2 processing took too long: 1m0s"}, seen.list())
		require.Equal(t, int32(1), most.Load())
		letters := a.dead()
		require.Len(t, letters, 1)
		require.Contains(t, letters[0].LastError, "processing took too long")
	})
}

// TestWorkContinuesAfterSessionLoss: the handler sees its context end, and the item comes again.
func TestWorkContinuesAfterSessionLoss(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a, p := w.member("a", order), w.member("p", order)
		p.put("x")
		var attempts []int
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(ctx context.Context, d *Delivery[string]) error {
			attempts = append(attempts, d.Attempt)
			if d.Attempt == 1 {
				a.link.Cut()
				<-ctx.Done()
				a.link.Heal()
				return nil // the delivery has ended: this is no acknowledgement
			}
			cancel()
			return nil
		})
		require.NoError(t, <-ended)
		require.Equal(t, []int{1, 2}, attempts)
		n, err := p.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestWorkAcknowledgesAfterLostReply: the item is gone, and is worked on once.
func TestWorkAcknowledgesAfterLostReply(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("x")
		var calls int
		var fault *zktest.Fault
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(context.Context, *Delivery[string]) error {
			calls++
			fault = w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/items/0000000000/i-",
				Func: zktest.Request.Writes})
			return nil
		})
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, <-ended)
		<-fault.Hit()
		require.Equal(t, 1, calls)
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestWorkDrainEndsWithoutServers: Work returns although the servers do not answer.
func TestWorkDrainEndsWithoutServers(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order)
		a.put("x")
		ctx, cancel := context.WithCancel(t.Context())
		began := make(chan struct{})
		ended := a.working(ctx, 1,
			func(context.Context, *Delivery[string]) error { close(began); a.link.Cut(); return nil },
			WithGrace(time.Second))
		<-began
		cancel()
		asked := time.Now()
		<-ended
		require.LessOrEqual(t, time.Since(asked), time.Second+a.client.Config().CleanupTimeout)
	})
}

func TestWorkRefusesInvalidArguments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		nothing := func(context.Context, *Delivery[string]) error { return nil }
		for _, err := range []error{a.Work(t.Context(), 0, nothing), a.Work(t.Context(), DefaultMaxInFlight+1, nothing),
			a.Work(t.Context(), 1, nil),
			a.Work(t.Context(), 1, nothing, WithGrace(-1)), a.Work(t.Context(), 1, nothing, WithProcessingTimeout(0)),
			a.Work(t.Context(), 1, nothing, WithPauses(-1, 0)),
			a.Work(t.Context(), 1, nothing, WithPauses(time.Second, 0)),
			a.Work(t.Context(), 1, nothing, WithPauses(0, 1))} {
			require.ErrorIs(t, err, errOption)
		}
		a.put("x")
		require.ErrorIs(t, w.member("b", WithOrder(Strict)).Work(t.Context(), 2, nothing), errMismatch)
		ended := a.working(t.Context(), 2, nothing)
		time.Sleep(time.Minute)
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, <-ended, errClosed)
	})
}

// TestWorkPausesAfterFailures: a handler that always fails is called with growing pauses, unless
// its program wants none.
func TestWorkPausesAfterFailures(t *testing.T) {
	for name, c := range map[string]struct {
		option WorkOption
		want   []time.Duration
	}{
		"by default": {nil, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}},
		"otherwise":  {WithPauses(3*time.Second, 6*time.Second), []time.Duration{3, 6, 6, 6}},
		"at once":    {WithPauses(0, 0), []time.Duration{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			inEachOrder(t, func(t *testing.T, w *world, order Option) {
				a := w.member("a", order)
				a.put("x")
				ctx, cancel := context.WithCancel(t.Context())
				var called []time.Time
				ended := a.working(ctx, 1, func(context.Context, *Delivery[string]) error {
					if called = append(called, time.Now()); len(called) > len(c.want) {
						cancel()
					}
					return errors.New("no")
				}, c.option)
				require.NoError(t, <-ended)
				for i, want := range c.want {
					pause := called[i+1].Sub(called[i])
					require.GreaterOrEqual(t, pause, want*time.Second)
					require.LessOrEqual(t, pause, want*time.Second+2*time.Second,
						"a parallel queue rounds up to seconds")
				}
			})
		})
	}
}
