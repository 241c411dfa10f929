package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/moduleonly"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

const runsPath = "/runs"

// worker is a member that executes runs.
type worker struct {
	*zktest.Member
	*workflow.Workflows
	t      *testing.T
	cancel context.CancelFunc // ends Work
	stop   context.CancelFunc // ends Work, which is to return nil
	done   chan error
}

// flows returns a member's workflows, which do not work yet.
func (w *world) flows(name string, opts ...workflow.Option) *worker {
	m := w.member(name)
	f := &worker{m, workflow.New(m.Client, runsPath, opts...), w.t, func() {}, func() {}, make(chan error, 1)}
	w.t.Cleanup(func() {
		f.stop()
		_ = f.Workflows.Close(context.Background())
	})
	return f
}

// newFunction returns the function of a kind.
func newFunction[I, O any](kind string, fn func(context.Context, *workflow.Run, I) (O, error),
	opts ...workflow.FunctionOption) workflow.Function {
	return workflow.NewKind[I, O](kind).Function(fn, opts...)
}

// child starts a child of a kind by its name.
func child[O, I any](ctx context.Context, run *workflow.Run, name, kind string, input I) (O, error) {
	return workflow.NewKind[I, O](kind).Child(ctx, run, name, input)
}

// work begins to execute runs.
func (f *worker) work(functions ...workflow.Function) *worker {
	f.t.Helper()
	require.NoError(f.t, f.Register(functions...))
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.stop = func() {
		cancel()
		f.stop = func() {}
		require.NoError(f.t, <-f.done)
	}
	go func() { f.done <- f.Work(ctx) }()
	return f
}

// kill takes the member away as a crash does.
func (f *worker) kill() {
	f.Link.Cut()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = f.Workflows.Close(ended)
	_ = f.Member.Client.Close(context.Background())
	f.stop = func() {}
	<-f.done
}

// Start starts a run of a kind by its name.
func (f *worker) Start(ctx context.Context, kind, id string, input any, opts ...workflow.StartOption) error {
	_, err := workflow.NewKind[any, any](kind).Start(ctx, f.Workflows, id, input, opts...)
	return err
}

func (f *worker) start(kind, id string, input any) {
	f.t.Helper()
	require.NoError(f.t, f.Start(f.t.Context(), kind, id, input))
}

func (f *worker) inspect(id string) workflow.Report {
	f.t.Helper()
	report, err := f.Inspect(f.t.Context(), id)
	require.NoError(f.t, err)
	return report
}

// await waits until a run has finished in a state.
func (f *worker) await(id string, want workflow.State) workflow.Report {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 12*time.Hour)
	defer cancel()
	report, err := f.Wait(ctx, id)
	require.NoError(f.t, err)
	require.Equal(f.t, want, report.State, report.Error)
	return report
}

// settled waits until nothing goes on any more but what waits for time.
func settled() {
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
	}
}

// doneLog is what functions have done, in order.
type doneLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *doneLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *doneLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *doneLog) step(ctx context.Context, run *workflow.Run, name string) error {
	return run.Do(ctx, name, func(context.Context, workflow.Key) error { l.add("%s", name); return nil })
}

// fiveSteps is a kind whose runs take five steps.
func fiveSteps(done *doneLog) workflow.Function {
	return newFunction("five", func(ctx context.Context, run *workflow.Run, input int) (int, error) {
		sum := input
		for i := range 5 {
			n, err := workflow.Step(ctx, run, fmt.Sprint(i),
				func(context.Context, workflow.Key) (int, error) { done.add("%d", i); return i, nil })
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
}

func TestRunTakesItsSteps(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		m.start("five", "x", 100)
		result, err := workflow.NewKind[int, int]("five").Handle(m.Workflows, "x").Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 110, result)
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, done.all())
		report := m.inspect("x")
		require.Equal(t, workflow.Done, report.State)
		require.Len(t, report.Steps, 5)
		require.Equal(t, "3", report.Steps[3].Name)
		require.JSONEq(t, "110", string(report.Result))

		m.start("five", "x", 100) // it has finished, and nothing happens
		require.ErrorIs(t, m.Start(t.Context(), "five", "x", 101), workflow.ErrIDInUse)
		require.ErrorContains(t, m.Start(t.Context(), "five", "x", 101),
			`run "x" is a five with input "100", not a five with input "101"`)
		settled()
		require.Len(t, done.all(), 5)
		runs, err := failure.Collect(w.flows("b").List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, "x", runs[0].ID)
		require.Empty(t, w.Children(runsPath + "/queues/five/items/0000000000")[:0])
	})
}

// TestWritesOfARun counts: the start, the ticket, a write for each step, the end. The first run
// also makes directories.
func TestWritesOfARun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		m.start("five", "first", 1)
		m.await("first", workflow.Done)
		settled()
		writes := func() (n int64) {
			all := w.Requests()
			for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreate, zktest.OpDelete, zktest.OpSetData} {
				n += all[op]
			}
			return n
		}
		before, began := writes(), time.Now()
		for i := range 100 {
			m.start("five", fmt.Sprint(i), 1)
			m.await(fmt.Sprint(i), workflow.Done)
		}
		heartbeats := int64(time.Since(began)/(2*time.Second)) + 300 // directories of the shards, and proofs of life
		require.LessOrEqual(t, writes()-before, 100*8+heartbeats)
		require.GreaterOrEqual(t, writes()-before, int64(100*8))
	})
}

// TestNextMemberGoesOnWhereOneHasDied kills a member in each step.
func TestNextMemberGoesOnWhereOneHasDied(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		var tokens []int64
		var keys []string
		dying := make(chan struct{})
		kind := func(dies int) workflow.Function {
			return newFunction("work", func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
				for i := range 5 {
					err := run.Do(ctx, fmt.Sprint(i), func(ctx context.Context, key workflow.Key) error {
						done.add("%d", i)
						tokens = append(tokens, key.Token)
						keys = append(keys, key.ID)
						if i == dies {
							dying <- struct{}{}
							<-ctx.Done()
							return context.Cause(ctx)
						}
						return nil
					})
					if err != nil {
						return "", err
					}
				}
				return "ok", nil
			}, workflow.WithMaxLosses(3))
		}
		first := w.flows("m0").work(kind(0))
		first.start("work", "x", "")
		for i := range 3 {
			<-dying
			next := w.flows(fmt.Sprint("m", i+1)).work(kind(i + 1))
			first.kill()
			first = next
		}
		<-dying
		next := w.flows("last").work(kind(-1))
		first.kill()
		next.await("x", workflow.Done)
		require.Equal(t, []string{"0", "0", "1", "1", "2", "2", "3", "3", "4"}, done.all())
		require.IsIncreasing(t, slices.Compact(tokens))
		require.Equal(t, keys[0], keys[1], "the key is the same for each executor")
		require.NotEqual(t, keys[1], keys[2])
	})
}

// TestWhoHasARun: a list and an inspection name the member, and the next one when that has died.
func TestWhoHasARun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := newFunction("slow", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			if err := run.Do(ctx, "first", func(context.Context, workflow.Key) error { return nil }); err != nil {
				return 0, err
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		watcher := w.flows("watcher")
		watcher.start("slow", "x", 1)
		require.Nil(t, watcher.inspect("x").Taken, "no member has it")
		for _, name := range []string{"a", "b"} {
			m := w.flows(name).work(kind)
			settled()
			report := watcher.inspect("x")
			require.NotNil(t, report.Taken)
			require.Equal(t, m.Member.Client.Config().Identity, report.Taken.Member)
			session, err := m.Member.Client.Session(t.Context())
			require.NoError(t, err)
			require.Equal(t, session.ID(), report.Taken.Session)
			require.WithinDuration(t, time.Now(), report.Taken.Since, time.Minute)
			require.Equal(t, "first", report.Steps[0].Name)
			runs, err := failure.Collect(watcher.List(t.Context()))
			require.NoError(t, err)
			require.Equal(t, report.Taken, runs[0].Taken)
			inspected, err := moduleonly.InspectSteps(t.Context(), watcher.Workflows, "x")
			require.NoError(t, err)
			brief := inspected.(workflow.Report)
			require.Nil(t, brief.Taken)
			require.Equal(t, report.Steps, brief.Steps)
			m.kill()
			time.Sleep(20 * time.Second)
		}
		require.NoError(t, watcher.Cancel(t.Context(), "x", ""))
		require.Nil(t, watcher.inspect("x").Taken)
	})
}

// TestUnknownKindsAreLeft: a run is started before any member has worked on its kind, and waits for
// one.
func TestUnknownKindsAreLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		other := newFunction("other", func(context.Context, *workflow.Run, int) (int, error) { return 1, nil })
		a := w.flows("a").work(other)
		a.start("five", "x", 1)
		settled()
		require.Equal(t, workflow.Active, a.inspect("x").State)
		w.flows("c").work(fiveSteps(&done))
		a.await("x", workflow.Done)
	})
}

func TestSleep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		var woke time.Time
		kind := newFunction("sleeper",
			func(ctx context.Context, run *workflow.Run, d time.Duration) (string, error) {
				done.add("called")
				if err := done.step(ctx, run, "before"); err != nil {
					return "", err
				}
				if err := run.Sleep(ctx, "nap", d); err != nil {
					return "", fmt.Errorf("asleep: %w", err)
				}
				woke = time.Now()
				require.ErrorIs(t, run.Sleep(ctx, "nap", d), framework.ErrInvalid)
				return "", done.step(ctx, run, "after")
			})
		a := w.flows("a").work(kind)
		began := time.Now()
		a.start("sleeper", "x", time.Hour)
		settled()
		report := a.inspect("x")
		require.Equal(t, workflow.Waiting, report.State)
		require.Len(t, report.Waits, 1)
		require.Contains(t, report.Waits[0], "time until 2")
		b := w.flows("b").work(kind)
		a.kill()
		b.await("x", workflow.Done)
		require.GreaterOrEqual(t, woke.Sub(began), time.Hour)
		require.Less(t, woke.Sub(began), time.Hour+time.Minute)
		require.Equal(t, []string{"called", "before", "called", "after"}, done.all())
	})
}

// approval is a kind that waits for a signal.
func approval(timeout time.Duration) workflow.Function {
	return newFunction("approval", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
		by, err := workflow.Await[string](ctx, run, "approved", timeout)
		if errors.Is(err, framework.ErrTimeout) {
			return "timed out", nil
		}
		return by, err
	})
}

func TestAwaitAndSignal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(0))
		m.start("approval", "x", 0)
		settled()
		require.Equal(t, []string{`signal "approved"`}, m.inspect("x").Waits)
		require.NoError(t, m.Signal(t.Context(), "x", "other", 1), "nobody waits for it")
		settled()
		require.Equal(t, workflow.Waiting, m.inspect("x").State)
		for _, n := range w.Tree(runsPath + "/queues") {
			require.NotContains(t, n.Path, "/i-", "a run that waits for a signal has no item")
		}
		require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
		require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"), "the same again")
		require.ErrorIs(t, m.Signal(t.Context(), "x", "approved", "adam"), workflow.ErrSignalled)
		require.JSONEq(t, `"eve"`, string(m.await("x", workflow.Done).Result))
		require.ErrorIs(t, m.Signal(t.Context(), "x", "late", 1), workflow.ErrFinished)
		require.ErrorIs(t, m.Signal(t.Context(), "y", "approved", 1), framework.ErrNotFound)
		require.ErrorIs(t, m.Signal(t.Context(), "x", "large", strings.Repeat("x", workflow.MaxSignal)),
			framework.ErrTooLarge)
	})
}

// TestSignalsWithALimit: the wait ends with the signal or the time, and stays so.
func TestSignalsWithALimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(time.Minute))
		for _, id := range []string{"signalled", "late"} {
			m.start("approval", id, 0)
		}
		settled()
		require.NoError(t, m.Signal(t.Context(), "signalled", "approved", "eve"))
		require.JSONEq(t, `"eve"`, string(m.await("signalled", workflow.Done).Result))
		require.JSONEq(t, `"timed out"`, string(m.await("late", workflow.Done).Result))
		require.ErrorIs(t, m.Signal(t.Context(), "late", "approved", "eve"), workflow.ErrSignalled)
		settled()
		time.Sleep(2 * time.Minute) // the item of the first run's limit is over
		require.Equal(t, workflow.Done, m.inspect("signalled").State)
		require.Zero(t, len(m.inspect("signalled").Steps))
	})
}

// TestSignalsBesideTheSuspension sends a signal at the moment at which the run begins to wait.
func TestSignalsBesideTheSuspension(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a")
		kind := newFunction("approval", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
			by, err := workflow.Await[string](ctx, run, "approved", 0)
			if errors.Is(err, workflow.ErrWaiting) {
				require.NoError(t, m.Signal(context.Background(), run.ID(), "approved", "eve"))
			}
			return by, err
		})
		m.work(kind)
		m.start("approval", "x", 0)
		require.JSONEq(t, `"eve"`, string(m.await("x", workflow.Done).Result))
	})
}

func TestChildRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			var a, b int
			err := run.Parallel(ctx, func(ctx context.Context) (err error) {
				a, err = child[int](ctx, run, "a", "five", n)
				return err
			}, func(ctx context.Context) (err error) {
				b, err = child[int](ctx, run, "b", "failing", n)
				if errors.Is(err, workflow.ErrFailed) {
					b, err = -1, nil
				}
				return err
			})
			return a + b, err
		})
		failing := newFunction("failing", func(context.Context, *workflow.Run, int) (int, error) {
			time.Sleep(time.Minute)
			return 0, workflow.Permanent(errors.New("boom"))
		})
		m := w.flows("a").work(parent, fiveSteps(&done), failing)
		m.start("parent", "x", 100)
		settled()
		require.ElementsMatch(t, []string{`child run "x.b"`}, m.inspect("x").Waits)
		require.JSONEq(t, "109", string(m.await("x", workflow.Done).Result))
		require.Equal(t, "x", m.inspect("x.a").Parent)
		require.Equal(t, "boom", m.inspect("x.b").Error)
		require.Len(t, done.all(), 5)
		require.ErrorIs(t, m.Start(t.Context(), "five", "x.a", 100), workflow.ErrIDInUse)
		_, err := workflow.NewKind[int, int]("failing").Handle(m.Workflows, "x.b").Wait(t.Context())
		require.ErrorIs(t, err, workflow.ErrFailed)
		require.ErrorContains(t, err, "boom")
	})
}

// TestCancelledChildWakesItsParent: its parent waits for it.
func TestCancelledChildWakesItsParent(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
			return child[string](ctx, run, "c", "approval", 0)
		})
		m := w.flows("a").work(parent, approval(0))
		m.start("parent", "x", 0)
		settled()
		require.NoError(t, m.Cancel(t.Context(), "x.c", "not wanted"))
		require.Contains(t, m.await("x", workflow.Failed).Error, "not wanted")
	})
}

func TestParallel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		kind := newFunction("parallel", func(ctx context.Context, run *workflow.Run, fails bool) (int, error) {
			naps := func(d time.Duration) func(context.Context) error {
				return func(ctx context.Context) error {
					if err := run.Sleep(ctx, d.String(), d); err != nil {
						return err
					}
					return done.step(ctx, run, "after "+d.String())
				}
			}
			return 7, run.Parallel(ctx, naps(time.Minute), naps(time.Hour), naps(2*time.Minute),
				func(context.Context) error {
					if fails {
						panic("boom")
					}
					return nil
				})
		}, workflow.WithRunAttempts(1, time.Second))
		m := w.flows("a").work(kind)
		began := time.Now()
		m.start("parallel", "x", false)
		m.await("x", workflow.Done)
		require.Less(t, time.Since(began), time.Hour+time.Minute)
		require.Equal(t, []string{"after 1m0s", "after 2m0s", "after 1h0m0s"}, done.all())
		m.start("parallel", "y", true)
		require.Contains(t, m.await("y", workflow.Failed).Error, "panicked: boom")
	})
}

func TestFailedRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		calls := map[string]int{}
		var mu sync.Mutex
		kind := newFunction("failing", func(ctx context.Context, run *workflow.Run, how string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[how]++
			switch {
			case how == "permanent":
				return "", workflow.Permanent(errors.New("boom"))
			case how == "panic":
				panic("boom")
			case how == "large":
				return strings.Repeat("x", workflow.MaxResult), nil
			case how == "swallowed": // an error of a step is the run's to handle
				require.ErrorIs(t, run.Do(ctx, "s", func(context.Context, workflow.Key) error { panic("boom") }),
					framework.ErrPanic)
				return "done", nil
			case calls[how] < 3:
				return "", errors.New("boom")
			}
			return "done", nil
		}, workflow.WithRunAttempts(3, time.Minute))
		m := w.flows("a").work(kind)
		for _, how := range []string{"permanent", "panic", "large", "often", "swallowed"} {
			m.start("failing", how, how)
		}
		settled()
		require.Equal(t, workflow.Waiting, m.inspect("panic").State)
		require.Equal(t, 1, m.inspect("panic").Failures)
		require.Contains(t, m.inspect("panic").Waits[0], "retry until")
		require.Contains(t, m.await("permanent", workflow.Failed).Error, "boom")
		require.Contains(t, m.await("panic", workflow.Failed).Error, "panicked: boom")
		require.Contains(t, m.await("large", workflow.Failed).Error, "the result has 65538 bytes")
		m.await("often", workflow.Done)
		m.await("swallowed", workflow.Done)
		require.Equal(t, map[string]int{"permanent": 1, "panic": 3, "large": 1, "often": 3, "swallowed": 1}, calls)
	})
}

// TestRetryWithoutTheRestOfThePause: an operator does not want to wait.
func TestRetryWithoutTheRestOfThePause(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var calls int
		kind := newFunction("failing", func(context.Context, *workflow.Run, int) (int, error) {
			if calls++; calls == 1 {
				return 0, errors.New("boom")
			}
			return calls, nil
		}, workflow.WithRunAttempts(3, time.Minute))
		m := w.flows("a").work(kind)
		m.start("failing", "x", 0)
		settled()
		began := time.Now()
		require.NoError(t, m.Retry(t.Context(), "x", ""))
		m.await("x", workflow.Done)
		require.Less(t, time.Since(began), 30*time.Second)
		time.Sleep(2 * time.Minute) // the item of the pause comes, and is over
		require.Equal(t, 2, calls)
		require.ErrorIs(t, m.Retry(t.Context(), "x", ""), workflow.ErrFinished)
	})
}

// TestRetryWithAnotherInput, also after a lost reply. The records of steps stay.
func TestRetryWithAnotherInput(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(newFunction("pay", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			if err := done.step(ctx, run, "reserve"); err != nil {
				return 0, err
			}
			if n < 0 {
				return 0, workflow.Permanent(fmt.Errorf("%d is negative", n))
			}
			return n, nil
		}))
		m.start("pay", "x", -1)
		m.await("x", workflow.Failed)
		err := m.Retry(t.Context(), "x", "", workflow.WithRetryInput(make(chan int)))
		require.ErrorIs(t, err, framework.ErrBadValue)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti})
		require.NoError(t, m.Retry(t.Context(), "x", "", workflow.WithRetryInput(7)))
		report := m.await("x", workflow.Done)
		require.JSONEq(t, "7", string(report.Result))
		require.JSONEq(t, "7", string(report.Input))
		require.Equal(t, []string{"reserve"}, done.all())
		require.ErrorIs(t, m.Start(t.Context(), "pay", "x", -1), workflow.ErrIDInUse)
		require.NoError(t, m.Start(t.Context(), "pay", "x", 7))
	})
}

func TestRetryFromAStep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		m.start("five", "x", 1)
		m.await("x", workflow.Done)
		err := m.Retry(t.Context(), "x", "9")
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, `it has ["0" "1" "2" "3" "4"]`)
		require.NoError(t, m.Retry(t.Context(), "x", "3"))
		m.await("x", workflow.Done)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "3", "4"}, done.all())
	})
}

// blocked is a kind whose function waits for its context or a release.
func blocked(done *doneLog, release <-chan struct{}) workflow.Function {
	return newFunction("blocked", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
		done.add("begins")
		defer done.add("ends")
		select {
		case <-release:
		case <-ctx.Done():
			done.add("%v", errors.Is(context.Cause(ctx), workflow.ErrCancelled))
			time.Sleep(10 * time.Second) // it does not heed its context at once
		}
		return 1, done.step(ctx, run, "step")
	})
}

func TestCancel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		release := make(chan struct{})
		m := w.flows("a").work(blocked(&done, release), approval(0))
		m.start("blocked", "x", 0)
		m.start("approval", "y", 0)
		settled()
		require.NoError(t, m.Cancel(t.Context(), "y", "not wanted"))
		require.Equal(t, "not wanted", m.await("y", workflow.Cancelled).Error)
		require.NoError(t, m.Cancel(t.Context(), "x", ""))
		require.NoError(t, m.Cancel(t.Context(), "x", ""))
		settled()
		require.Equal(t, []string{"begins", "true"}, done.all())
		require.NoError(t, m.Retry(t.Context(), "x", ""), "the executor still has it")
		require.ErrorIs(t, m.Retry(t.Context(), "x", ""), workflow.ErrNotFinished)
		settled()
		require.Equal(t, []string{"begins", "true"}, done.all(), "one executor at a time")
		close(release)
		m.await("x", workflow.Done)
		require.Equal(t, []string{"begins", "true", "ends", "begins", "step", "ends"}, done.all())
		require.ErrorIs(t, m.Cancel(t.Context(), "x", ""), workflow.ErrFinished)
		require.NoError(t, m.Retry(t.Context(), "y", ""))
		settled()
		require.Equal(t, workflow.Waiting, m.inspect("y").State)
	})
}

// TestServersRefuseRecordsOfFormerExecutors: the executor's server lags, so that it does not see
// that the run was cancelled, or that its claim is gone.
func TestServersRefuseRecordsOfFormerExecutors(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, operator *worker){
		"cancelled": func(t *testing.T, _ *world, operator *worker) {
			require.NoError(t, operator.Cancel(context.Background(), "x", ""))
			require.NoError(t, operator.Retry(context.Background(), "x", ""))
		},
		"without its claim": func(t *testing.T, w *world, operator *worker) {
			for _, n := range w.Tree(runsPath + "/queues/work/tickets") {
				if strings.Contains(n.Path, "/t-") {
					require.NoError(t, operator.Delete(context.Background(), n.Path, framework.AnyVersion))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var done, refused doneLog
				var m *worker
				operator := w.flows("operator")
				kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
					if len(refused.all()) > 0 {
						return 0, nil
					}
					s, err := m.Session(ctx)
					require.NoError(t, err)
					settled() // a write that is under way, such as the claim ahead, would bring the server up to date
					catchUp, err := w.LagAsLeader(s.ID())
					require.NoError(t, err)
					end(t, w, operator)
					require.NoError(t, ctx.Err())
					err = run.Do(ctx, "zombie", func(context.Context, workflow.Key) error { return nil })
					require.ErrorIs(t, err, workflow.ErrEnded)
					refused.add("zombie")
					catchUp()
					return 0, err
				}, workflow.WithWorkers(1))
				m = w.flows("a").work(kind)
				m.start("work", "x", 0)
				time.Sleep(time.Minute)
				require.Equal(t, []string{"zombie"}, refused.all())
				require.Empty(t, operator.inspect("x").Steps)
				require.Empty(t, done.all())
			})
		})
	}
}

// TestSignalWhileTheLimitIsOver: an executor has taken the run up since the time of its wait is
// over. The signal does not bring a second one.
func TestSignalWhileTheLimitIsOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a")
		kind := newFunction("approval", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
			done.add("begins")
			defer done.add("ends")
			if len(done.all()) == 3 {
				require.NoError(t, m.Signal(context.Background(), "x", "approved", "eve"))
				time.Sleep(10 * time.Second)
				require.NoError(t, ctx.Err())
			}
			by, err := workflow.Await[string](ctx, run, "approved", time.Minute)
			if errors.Is(err, framework.ErrTimeout) {
				by, err = "timed out", nil
			}
			return by, err
		})
		m.work(kind)
		m.start("approval", "x", 0)
		require.JSONEq(t, `"eve"`, string(m.await("x", workflow.Done).Result), "the signal was first")
		require.Equal(t, []string{"begins", "ends", "begins", "ends"}, done.all())
	})
}

// TestFormerItemsOfARunAreOver: the item of a limit comes while the run waits for something else.
func TestFormerItemsOfARunAreOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(newFunction("two",
			func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
				done.add("called")
				if _, err := workflow.Await[int](ctx, run, "first", time.Minute); err != nil {
					return "", err
				}
				return workflow.Await[string](ctx, run, "second", 0)
			}))
		m.start("two", "x", 0)
		settled()
		require.NoError(t, m.Signal(t.Context(), "x", "first", 1))
		time.Sleep(5 * time.Minute)
		require.Equal(t, workflow.Waiting, m.inspect("x").State)
		require.Len(t, done.all(), 2)
		require.NoError(t, m.Signal(t.Context(), "x", "second", "ok"))
		m.await("x", workflow.Done)
		require.Len(t, done.all(), 3)
	})
}

// TestChildThatEndsBesideTheSuspension: the child ends after its parent has looked and before that
// waits.
func TestChildThatEndsBesideTheSuspension(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a")
		m.work(fiveSteps(&done),
			newFunction("parent", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
				sum, err := child[int](ctx, run, "c", "five", n)
				if errors.Is(err, workflow.ErrWaiting) {
					m.await("x.c", workflow.Done)
				}
				return sum, err
			}))
		m.start("parent", "x", 100)
		require.JSONEq(t, "110", string(m.await("x", workflow.Done).Result))
	})
}

func TestFinishedRunsAreRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a", workflow.WithRetention(time.Hour)).work(fiveSteps(&done), approval(0))
		m.start("five", "x", 1)
		m.start("five", "again", 1)
		m.start("approval", "waits", 1)
		settled()
		require.NoError(t, m.Cancel(t.Context(), "waits", ""))
		require.NoError(t, m.Retry(t.Context(), "waits", ""), "it has an entry among those that have ended")
		m.await("again", workflow.Done)
		time.Sleep(50 * time.Minute)
		require.NoError(t, m.Retry(t.Context(), "again", "4"))
		m.await("again", workflow.Done)
		first := m.inspect("x")
		time.Sleep(50 * time.Minute)
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 2)
		_, err = m.Inspect(t.Context(), "x")
		require.ErrorIs(t, err, framework.ErrNotFound)
		_, err = m.Wait(t.Context(), "x")
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.Equal(t, workflow.Done, m.inspect("again").State)
		m.start("five", "x", 2)
		m.await("x", workflow.Done)
		require.True(t, m.inspect("x").Started.After(first.Started), "the id is used again")
		time.Sleep(3 * time.Hour)
		w.Reap()
		runs, err = failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, "waits", runs[0].ID)
	})
}

// TestRunWithForeignNodeKeepsNoOthers: somebody has created a node below a run's step, so that run
// cannot be removed. The others are, and it is when that node is gone.
func TestRunWithForeignNodeKeepsNoOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a", workflow.WithRetention(time.Hour)).work(fiveSteps(&done))
		m.start("five", "x", 1)
		m.await("x", workflow.Done)
		const foreign = runsPath + "/runs/87/x/step-4/foreign"
		require.NoError(t, m.Client.Create(t.Context(), foreign, nil, framework.Persistent))
		time.Sleep(2 * time.Minute)
		m.start("five", "second", 1)
		m.await("second", workflow.Done)
		time.Sleep(3 * time.Hour)
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, "x", runs[0].ID)
		require.NoError(t, m.Client.Delete(t.Context(), foreign, framework.AnyVersion))
		time.Sleep(time.Hour)
		runs, err = failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Empty(t, runs)
	})
}

// TestRetryBesideTheRemoval: a run is removed with all its records, or goes on with them.
func TestRetryBesideTheRemoval(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		fails := newFunction("fails", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			if err := done.step(ctx, run, "pay"); err != nil {
				return 0, err
			}
			return 0, workflow.Permanent(errors.New("no luck"))
		})
		a := w.flows("a", workflow.WithFailedRetention(time.Hour)).work(fails)
		b := w.flows("b")
		a.start("fails", "x", 1)
		a.await("x", workflow.Failed)
		a.Link.Delay(50 * time.Millisecond) // so that b comes between two of its requests
		deleted, once := make(chan struct{}), sync.Once{}
		defer w.Observe(func(q zktest.Request) {
			for _, part := range q.Parts {
				if part.Op == zktest.OpDelete && strings.HasSuffix(part.Path, "/step-pay") && part.Err == 0 {
					once.Do(func() { close(deleted) })
				}
			}
		})()
		select {
		case <-deleted:
		case <-time.After(12 * time.Hour):
			require.Fail(t, "the run is not removed")
		}
		err := b.Retry(t.Context(), "x", "")
		settled()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"pay"}, done.all())
		require.ErrorIs(t, err, framework.ErrNotFound)
	})
}

// TestLostRepliesOfRuns loses the answer of each request of a run in turn, with the connection.
func TestLostRepliesOfRuns(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpGetData, zktest.OpGetChildren, zktest.OpCreate,
		zktest.OpMultiRead} {
		for nth := 1; nth <= 14; nth++ {
			in(t, func(t *testing.T, w *world) {
				var done doneLog
				kind := newFunction("work", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
					if err := done.step(ctx, run, "before"); err != nil {
						return "", err
					}
					if err := run.Sleep(ctx, "nap", time.Second); err != nil {
						return "", err
					}
					by, err := workflow.Await[string](ctx, run, "approved", 0)
					if err != nil {
						return "", err
					}
					return by, done.step(ctx, run, "after")
				})
				m := w.flows("a").work(kind)
				settled()
				w.DropReply(nth, zktest.Match{Op: op})
				m.start("work", "x", 0)
				require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
				require.JSONEq(t, `"eve"`, string(m.await("x", workflow.Done).Result))
				require.Equal(t, []string{"before", "after"}, done.all(), "%s %d", op, nth)
				settled()
			})
		}
	}
}

func TestBadArgumentsOfRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a")
		ok := func(context.Context, *workflow.Run, int) (int, error) { return 0, nil }
		require.ErrorIs(t, m.Work(t.Context()), framework.ErrInvalid)
		require.ErrorIs(t, m.Register(workflow.Function{}), framework.ErrInvalid)
		require.ErrorIs(t, m.Register(newFunction("a/b", ok)), framework.ErrInvalid)
		require.ErrorIs(t, m.Register(newFunction[int, int]("a", nil)), framework.ErrInvalid)
		for _, opt := range []workflow.FunctionOption{workflow.WithWorkers(0), workflow.WithWorkers(257),
			workflow.WithRunAttempts(0, 1), workflow.WithRunAttempts(1, 0), workflow.WithMaxLosses(0)} {
			require.ErrorIs(t, m.Register(newFunction("a", ok, opt)), framework.ErrInvalid)
		}
		require.NoError(t, m.Register(newFunction("a", ok)))
		require.ErrorContains(t, m.Register(newFunction("a", ok)), "registered twice")
		require.ErrorIs(t, m.Start(t.Context(), "a", "", 1), framework.ErrInvalid)
		require.ErrorIs(t, m.Start(t.Context(), "a", "x", func() {}), framework.ErrBadValue)
		require.ErrorIs(t, m.Start(t.Context(), "a", "x", strings.Repeat("x", workflow.MaxResult)),
			framework.ErrTooLarge)
		require.ErrorIs(t, m.Cancel(t.Context(), "x", ""), framework.ErrNotFound)
		require.ErrorIs(t, m.Retry(t.Context(), "x", ""), framework.ErrNotFound)
		require.ErrorIs(t, workflow.New(m.Member.Client, "/a", workflow.WithRetention(0)).Validate(),
			framework.ErrInvalid)
		require.ErrorIs(t, workflow.New(m.Member.Client, "/a", workflow.WithGrace(-1)).Validate(), framework.ErrInvalid)
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Empty(t, runs)

		_, waits := any(&workflow.OpenLedger{}).(interface {
			Sleep(context.Context, string, time.Duration) error
		})
		require.False(t, waits, "only a run can wait")
		_, err = workflow.Await[int](t.Context(), nil, "s", 0)
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = child[int](t.Context(), nil, "s", "a", 0)
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}

// TestUnreadableRuns: foreign, broken and newer records stay as they are.
func TestUnreadableRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a")
		require.NoError(t, m.Register(fiveSteps(&done)))
		m.start("five", "x", 1)
		node := runNode(t, w, "x")
		for data, want := range map[string]error{
			"":                        framework.ErrBadRecord,
			`{"v":2}`:                 framework.ErrNewer,
			`{"v":1,"kind":"ledger"}`: framework.ErrForeign,
			`{"v":1,"kind":"run"}`:    framework.ErrForeign,
			`{"v":1,"kind":"run","id":"x","workflow":"five","state":"odd","turn":1,"input":1}`: framework.ErrBadRecord,
		} {
			_, err := m.Set(t.Context(), node, []byte(data), framework.AnyVersion)
			require.NoError(t, err)
			_, err = m.Inspect(t.Context(), "x")
			require.ErrorIs(t, err, want, data)
			_, err = m.Wait(t.Context(), "x")
			require.ErrorIs(t, err, want, data)
			require.ErrorIs(t, m.Cancel(t.Context(), "x", ""), want)
			m.start("five", "y", 1)
			runs, err := failure.Collect(m.List(t.Context()))
			require.ErrorIs(t, err, want, data)
			require.ErrorContains(t, err, node)
			require.Len(t, runs, 1, "the other run")
			require.Equal(t, "y", runs[0].ID)
		}
		require.NoError(t, m.Cancel(t.Context(), "y", ""))
		m.work()
		settled()
		require.Empty(t, done.all())
	})
}

// runNode is the node of a run.
func runNode(t *testing.T, w *world, id string) string {
	t.Helper()
	for _, n := range w.Tree(runsPath + "/runs") {
		if strings.HasSuffix(n.Path, "/"+id) {
			return n.Path
		}
	}
	t.Fatalf("there is no run %s", id)
	return ""
}

// TestLayoutOfRuns: other releases read these bytes.
func TestLayoutOfRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(time.Minute))
		m.start("approval", "x", 7)
		settled()
		node := runNode(t, w, "x")
		data, _, err := m.Get(t.Context(), node)
		require.NoError(t, err)
		var record map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &record))
		var id string
		require.NoError(t, json.Unmarshal(record["id"], &id))
		until := string(record["waits"][len(`[{"signal":"approved","until":`) : len(record["waits"])-2])
		require.Equal(t, `{"v":1,"kind":"run","id":"`+id+
			`","workflow":"approval","state":"waiting","turn":2,"input":7,"waits":[{"signal":"approved","until":`+until+
			`}]}`,
			strings.Replace(string(data), traceOf(record), "", 1))
		require.Equal(t, runsPath+"/runs/87/x", node)
		require.NoError(t, m.Signal(t.Context(), "x", "approved", "eve"))
		m.await("x", workflow.Done)
		for child, want := range map[string]string{"timer-approved": `{"v":1,"ms":60000}`,
			"signal-approved": `{"v":1,"data":"eve"}`} {
			data, _, err := m.Get(t.Context(), node+"/"+child)
			require.NoError(t, err)
			require.Equal(t, want, string(data))
		}
		require.Regexp(t, `^\d{8}T\d{4}$`, w.Children(runsPath + "/ended")[0])
		require.Equal(t, []string{"x,2"}, w.Children(runsPath+"/ended/"+w.Children(runsPath + "/ended")[0]))
	})
}

func traceOf(record map[string]json.RawMessage) string {
	if t, ok := record["trace"]; ok {
		return `,"trace":` + string(t)
	}
	return ""
}
