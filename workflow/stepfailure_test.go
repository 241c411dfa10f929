package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

var (
	errSoldOut = errors.New("sold out")
	errRefused = errors.New("refused")
)

// TestAPermanentFailureIsTheSameEachTime: for the executor that has run the step, and for the next
// one, which does not run it.
func TestAPermanentFailureIsTheSameEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		options  []workflow.StepOption
		text     string
		is, not  []error
		attempts int
	}{
		"marked": {err: workflow.Permanent(fmt.Errorf("item 7: %w", errSoldOut)), text: "item 7: sold out",
			options: []workflow.StepOption{workflow.WithStepAttempts(3, time.Second)},
			not:     []error{errSoldOut}, attempts: 1},
		"declared": {err: fmt.Errorf("item 7: %w", errSoldOut), text: "item 7: sold out",
			options: []workflow.StepOption{workflow.WithPermanentErrors(errRefused, errSoldOut),
				workflow.WithStepAttempts(3, time.Second)},
			is: []error{errSoldOut}, not: []error{errRefused}, attempts: 1},
		"used up": {err: errRefused, text: "refused", attempts: 3,
			options: []workflow.StepOption{workflow.WithStepAttempts(3, time.Second), workflow.WithRecordedFailure()}},
		"the first attempt": {err: errRefused, text: "refused", attempts: 1,
			options: []workflow.StepOption{workflow.WithRecordedFailure()}},
		"no text": {err: workflow.Permanent(errors.New("\xff" + strings.Repeat("ä", 2000))),
			text: "\uFFFD" + strings.Repeat("ä", 998), attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				calls, texts := 0, map[string]bool{}
				for _, executor := range []string{"a", "a again", "b"} {
					e := w.execute(w.member(executor))
					for range 2 { // the second time without a read
						_, err := workflow.Step(t.Context(), e.opened, "send",
							func(context.Context, workflow.Key) (int, error) { calls++; return 0, c.err }, c.options...)
						require.ErrorIs(t, err, workflow.ErrStepFailed)
						require.ErrorContains(t, err, "step-send: the step has failed permanently: "+c.text)
						for _, sentinel := range c.is {
							require.ErrorIs(t, err, sentinel)
						}
						for _, sentinel := range c.not {
							require.NotErrorIs(t, err, sentinel)
						}
						texts[err.Error()] = true
					}
					require.True(t, e.opened.IsRecorded("send"))
					records, err := e.ledger.Records(t.Context())
					require.NoError(t, err)
					require.Len(t, records, 1)
					require.Equal(t, c.text, records[0].Error)
					require.Nil(t, records[0].Result)
					require.Equal(t, c.attempts, records[0].Attempts)
					e.release(t)
				}
				require.Equal(t, c.attempts, calls)
				require.Len(t, texts, 1)
			})
		})
	}
}

// TestAForgottenFailureIsRunAgain, as any step without a record.
func TestAForgottenFailureIsRunAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		fails := func(context.Context, workflow.Key) error { return workflow.Permanent(errRefused) }
		require.ErrorIs(t, e.opened.Do(t.Context(), "send", fails), workflow.ErrStepFailed)
		require.NoError(t, e.ledger.Forget(t.Context(), e.lease, "send"))
		e.open(t)
		require.NoError(t, e.opened.Do(t.Context(), "send", nothing))
	})
}

// TestErrorsThatSayNothingOfTheWorkAreNotRecorded: the next executor runs the step.
func TestErrorsThatSayNothingOfTheWorkAreNotRecorded(t *testing.T) {
	for name, fails := range map[string]func(e *execution, cancel context.CancelFunc) error{
		"the context has ended": func(_ *execution, cancel context.CancelFunc) error { cancel(); return errRefused },
		"the executor has ended": func(e *execution, _ context.CancelFunc) error {
			_ = e.lease.Release(context.Background())
			return errRefused
		},
		"another executor ended": func(*execution, context.CancelFunc) error { return workflow.ErrEnded },
		"a wait":                 func(*execution, context.CancelFunc) error { return workflow.ErrWaiting },
		"session lost":           func(*execution, context.CancelFunc) error { return framework.ErrSessionLost },
		"suspended":              func(*execution, context.CancelFunc) error { return framework.ErrSuspended },
		"outcome unknown":        func(*execution, context.CancelFunc) error { return framework.ErrOutcomeUnknown },
		"unconfirmed":            func(*execution, context.CancelFunc) error { return framework.ErrUnconfirmed },
		"client closed":          func(*execution, context.CancelFunc) error { return framework.ErrClosed },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				e := w.execute(w.member("a"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := e.opened.Do(ctx, "send", func(context.Context, workflow.Key) error {
					return workflow.Permanent(fmt.Errorf("no: %w", fails(e, cancel)))
				}, workflow.WithRecordedFailure())
				require.Error(t, err)
				require.NotErrorIs(t, err, workflow.ErrStepFailed)
				require.Empty(t, w.steps())
				if e.lease.Context().Err() == nil {
					e.release(t)
				}
				next := w.execute(w.member("b"))
				require.NoError(t, next.opened.Do(t.Context(), "send", nothing))
			})
		})
	}
	in(t, func(t *testing.T, w *world) { // a result that this release cannot record
		e := w.execute(w.member("a"))
		_, err := workflow.Step(t.Context(), e.opened, "send",
			func(context.Context, workflow.Key) (any, error) { return func() {}, nil }, workflow.WithRecordedFailure())
		require.ErrorIs(t, err, framework.ErrBadValue)
		require.Empty(t, w.steps())
	})
}

// TestAFailureThatCannotBeRecordedIsNone: the executor has ended, and has not noticed.
func TestAFailureThatCannotBeRecordedIsNone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		zombie := &executor{context.Background(), framework.CheckOp(e.lease.Node(), framework.AnyVersion),
			e.lease.Token()}
		opened, err := e.ledger.Open(t.Context(), zombie)
		require.NoError(t, err)
		err = opened.Do(t.Context(), "send", func(context.Context, workflow.Key) error {
			e.release(t)
			return workflow.Permanent(errRefused)
		})
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.NotErrorIs(t, err, workflow.ErrStepFailed)
		require.ErrorContains(t, err, "refused")
		require.Empty(t, w.steps())
	})
}

// TestWhatIsCompensatedIsNotDoneLater: an order is refunded because it cannot be sent. At each
// request in turn the member is cut off for good, or its connection breaks, or the reply is lost.
// Whenever the order is refunded, it is never sent, although it could be sent a moment later.
func TestWhatIsCompensatedIsNotDoneLater(t *testing.T) {
	for name, fault := range faultsAtRequests {
		refunds := 0
		// before these requests the members only begin to work
		for nth := 25; nth <= 64; nth++ {
			in(t, func(t *testing.T, w *world) {
				var done doneLog
				var attempts atomic.Int64 // of both members: one may be cut off while the other goes on
				function := newFunction("order", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
					if err := done.step(ctx, run, "charged"); err != nil {
						return "", err
					}
					err := run.Do(ctx, "send", func(context.Context, workflow.Key) error {
						if attempts.Add(1) == 1 {
							return errSoldOut
						}
						done.add("sent")
						return nil
					}, workflow.WithPermanentErrors(errSoldOut))
					switch {
					case errors.Is(err, errSoldOut):
						return "refunded", done.step(ctx, run, "refunded")
					case err != nil:
						return "", err
					}
					return "sent", nil
				})
				first := w.flows("a")
				w.flows("starter").start("order", "x", 1)
				reached := fault(w, first, nth)
				first.work(function)
				settled()
				if reached.Load() {
					w.flows("b").work(function)
				}
				info := first.await
				if name == "cut" {
					info = w.flows("watcher").await
				}
				result := string(info("x", workflow.Done).Result)
				lines := done.all()
				require.Contains(t, []string{`"sent"`, `"refunded"`}, result, "%s %d", name, nth)
				require.NotEqual(t, slices.Contains(lines, "sent"), slices.Contains(lines, "refunded"), "%s %d: %v",
					name, nth, lines)
				if result == `"refunded"` {
					refunds++
				}
			})
		}
		require.Greater(t, refunds, 12, "%s", name)
	}
}

// TestRetryOfAPermanentFailure: an operator has to name the step.
func TestRetryOfAPermanentFailure(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("m").work(newFunction("order", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			err := run.Do(ctx, "send", func(context.Context, workflow.Key) error {
				if done.add("send"); len(done.all()) == 1 {
					return workflow.Permanent(errSoldOut)
				}
				return nil
			})
			return 1, err
		}))
		m.start("order", "x", 1)
		info := m.await("x", workflow.Failed)
		require.Contains(t, info.Error, "step-send: the step has failed permanently: sold out")
		require.Equal(t, 1, info.Failures, "without further attempts")
		require.Equal(t, "sold out", m.inspect("x").Steps[0].Error)
		require.NoError(t, m.Retry(t.Context(), "x", ""))
		m.await("x", workflow.Failed)
		require.Equal(t, []string{"send"}, done.all())
		require.NoError(t, m.Retry(t.Context(), "x", "send"))
		m.await("x", workflow.Done)
		require.Equal(t, []string{"send", "send"}, done.all())
	})
}

// TestAGraphWithAPermanentFailure: no further step begins, also in a later call.
func TestAGraphWithAPermanentFailure(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		step := func(name string, after ...string) workflow.AnyGraphStep[int] {
			return graphStep{Name: name, After: after,
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					if done.add("%s", name); name == "charge" {
						return nil, errRefused
					}
					return nil, nil
				}, Options: []workflow.StepOption{workflow.WithPermanentErrors(errRefused)}}
		}
		graph, err := workflow.NewGraph("g", step("charge"), step("ship", "pack"), step("pack", "charge"))
		require.NoError(t, err)
		texts := map[string]bool{}
		for range 2 {
			e := w.execute(w.member("a"))
			_, err := graph.Run(t.Context(), e.opened, 0)
			require.ErrorIs(t, err, workflow.ErrStepFailed)
			require.ErrorIs(t, err, errRefused)
			texts[err.Error()] = true
			records, err := e.ledger.Records(t.Context())
			require.NoError(t, err)
			require.Equal(t, []workflow.GraphStepProgress{{Name: "charge", Failed: true},
				{Name: "pack", After: []string{"charge"}, Level: 1, WaitsFor: []string{"charge"}},
				{Name: "ship", After: []string{"pack"}, Level: 2, WaitsFor: []string{"pack"}}},
				workflow.GraphsIn(records)[0].Steps)
			e.release(t)
		}
		require.Len(t, texts, 1)
		require.Equal(t, []string{"charge"}, done.all())

		apart, err := workflow.NewGraph("apart", step("charge"), step("beside"))
		require.NoError(t, err)
		e := w.execute(w.member("a"))
		_, err = apart.Run(t.Context(), e.opened, 0)
		require.ErrorIs(t, err, errRefused)
		require.Equal(t, []string{"charge"}, done.all(), "charge has failed before beside begins")
	})
}

func TestBadOptionsOfFailures(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		for _, option := range []workflow.StepOption{workflow.WithPermanentErrors(),
			workflow.WithPermanentErrors(errRefused, nil)} {
			require.ErrorIs(t, e.opened.Do(t.Context(), "send", nothing, option), framework.ErrInvalid)
		}
		require.Empty(t, w.steps())
	})
}
