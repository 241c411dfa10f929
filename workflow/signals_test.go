package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// events is a kind whose runs consume signals of one name until the data is 0, and return all data.
// A wait that times out adds -1.
func events(timeout time.Duration) workflow.Function {
	return newFunction("events", func(ctx context.Context, run *workflow.Run, _ int) (all []int, err error) {
		for {
			n, err := workflow.Await[int](ctx, run, "event", timeout)
			switch {
			case errors.Is(err, framework.ErrTimeout):
				n = -1
			case err != nil:
				return nil, err
			}
			if all = append(all, n); n == 0 {
				return all, nil
			}
		}
	})
}

func (f *worker) event(id string, n int) {
	f.t.Helper()
	require.NoError(f.t, f.Signal(f.t.Context(), id, "event", n, workflow.WithSignalID(fmt.Sprint(n))))
}

// TestSignalsOfOneNameAreConsumedInOrder, whether they come before the run waits or while it does,
// and when the executor dies between them.
func TestSignalsOfOneNameAreConsumedInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a")
		m.start("events", "x", 0)
		m.event("x", 3)
		m.event("x", 1)
		m.event("x", 3) // again
		require.ErrorIs(t, m.Signal(t.Context(), "x", "event", 7, workflow.WithSignalID("1")), workflow.ErrSignalled)
		require.NoError(t, m.Signal(t.Context(), "x", "event", 8), "one without an id, behind them")
		require.NoError(t, m.Signal(t.Context(), "x", "event", 8))
		require.ErrorIs(t, m.Signal(t.Context(), "x", "event", 9), workflow.ErrSignalled)
		m.work(events(0))
		settled()
		require.Equal(t, []string{`signal "event" number 4`}, m.inspect("x").Waits)
		require.Equal(t, []string{"event", "event", "event"}, m.inspect("x").Signals)
		m.event("x", 5)
		settled()
		require.Equal(t, []string{`signal "event" number 5`}, m.inspect("x").Waits)
		b := w.flows("b").work(events(0))
		m.kill()
		b.event("x", 0)
		require.JSONEq(t, "[3,1,8,5,0]", string(b.await("x", workflow.Done).Result))
		b.event("x", 5) // it has that
		require.ErrorIs(t, b.Signal(t.Context(), "x", "event", 6, workflow.WithSignalID("6")), workflow.ErrFinished)
	})
}

// TestEachWaitForSignalsOfOneNameHasItsOwnLimit: a signal that comes after a wait has timed out is
// for the next one.
func TestEachWaitForSignalsOfOneNameHasItsOwnLimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(events(time.Hour))
		m.start("events", "x", 0)
		time.Sleep(30 * time.Minute)
		m.event("x", 1)
		time.Sleep(90 * time.Minute) // the second wait has timed out
		m.event("x", 2)
		m.event("x", 0)
		require.JSONEq(t, "[1,-1,2,0]", string(m.await("x", workflow.Done).Result))
	})
}

// TestSignalsRaceForTheirNumbers: none is lost, none comes twice, and the order is the same each
// time the function is called.
func TestSignalsRaceForTheirNumbers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(events(0))
		m.start("events", "x", 0)
		sent := make(chan error, 30)
		for i := range 3 {
			f := w.flows(fmt.Sprint("sender ", i))
			go func() {
				for n := range 10 {
					sent <- f.Signal(context.Background(), "x", "event", 10*i+n+1,
						workflow.WithSignalID(fmt.Sprint(i, " ", n)))
				}
			}()
		}
		for range cap(sent) {
			require.NoError(t, <-sent)
		}
		m.event("x", 0)
		var all []int
		require.NoError(t, json.Unmarshal(m.await("x", workflow.Done).Result, &all))
		require.Len(t, all, 31)
		seen := map[int]bool{}
		for _, n := range all {
			require.False(t, seen[n])
			seen[n] = true
		}
	})
}

// TestSignalWithAnIDAfterLostReply is given once, and so is one whose session is lost.
func TestSignalWithAnIDAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(events(0))
		m.start("events", "x", 0)
		m.event("x", 1)
		settled()
		sender := w.flows("sender")
		for n := range 2 {
			w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool {
				for _, p := range r.Parts {
					if strings.Contains(p.Path, "/signal") {
						if n == 1 { // the session ends, too
							go func() { _ = w.Expire(r.Session) }()
						}
						return true
					}
				}
				return false
			}})
			sender.event("x", 2+n)
		}
		sender.event("x", 0)
		require.JSONEq(t, "[1,2,3,0]", string(m.await("x", workflow.Done).Result))
		require.ErrorIs(t, m.Signal(t.Context(), "x", "event", 1, workflow.WithSignalID("")), framework.ErrInvalid)
		require.ErrorIs(t, m.Signal(t.Context(), "x", "event", strings.Repeat("x", workflow.MaxSignal),
			workflow.WithSignalID("large")), framework.ErrTooLarge)
	})
}
