package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// twoChildren is a kind whose runs have the children a and b. When a has ended and b has not, the
// function works before it waits for b again. It does not read b then.
func twoChildren(work func(ctx context.Context, run *workflow.Run)) workflow.Function {
	return newFunction("two", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
		a, errA := child[string](ctx, run, "a", "approval", 0)
		b, errB := child[string](ctx, run, "b", "approval", 0)
		if errA == nil && errB != nil {
			work(ctx, run)
		}
		return a + " and " + b, errors.Join(errA, errB)
	}, workflow.WithRunAttempts(1, time.Second))
}

// TestAChildThatEndsWhileItsParentWorks: the parent was waiting for it before, and does not read it
// before it waits again.
func TestAChildThatEndsWhileItsParentWorks(t *testing.T) {
	long := func(context.Context, *workflow.Run) { time.Sleep(time.Hour) }
	signalled := func(t *testing.T, m *worker, child string) {
		require.NoError(t, m.Signal(t.Context(), "x."+child, "approved", child))
		m.await("x."+child, workflow.Done)
	}
	begin := func(t *testing.T, w *world, work func(ctx context.Context, run *workflow.Run)) (parent,
		children *worker) {
		children = w.flows("children").work(approval(0))
		settled() // then the kind is known
		parent = w.flows("parent").work(twoChildren(work))
		parent.start("two", "x", 0)
		settled()
		signalled(t, children, "a")
		settled()
		return parent, children
	}
	t.Run("while its function works", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			_, children := begin(t, w, long)
			signalled(t, children, "b")
			require.JSONEq(t, `"a and b"`, string(children.await("x", workflow.Done).Result))
		})
	})
	t.Run("and its executor is lost", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			parent, children := begin(t, w, long)
			signalled(t, children, "b")
			parent.kill()
			next := w.flows("next").work(twoChildren(func(context.Context, *workflow.Run) {}))
			require.JSONEq(t, `"a and b"`, string(next.await("x", workflow.Done).Result))
		})
	})
	t.Run("and is cancelled", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			parent, children := begin(t, w, func(context.Context, *workflow.Run) {})
			require.Equal(t, []string{`child run "x.b"`}, parent.inspect("x").Waits)
			require.NoError(t, parent.Cancel(t.Context(), "x", ""))
			signalled(t, children, "b")
			require.NoError(t, parent.Retry(t.Context(), "x", ""))
			require.JSONEq(t, `"a and b"`, string(parent.await("x", workflow.Done).Result))
		})
	})
	t.Run("and has looked", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			children := w.flows("children").work(approval(0))
			parent := w.flows("parent")
			var works, once atomic.Bool
			came := make(chan error, 1)
			own := func() framework.SessionID { return parent.Client.Status().SessionID }
			w.Observe(func(q zktest.Request) {
				if q.Op == zktest.OpExists && q.Session == own() && strings.HasSuffix(q.Path, "/x/ends") &&
					works.Load() && once.CompareAndSwap(false, true) {
					go func() { came <- children.Signal(context.Background(), "x.b", "approved", "b") }()
				}
			})
			parent.work(twoChildren(func(context.Context, *workflow.Run) { works.Store(true) }))
			settled()
			parent.Link.Delay(300 * time.Millisecond)
			parent.start("two", "x", 0)
			time.Sleep(time.Minute)
			signalled(t, children, "a")
			require.NoError(t, <-came)
			require.JSONEq(t, `"a and b"`, string(children.await("x", workflow.Done).Result))
		})
	})
}

// TestRecordsThatWereReadBefore: a member has read the steps of a run. The run is retried, another
// member records some of them anew, and the first one executes the run again.
func TestRecordsThatWereReadBefore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const steps = 20
		kind := func(member string, waits ...string) workflow.Function {
			return newFunction("work",
				func(ctx context.Context, run *workflow.Run, _ int) (all string, err error) {
					for i := range steps {
						by, err := workflow.Step(ctx, run, fmt.Sprint(i),
							func(context.Context, workflow.Key) (string, error) { return member, nil })
						if err != nil {
							return "", err
						}
						all += by
					}
					for _, signal := range waits {
						if _, err := workflow.Await[int](ctx, run, signal, 0); err != nil {
							return "", err
						}
					}
					return all, nil
				})
		}
		a, b := w.flows("a"), w.flows("b")
		a.work(kind("a", "first"))
		a.start("work", "x", 0)
		settled()
		require.NoError(t, a.Signal(t.Context(), "x", "first", 0))
		require.JSONEq(t, `"`+strings.Repeat("a", steps)+`"`, string(a.await("x", workflow.Done).Result))
		a.stop()
		require.NoError(t, a.Retry(t.Context(), "x", "10"))
		b.work(kind("b", "second"))
		settled()
		require.Equal(t, workflow.Waiting, b.inspect("x").State)
		b.stop()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- a.Work(ctx) }()
		require.NoError(t, b.Signal(t.Context(), "x", "second", 0))
		require.JSONEq(t, `"`+strings.Repeat("a", 10)+strings.Repeat("b", steps-10)+`"`,
			string(b.await("x", workflow.Done).Result))
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestAChildThatIsGoneEndsTheWait: only its kept id is left when the run is to wait for it.
func TestAChildThatIsGoneEndsTheWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		operator := w.flows("operator")
		parent := newFunction("parent", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
			got, err := child[string](ctx, run, "c", "approval", 0)
			if errors.Is(err, workflow.ErrWaiting) {
				former := `{"v":1,"kind":"former","workflow":"approval","input":"0","until":4102444800000}`
				if _, gone := operator.Set(ctx, runNode(t, w, "p.c"), []byte(former),
					framework.AnyVersion); gone != nil {
					return "", gone
				}
			}
			return got, err
		}, workflow.WithRunAttempts(1, time.Second))
		m := w.flows("m").work(parent, approval(0))
		m.start("parent", "p", 0)
		settled()
		require.Contains(t, m.inspect("p").Error, "its id is kept until")
	})
}
