package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTwoChildrenThatEndAtOnce: both read their parent as waiting and want to wake it. The servers refuse the later one, which reads the parent again at once.
func TestTwoChildrenThatEndAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const children = 4
		parent := workflow.NewKind("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			var each []func(context.Context) error
			for i := range children {
				each = append(each, func(ctx context.Context) error {
					_, err := workflow.Child[int](ctx, run, fmt.Sprint(i), "child", i)
					return err
				})
			}
			return children, run.Parallel(ctx, each...)
		})
		child := workflow.NewKind("child", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			return n, run.Sleep(ctx, "nap", time.Minute)
		}, workflow.WithWorkers(children))
		m := w.flows("a").work(parent, child)
		m.Link.Delay(20 * time.Millisecond) // so that each one reads the parent before another one wakes it
		began := time.Now()
		m.start("parent", "p", 0)
		m.await("p", workflow.Done)
		require.Less(t, time.Since(began), 2*time.Minute)
		for i := range children {
			require.Equal(t, workflow.Done, m.inspect(fmt.Sprint("p.", i)).State)
		}
	})
}

// TestAChildStaysAsLongAsItsParent: a parent that goes on long after its child has ended gets the same outcome, and not another child.
func TestAChildStaysAsLongAsItsParent(t *testing.T) {
	for _, outcome := range []workflow.State{workflow.Done, workflow.Failed, workflow.Cancelled} {
		in(t, func(t *testing.T, w *world) {
			var children doneLog
			parent := workflow.NewKind("parent", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
				_, failed := workflow.Child[int](ctx, run, "c", "child", 0)
				if errors.Is(failed, workflow.ErrWaiting) {
					return "", failed
				}
				if _, err := workflow.Await[string](ctx, run, "go", 0); err != nil {
					return "", err
				}
				return fmt.Sprint(failed), nil
			})
			child := workflow.NewKind("child", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				children.add("%s", run.UUID())
				switch outcome {
				case workflow.Failed:
					return 0, workflow.Permanent(errors.New("no luck"))
				case workflow.Cancelled:
					return 0, run.Sleep(ctx, "nap", time.Hour)
				}
				return 1, nil
			})
			retention := []workflow.Option{workflow.WithRetention(time.Hour), workflow.WithFailedRetention(time.Hour)}
			m := w.flows("a", retention...).work(parent, child)
			m.start("parent", "p", 0)
			settled()
			if outcome == workflow.Cancelled {
				require.NoError(t, m.Cancel(t.Context(), "p.c", "no need"))
				settled()
			}
			time.Sleep(24 * time.Hour)
			require.Equal(t, outcome, m.inspect("p.c").State)
			require.NoError(t, m.Signal(t.Context(), "p", "go", "on"))
			result := string(m.await("p", workflow.Done).Result)
			require.Len(t, children.all(), 1)
			if outcome != workflow.Done {
				require.Contains(t, result, "p.c")
			}
			time.Sleep(4 * time.Hour) // the parent, and then the child
			runs, err := m.List(t.Context())
			require.NoError(t, err)
			require.Empty(t, runs)
		})
	}
}

// TestAChildOfAnUnknownKindIsRefused: a misspelt kind makes no run that waits for ever, and does not become known.
func TestAChildOfAnUnknownKindIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		parent := workflow.NewKind("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return workflow.Child[int](ctx, run, "c", "chlid", 0)
		}, workflow.WithAttempts(2, time.Second))
		m := w.flows("a").work(parent)
		m.start("parent", "p", 0)
		info := m.await("p", workflow.Failed)
		require.Contains(t, info.Error, `"chlid"`)
		require.Contains(t, info.Error, "no member knows the kind")
		_, err := m.Inspect(t.Context(), "p.c")
		require.ErrorIs(t, err, workflow.ErrNoRun)
		require.ErrorIs(t, m.Start(t.Context(), "chlid", "x", 0), workflow.ErrUnknownKind)
	})
}

// TestACancelledRunStartsNoChild: the executor does not know yet that its run was cancelled. The servers refuse its child.
func TestACancelledRunStartsNoChild(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		goOn, failed := make(chan struct{}), make(chan error, 1)
		parent := workflow.NewKind("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			<-goOn
			n, err := workflow.Child[int](ctx, run, "c", "child", 0)
			failed <- err
			return n, err
		})
		child := workflow.NewKind("child", func(context.Context, *workflow.Run, int) (int, error) { return 0, nil })
		a := w.flows("a").work(parent, child)
		b := w.flows("b")
		a.start("parent", "p", 0)
		settled()
		for shard := range 256 { // so that the child needs one request
			require.NoError(t, b.MakeDirs(t.Context(), fmt.Sprintf("%s/runs/%02x", runsPath, shard)))
		}
		a.start("child", "other", 0)
		a.await("other", workflow.Done)
		a.Link.BlackHole(false, true)
		require.NoError(t, b.Cancel(t.Context(), "p", "no need"))
		close(goOn)
		settled()
		_, err := b.Inspect(t.Context(), "p.c")
		require.ErrorIs(t, err, workflow.ErrNoRun)
		a.Link.Heal()
		require.ErrorIs(t, <-failed, workflow.ErrEnded)
		settled()
		_, err = b.Inspect(t.Context(), "p.c")
		require.ErrorIs(t, err, workflow.ErrNoRun)
		require.Equal(t, workflow.Cancelled, b.inspect("p").State)
	})
}

// TestAStartAboveAQuotaIsRefused: the call ends with the servers' refusal, which a repetition does not help.
func TestAStartAboveAQuotaIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		m.start("five", "x", 1)
		m.await("x", workflow.Done)
		limits := "/zookeeper/quota" + runsPath
		require.NoError(t, m.Create(t.Context(), limits, nil, framework.Persistent))
		require.NoError(t, m.Create(t.Context(), limits+"/zookeeper_stats", []byte("count=0,bytes=0"), framework.Persistent))
		require.NoError(t, m.Create(t.Context(), limits+"/zookeeper_limits", []byte("count=-1,bytes=-1,countHardLimit=1"), framework.Persistent))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, m.Start(ctx, "five", "y", 1), framework.ErrQuotaExceeded)
	}, zktest.WithEnforcedQuotas())
}
