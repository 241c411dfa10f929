package workflow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestARunAtTheLimits: a run with 1,000 steps and nearly 2,000 signals, all with the longest names,
// gets one more signal that it waits for, is inspected, retried from its first step, and removed.
func TestARunAtTheLimits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		long := func(n int) string { return fmt.Sprintf("%0*d", workflow.MaxName, n) }
		kind := newFunction("big", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			if _, err := workflow.Await[int](ctx, run, long(0), 0); err != nil {
				return 0, err
			}
			for i := range n {
				if err := run.Do(ctx, long(10_000+i),
					func(context.Context, workflow.Key) error { return nil }); err != nil {
					return 0, err
				}
			}
			return workflow.Await[int](ctx, run, "last", 0)
		})
		m := w.member("a")
		f := &worker{m, workflow.New(m.Client, "/"+strings.Repeat("p", 89), workflow.WithRetention(time.Hour)), t,
			func() {}, func() {}, make(chan error, 1)}
		f.work(kind)
		defer func() { f.stop(); _ = f.Workflows.Close(context.Background()) }()
		id := strings.Repeat("i", workflow.MaxName)
		f.start("big", id, workflow.MaxSteps)
		for i := 1; i < 1998; i++ {
			require.NoError(t, f.Signal(t.Context(), id, long(i), 1))
		}
		require.NoError(t, f.Signal(t.Context(), id, long(0), 1))
		settled()
		require.NoError(t, f.Signal(t.Context(), id, "last", 7))
		f.await(id, workflow.Done)
		require.NoError(t, f.Retry(t.Context(), id, long(10_000)))
		require.JSONEq(t, "7", string(f.await(id, workflow.Done).Result))
		report := f.inspect(id)
		require.Len(t, report.Steps, workflow.MaxSteps)
		require.Len(t, report.Signals, 1999)
		time.Sleep(3 * time.Hour)
		_, err := f.Inspect(t.Context(), id)
		require.ErrorIs(t, err, framework.ErrNotFound)
	})
}

// TestARetryDeletesAllOrNothing, however many records there are: another Retry that comes meanwhile
// finds all of them, or the run active.
func TestARetryDeletesAllOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		records, nameLength int
		want                error
	}{
		"more than the steps of a run":    {workflow.MaxSteps + 1, 8, nil},
		"as many as go into a request":    {2400, workflow.MaxName, nil},
		"more than go into a transaction": {2600, workflow.MaxName, framework.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				kind := newFunction("f", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
					err := run.Do(ctx, "first", func(context.Context, workflow.Key) error { return nil })
					return 0, workflow.Permanent(cmp.Or(err, errors.New("no disk")))
				})
				base := "/" + strings.Repeat("p", 89)
				open := func(name string) *worker {
					m := w.member(name)
					return &worker{m, workflow.New(m.Client, base), t, func() {}, func() {}, make(chan error, 1)}
				}
				a, operator := open("a"), open("operator")
				a.work(kind)
				id := strings.Repeat("i", workflow.MaxName)
				a.start("f", id, 1)
				a.await(id, workflow.Failed)
				a.stop()
				run := base + "/runs/" + w.Children(base + "/runs")[0] + "/" + id
				for i := range c.records {
					require.NoError(t, a.Create(t.Context(), fmt.Sprintf("%s/timer-%0*d", run, c.nameLength, i), nil,
						framework.Persistent))
				}
				before := len(w.Children(run))
				require.Equal(t, c.records+1, before)
				s, err := operator.Session(t.Context())
				require.NoError(t, err)
				slow := w.DelayReplies(5*time.Second, zktest.Match{Op: zktest.OpMulti, Session: s.ID(), Path: run,
					Func: zktest.Request.Writes})
				retried := make(chan error)
				go func() { retried <- operator.Retry(t.Context(), id, "first") }()
				settled()
				slow.Cancel()
				other := a.Retry(t.Context(), id, "")
				require.ErrorIs(t, <-retried, c.want)
				if c.want == nil {
					require.ErrorIs(t, other, workflow.ErrNotFinished)
					require.Empty(t, w.Children(run))
				} else {
					require.NoError(t, other)
					require.Len(t, w.Children(run), before)
				}
				for _, m := range []*worker{a, operator} {
					require.NoError(t, m.Workflows.Close(t.Context()))
				}
			})
		})
	}
}

// TestSignalsOfOthersDoNotEndARun: somebody sends signals to a run that only sleeps and takes
// steps, until there is no room for more.
func TestSignalsOfOthersDoNotEndARun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := newFunction("naps", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			for i := range n {
				if err := run.Do(ctx, fmt.Sprint("step", i),
					func(context.Context, workflow.Key) error { return nil }); err != nil {
					return 0, err
				}
				if err := run.Sleep(ctx, fmt.Sprint("nap", i), time.Hour); err != nil {
					return 0, err
				}
			}
			return workflow.Await[int](ctx, run, "own", 0)
		})
		m := w.flows("a").work(kind)
		m.start("naps", "p", 3)
		settled()
		sent := 0
		var err error
		for ; err == nil; sent++ {
			err = m.Signal(t.Context(), "p", fmt.Sprint("s", sent), 1)
		}
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.Equal(t, 2001, sent)
		time.Sleep(5 * time.Hour)
		require.NoError(t, m.Signal(t.Context(), "p", "own", 7), "the run waits for it")
		require.JSONEq(t, "7", string(m.await("p", workflow.Done).Result))
	})
}

// TestARunThatMayNotBeReadKeepsNoOthers: the access to a record of a finished run was taken away.
// Other runs are removed.
func TestARunThatMayNotBeReadKeepsNoOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a", workflow.WithRetention(time.Hour)).work(fiveSteps(&done))
		m.start("five", "x", 1)
		m.await("x", workflow.Done)
		conn, _, err := zk.Connect(w.Servers(), 10*time.Second, zk.WithDialer(w.Link("operator").Dial),
			zk.WithLogInfo(false))
		require.NoError(t, err)
		_, err = conn.SetACL(runsPath+"/runs/87/x/step-4", zk.WorldACL(zk.PermWrite|zk.PermAdmin), -1)
		require.NoError(t, err)
		conn.Close()
		time.Sleep(2 * time.Minute)
		m.start("five", "second", 1)
		m.await("second", workflow.Done)
		time.Sleep(3 * time.Hour)
		runs, err := failure.Collect(m.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, "x", runs[0].ID)
	})
}

// TestAStepWithRetriesMayWait: the wait is no failure of the step.
func TestAStepWithRetriesMayWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := newFunction("order", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return workflow.Step(ctx, run, "pay", func(ctx context.Context, _ workflow.Key) (int, error) {
				return workflow.Await[int](ctx, run, "paid", time.Hour)
			}, workflow.WithStepAttempts(3, time.Second))
		})
		m := w.flows("a").work(kind)
		m.start("order", "p", 0)
		settled()
		report := m.inspect("p")
		require.Len(t, report.Waits, 1)
		require.Contains(t, report.Waits[0], `signal "paid"`)
		require.NoError(t, m.Signal(t.Context(), "p", "paid", 7))
		require.JSONEq(t, "7", string(m.await("p", workflow.Done).Result))
	})
}

// TestNamesOfDots: no node can have such a name, and no call waits for one.
func TestNamesOfDots(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		for _, name := range []string{".", ".."} {
			require.ErrorIs(t, m.Start(t.Context(), "five", name, 1), framework.ErrInvalid)
			_, err := m.Inspect(t.Context(), name)
			require.ErrorIs(t, err, framework.ErrInvalid)
			_, err = m.Wait(t.Context(), name)
			require.ErrorIs(t, err, framework.ErrInvalid)
			require.ErrorIs(t, m.Signal(t.Context(), name, "x", 1), framework.ErrInvalid)
			require.ErrorIs(t, m.Cancel(t.Context(), name, ""), framework.ErrInvalid)
			kind := newFunction(name, func(context.Context, *workflow.Run, int) (int, error) { return 0, nil })
			require.ErrorIs(t, w.flows("b"+name).Register(kind), framework.ErrInvalid)
		}
	})
}

// TestWaitForARunWhoseIDIsUsedAgain: the run is removed and its id used again while the caller is
// cut off. Its Wait does not return the other run.
func TestWaitForARunWhoseIDIsUsedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		kind := newFunction("answer", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			return workflow.Await[int](ctx, run, "go", 0)
		})
		m := w.flows("m", workflow.WithRetention(time.Minute)).work(kind)
		m.start("answer", "x", 1)
		settled()
		caller := w.flows("caller")
		waited := make(chan error, 1)
		go func() {
			_, err := caller.Wait(t.Context(), "x")
			waited <- err
		}()
		settled()
		caller.Link.Cut()
		require.NoError(t, m.Cancel(t.Context(), "x", "no need"))
		for removed := false; !removed; time.Sleep(time.Second) {
			_, err := m.Inspect(t.Context(), "x")
			removed = errors.Is(err, framework.ErrNotFound)
		}
		m.start("answer", "x", 2)
		require.NoError(t, m.Signal(t.Context(), "x", "go", 7))
		m.await("x", workflow.Done)
		caller.Link.Heal()
		require.ErrorIs(t, <-waited, framework.ErrNotFound)
	})
}
