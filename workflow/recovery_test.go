package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// spoil replaces a node's data by those of a newer release, and returns a function that brings the
// data back.
func (f *worker) spoil(node string) (restore func()) {
	f.t.Helper()
	data, _, err := f.Get(f.t.Context(), node)
	require.NoError(f.t, err)
	_, err = f.Set(f.t.Context(), node, []byte(`{"v":99}`), framework.AnyVersion)
	require.NoError(f.t, err)
	return func() {
		f.t.Helper()
		_, err := f.Set(f.t.Context(), node, data, framework.AnyVersion)
		require.NoError(f.t, err)
	}
}

// TestARunThatCannotBeReadForLongGoesOn: members try again and again to execute it, and count no
// lost executor.
func TestARunThatCannotBeReadForLongGoesOn(t *testing.T) {
	for _, below := range []string{"", "/step-before"} {
		in(t, func(t *testing.T, w *world) {
			var done doneLog
			kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				if err := done.step(ctx, run, "before"); err != nil {
					return 0, err
				}
				if _, err := workflow.Await[int](ctx, run, "go", time.Hour); err != nil {
					return 0, err
				}
				return 1, done.step(ctx, run, "after")
			}, workflow.WithMaxLosses(3))
			m := w.flows("a").work(kind)
			m.start("work", "x", 0)
			settled()
			m.stop()
			require.NoError(t, m.Signal(t.Context(), "x", "go", 1))
			restore := m.spoil(runNode(t, w, "x") + below)
			m = w.flows("b").work(kind)
			time.Sleep(12 * time.Hour)
			if below != "" {
				require.Contains(t, m.inspectRecord("x").Error, "newer")
			}
			restore()
			m.await("x", workflow.Done)
			require.Equal(t, []string{"before", "after"}, done.all())
		})
	}
}

// TestTheEndOfTheGraceIsALossAndKeepsTheRunsPlace: a deployment ends a run's executor. The next one
// takes that run before the runs that have waited for longer, and counts the loss.
func TestTheEndOfTheGraceIsALossAndKeepsTheRunsPlace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		endless := true
		kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			done.add("%s", run.ID())
			if endless {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		}, workflow.WithWorkers(1), workflow.WithMaxLosses(2))
		for i := range 3 {
			m := w.flows(fmt.Sprint("a", i), workflow.WithGrace(0)).work(kind)
			if i == 0 {
				m.start("work", "first", 0)
				settled()
				m.start("work", "second", 0)
			}
			for len(done.all()) <= i { // a run that has lost executors may be executed seconds later
				settled()
			}
			m.stopHard()
		}
		require.Equal(t, []string{"first", "first", "first"}, done.all())
		endless = false
		m := w.flows("b").work(kind)
		require.Contains(t, m.await("first", workflow.Failed).Error, "3 executors were lost")
		m.await("second", workflow.Done)
	})
}

// stopHard ends Work, whose functions do not return within the grace.
func (f *worker) stopHard() {
	f.t.Helper()
	f.stop = func() {}
	f.cancel()
	require.ErrorIs(f.t, <-f.done, framework.ErrDraining)
	settled()
}

// TestAFunctionThatEndsItsGoroutineHasFailed: it is an attempt like another, and the run's members
// go on.
func TestAFunctionThatEndsItsGoroutineHasFailed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		kind := newFunction("work", func(context.Context, *workflow.Run, int) (int, error) {
			done.add("called")
			runtime.Goexit()
			return 0, nil
		}, workflow.WithRunAttempts(3, time.Second))
		m := w.flows("a").work(kind)
		m.start("work", "x", 0)
		require.Contains(t, m.await("x", workflow.Failed).Error, "it has ended its goroutine")
		require.Len(t, done.all(), 3)
	})
}

// inspectRecord returns a run that List can read although Inspect cannot read its steps.
func (f *worker) inspectRecord(id string) workflow.Report {
	f.t.Helper()
	runs, err := failure.Collect(f.List(f.t.Context()))
	require.NoError(f.t, err)
	for _, r := range runs {
		if r.ID == id {
			return r
		}
	}
	require.Fail(f.t, "not listed", id)
	return workflow.Report{}
}

// TestTooManyResultsFailTheRunAtOnce: another attempt would repeat the effect, and have no more
// room.
func TestTooManyResultsFailTheRunAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		kind := newFunction("large", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			for i := range 6 {
				_, err := workflow.Step(ctx, run, fmt.Sprint(i), func(context.Context, workflow.Key) (string, error) {
					done.add("%d", i)
					return strings.Repeat("x", workflow.MaxResult-2), nil
				})
				if err != nil {
					return 0, err
				}
			}
			return 6, nil
		})
		m := w.flows("a").work(kind)
		m.start("large", "x", 0)
		require.Contains(t, m.await("x", workflow.Failed).Error, "store the result elsewhere")
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, done.all())
	})
}

// onlyUp encodes to JSON that it does not decode from.
type onlyUp struct{}

func (onlyUp) MarshalJSON() ([]byte, error) { return []byte(`"up"`), nil }

func (*onlyUp) UnmarshalJSON([]byte) error { return errors.New("not back") }

// TestAResultThatDoesNotDecodeFailsTheRunAtOnce: another attempt would repeat the effect, and
// decode no better.
func TestAResultThatDoesNotDecodeFailsTheRunAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(newFunction("bad",
			func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				_, err := workflow.Step(ctx, run, "s",
					func(context.Context, workflow.Key) (onlyUp, error) { done.add("s"); return onlyUp{}, nil })
				return 0, err
			}))
		m.start("bad", "x", 0)
		require.Contains(t, m.await("x", workflow.Failed).Error, "not back")
		require.Len(t, done.all(), 1)
	})
}

// TestResultsUpToTheLimit: a result does not count twice while it is recorded beside others.
func TestResultsUpToTheLimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := newFunction("large", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			var each []func(context.Context) error
			for i := range 4 {
				each = append(each, func(ctx context.Context) error {
					_, err := workflow.Step(ctx, run, fmt.Sprint(i),
						func(context.Context, workflow.Key) (string, error) {
							return strings.Repeat("x", workflow.MaxResults/4-2), nil
						})
					return err
				})
			}
			return 4, run.Parallel(ctx, each...)
		}, workflow.WithRunAttempts(1, time.Second))
		m := w.flows("a").work(kind)
		for i := range 10 {
			m.start("large", fmt.Sprint(i), 0)
		}
		for i := range 10 {
			m.await(fmt.Sprint(i), workflow.Done)
		}
	})
}

// TestRegisterAddsAllKindsOrNone: after an error the call can be repeated with the corrected list.
func TestRegisterAddsAllKindsOrNone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a")
		bad := newFunction("a/b", func(context.Context, *workflow.Run, int) (int, error) { return 0, nil })
		require.ErrorIs(t, m.Register(fiveSteps(&done), bad), framework.ErrInvalid)
		require.NoError(t, m.Register(fiveSteps(&done)))
	})
}

// TestRetryFromAnExpiredWait: the run waits again, for its whole time.
func TestRetryFromAnExpiredWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
			if err := done.step(ctx, run, "before"); err != nil {
				return "", err
			}
			return workflow.Await[string](ctx, run, "go", time.Hour)
		})
		m := w.flows("a").work(kind)
		m.start("work", "x", 0)
		report := m.await("x", workflow.Failed)
		require.Contains(t, report.Error, `no signal "go" within 1h`)
		require.Equal(t, 1, report.Failures, "a wait that has timed out stays so")
		require.ErrorIs(t, m.Signal(t.Context(), "x", "go", "late"), workflow.ErrSignalled)
		require.NoError(t, m.Retry(t.Context(), "x", "go"))
		settled()
		require.Equal(t, workflow.Waiting, m.inspect("x").State)
		require.NoError(t, m.Signal(t.Context(), "x", "go", "in time"))
		require.Equal(t, `"in time"`, string(m.await("x", workflow.Done).Result))
		require.Equal(t, []string{"before"}, done.all())
	})
}

// TestFailedRunsStayLonger: an operator looks at them after the weekend.
func TestFailedRunsStayLonger(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		fails := newFunction("fails", func(context.Context, *workflow.Run, int) (int, error) {
			return 0, workflow.Permanent(errors.New("no luck"))
		})
		m := w.flows("a", workflow.WithRetention(time.Hour), workflow.WithFailedRetention(4*time.Hour)).work(fails,
			fiveSteps(&done))
		m.start("fails", "f", 1)
		m.start("five", "d", 1)
		m.await("f", workflow.Failed)
		states := func() (states []workflow.State) {
			runs, err := failure.Collect(m.List(t.Context()))
			require.NoError(t, err)
			for _, r := range runs {
				states = append(states, r.State)
			}
			return states
		}
		time.Sleep(3 * time.Hour)
		require.Equal(t, []workflow.State{workflow.Failed}, states())
		time.Sleep(3 * time.Hour)
		require.Empty(t, states())
	})
}

// TestARunThatFailsAfterARetryStaysAsAFailedOne, although it was done before.
func TestARunThatFailsAfterARetryStaysAsAFailedOne(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var calls doneLog
		kind := newFunction("once", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			err := run.Do(ctx, "s", func(context.Context, workflow.Key) error {
				if calls.add("s"); len(calls.all()) > 1 {
					return workflow.Permanent(errors.New("no luck"))
				}
				return nil
			})
			return 1, err
		})
		m := w.flows("a", workflow.WithRetention(time.Hour), workflow.WithFailedRetention(4*time.Hour)).work(kind)
		m.start("once", "x", 1)
		m.await("x", workflow.Done)
		require.NoError(t, m.Retry(t.Context(), "x", "s"))
		m.await("x", workflow.Failed)
		time.Sleep(3 * time.Hour)
		require.Equal(t, workflow.Failed, m.inspect("x").State)
		time.Sleep(3 * time.Hour)
		_, err := m.Inspect(t.Context(), "x")
		require.ErrorIs(t, err, framework.ErrNotFound)
	})
}

// TestAParallelFunctionThatEndsItsGoroutineHasFailed calls runtime.Goexit, as t.FailNow does.
func TestAParallelFunctionThatEndsItsGoroutineHasFailed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		defer e.release(t)
		err := e.opened.Parallel(t.Context(), func(context.Context) error { runtime.Goexit(); return nil },
			func(context.Context) error { return nil })
		require.ErrorIs(t, err, framework.ErrPanic)
	})
}

// TestErrorsNameTheRun and the place where two inputs differ.
func TestErrorsNameTheRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		text := newFunction("text", func(context.Context, *workflow.Run, string) (int, error) { return 0, nil })
		m := w.flows("a").work(text)
		same := strings.Repeat("same ", 100)
		m.start("text", "x", same+"one")
		m.await("x", workflow.Done)
		err := m.Start(t.Context(), "text", "x", same+"two")
		require.ErrorIs(t, err, workflow.ErrIDInUse)
		require.ErrorContains(t, err, "one")
		require.ErrorContains(t, err, "two")
		require.ErrorContains(t, m.Cancel(t.Context(), "x", ""), `run "x"`)
		require.ErrorContains(t, m.Retry(t.Context(), "x", ""), `run "x"`)
		require.ErrorContains(t, m.Signal(t.Context(), "x", "s", 1), `run "x"`)
		require.ErrorContains(t, m.Start(t.Context(), "text", "y", strings.Repeat("x", workflow.MaxResult)),
			"the input has")
	})
}

// TestWaitsOfNoRun: each call says so instead of a panic, and prints no hostile name.
func TestWaitsOfNoRun(t *testing.T) {
	none := &workflow.Run{}
	_, err := workflow.Await[int](t.Context(), none, "s", 0)
	require.ErrorIs(t, err, framework.ErrInvalid)
	_, err = child[int](t.Context(), none, "c", "kind", 0)
	require.ErrorIs(t, err, framework.ErrInvalid)
	require.ErrorIs(t, none.Sleep(t.Context(), "s", 0), framework.ErrInvalid)
	in(t, func(t *testing.T, w *world) {
		failed := make(chan error, 1)
		m := w.flows("a").work(newFunction("waits",
			func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				_, err := workflow.Await[int](ctx, run, "a\nb\u202e", 0)
				failed <- err
				return 0, nil
			}))
		m.start("waits", "x", 0)
		err := <-failed
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.NotContains(t, err.Error(), "\n")
		m.await("x", workflow.Done)
	})
}

// TestARunThatTakesStepsMayLoseManyExecutors: its process crashes again and again, perhaps because
// of another run. Each executor records a step before.
func TestARunThatTakesStepsMayLoseManyExecutors(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const steps = 6
		kill := make(chan struct{})
		kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			for i := range steps {
				name := fmt.Sprint(i)
				recorded := run.IsRecorded(name)
				if err := run.Do(ctx, name, func(context.Context, workflow.Key) error { return nil }); err != nil {
					return 0, err
				}
				if !recorded && i < steps-1 {
					kill <- struct{}{}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
			}
			return 7, nil
		}, workflow.WithMaxLosses(2))
		starter := w.flows("starter")
		m := w.flows("m").work(kind)
		m.start("work", "x", 0)
		for i := range steps - 1 {
			<-kill
			settled()
			m.kill()
			m = w.flows(fmt.Sprint("m", i)).work(kind)
		}
		starter.await("x", workflow.Done)
	})
}

// TestARunThatCrashesItsProcessesFails: no executor records a step before the crash. A retry begins
// to count anew.
func TestARunThatCrashesItsProcessesFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		crashed := make(chan struct{})
		kind := func(crashes bool) workflow.Function {
			return newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				if crashes {
					crashed <- struct{}{}
					<-ctx.Done()
				}
				return 7, context.Cause(ctx)
			}, workflow.WithMaxLosses(3))
		}
		m := w.flows("first").work(kind(true))
		m.start("work", "x", 0)
		for i := range 4 {
			<-crashed
			m.kill()
			m = w.flows(fmt.Sprint("m", i)).work(kind(i < 3))
		}
		require.Contains(t, m.await("x", workflow.Failed).Error, "4 executors were lost")
		require.NoError(t, m.Retry(t.Context(), "x", ""))
		m.await("x", workflow.Done)
	})
}
