package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAChildStaysAsLongAsItsParent: a parent that goes on long after its child has ended gets the
// same outcome, and not another child.
func TestAChildStaysAsLongAsItsParent(t *testing.T) {
	for _, outcome := range []workflow.State{workflow.Done, workflow.Failed, workflow.Cancelled} {
		in(t, func(t *testing.T, w *world) {
			var children doneLog
			parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
				_, failed := child[int](ctx, run, "c", "child", 0)
				if errors.Is(failed, workflow.ErrWaiting) {
					return "", failed
				}
				if _, err := workflow.Await[string](ctx, run, "go", 0); err != nil {
					return "", err
				}
				return fmt.Sprint(failed), nil
			})
			child := newFunction("child", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
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
			runs, err := failure.Collect(m.List(t.Context()))
			require.NoError(t, err)
			require.Empty(t, runs)
		})
	}
}

// TestAChildOfAnUnknownKindIsRefused: a misspelt kind makes no run that waits for ever, and does
// not become known.
func TestAChildOfAnUnknownKindIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return child[int](ctx, run, "c", "chlid", 0)
		}, workflow.WithRunAttempts(2, time.Second))
		m := w.flows("a").work(parent)
		m.start("parent", "p", 0)
		report := m.await("p", workflow.Failed)
		require.Contains(t, report.Error, `"chlid"`)
		require.Contains(t, report.Error, "no member knows the kind")
		_, err := m.Inspect(t.Context(), "p.c")
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.NotContains(t, w.Children(runsPath+"/queues"), "chlid")
	})
}

// TestAChildKeepsItsInput: a release adds a field to the input of a child. A parent that waits for
// its child goes on with that release.
func TestAChildKeepsItsInput(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		parent := func(input any) workflow.Function {
			return newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
				return child[string](ctx, run, "search", "search", input)
			})
		}
		child := newFunction("search",
			func(ctx context.Context, run *workflow.Run, in map[string]any) (string, error) {
				found, err := workflow.Await[string](ctx, run, "found", 0)
				return fmt.Sprint(found, len(in)), err
			})
		former := w.flows("former").work(parent(map[string]any{"order": 42}), child)
		former.start("parent", "p", 0)
		settled()
		former.stop()
		next := w.flows("next").work(parent(map[string]any{"order": 42, "fast": true}), child)
		require.NoError(t, next.Signal(t.Context(), "p.search", "found", "here"))
		require.JSONEq(t, `"here1"`, string(next.await("p", workflow.Done).Result))
	})
}

// TestAChildOfAnotherKindOrParentIsRefused: its outcome is not that of the child that the run asks
// for.
func TestAChildOfAnotherKindOrParentIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		parent := func(kind string) workflow.Function {
			return newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
				if _, err := child[int](ctx, run, "c", kind, 0); err != nil {
					return 0, err
				}
				return 0, nil
			}, workflow.WithRunAttempts(1, time.Second))
		}
		other := newFunction("other", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			return workflow.Await[int](ctx, run, "never", 0)
		})
		former := w.flows("former").work(parent("other"), fiveSteps(&done), other)
		former.start("parent", "kind", 0)
		former.start("five", "owner.c", 0)
		settled()
		former.stop()
		next := w.flows("next").work(parent("five"), fiveSteps(&done), other)
		next.start("parent", "owner", 0)
		require.Contains(t, next.await("owner", workflow.Failed).Error, "not started by the same parent")
		require.NoError(t, next.Cancel(t.Context(), "kind.c", "")) // it wakes its parent
		require.Contains(t, next.await("kind", workflow.Failed).Error, `run "kind.c" is a other, not a five`)
	})
}

// TestAnIDUsedAgainHasItsOwnChildren: the former run of the id has left a child. One that has ended
// is replaced. The run waits for the end of another one.
func TestAnIDUsedAgainHasItsOwnChildren(t *testing.T) {
	for _, left := range []workflow.State{workflow.Done, workflow.Failed, workflow.Waiting} {
		t.Run(string(left), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var children doneLog
				parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
					got, err := child[int](ctx, run, "c", "child", n)
					if errors.Is(err, workflow.ErrFailed) {
						return -1, nil
					}
					return got, err
				})
				child := newFunction("child", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
					children.add("%s", run.UUID())
					switch {
					case n == 2 || left == workflow.Done:
						return n, run.Do(ctx, "step", func(context.Context, workflow.Key) error { return nil })
					case left == workflow.Failed:
						return 0, workflow.Permanent(errors.New("no luck"))
					}
					return workflow.Await[int](ctx, run, "never", 0)
				})
				m := w.flows("a", workflow.WithRetention(time.Hour)).work(parent, child)
				m.start("parent", "p", 1)
				settled()
				if left == workflow.Waiting {
					require.NoError(t, m.Cancel(t.Context(), "p", "no need"))
				}
				for removed := false; !removed; time.Sleep(10 * time.Second) {
					_, err := m.Inspect(t.Context(), "p")
					removed = errors.Is(err, framework.ErrNotFound)
				}
				m.start("parent", "p", 2)
				if left == workflow.Waiting {
					settled()
					require.Equal(t, []string{`child run "p.c"`}, m.inspect("p").Waits)
					require.NoError(t, m.Cancel(t.Context(), "p.c", "its parent is gone"))
				}
				require.JSONEq(t, "2", string(m.await("p", workflow.Done).Result))
				require.Equal(t, children.all()[len(children.all())-1], m.inspect("p.c").UUID)
				require.Len(t, children.all(), 2)
			})
		})
	}
}

// TestACancelledRunStartsNoChild: the executor does not know yet that its run was cancelled. The
// servers refuse its child.
func TestACancelledRunStartsNoChild(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		goOn, failed := make(chan struct{}), make(chan error, 1)
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (int, error) {
			<-goOn
			n, err := child[int](ctx, run, "c", "child", 0)
			failed <- err
			return n, err
		})
		child := newFunction("child", func(context.Context, *workflow.Run, int) (int, error) { return 0, nil })
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
		require.ErrorIs(t, err, framework.ErrNotFound)
		a.Link.Heal()
		require.ErrorIs(t, <-failed, workflow.ErrEnded)
		settled()
		_, err = b.Inspect(t.Context(), "p.c")
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.Equal(t, workflow.Cancelled, b.inspect("p").State)
	})
}

// TestAStartAboveAQuotaIsRefused: the call ends with the servers' refusal, which a repetition does
// not help.
func TestAStartAboveAQuotaIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		m := w.flows("a").work(fiveSteps(&done))
		m.start("five", "x", 1)
		m.await("x", workflow.Done)
		limits := "/zookeeper/quota" + runsPath
		require.NoError(t, m.Create(t.Context(), limits, nil, framework.Persistent))
		require.NoError(t, m.Create(t.Context(), limits+"/zookeeper_stats", []byte("count=0,bytes=0"),
			framework.Persistent))
		require.NoError(t, m.Create(t.Context(), limits+"/zookeeper_limits",
			[]byte("count=-1,bytes=-1,countHardLimit=1"), framework.Persistent))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, m.Start(ctx, "five", "y", 1), framework.ErrQuotaExceeded)
	}, zktest.WithEnforcedQuotas())
}
