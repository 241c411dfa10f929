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

	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// fanOut is a kind whose runs have so many children at once as their input says.
func fanOut() workflow.Function {
	return newFunction("parent", func(ctx context.Context, run *workflow.Run, children int) (int, error) {
		var each []func(context.Context) error
		for i := range children {
			each = append(each, func(ctx context.Context) error {
				_, err := child[int](ctx, run, fmt.Sprint(i), "child", i)
				if errors.Is(err, workflow.ErrFailed) {
					return nil
				}
				return err
			})
		}
		return children, run.Parallel(ctx, each...)
	})
}

// TestChildrenThatEndAtOnceAreExecutedOnce: each end wakes the parent, and the servers refuse the
// ends that have read the parent before. These are written again, and no function is called again.
func TestChildrenThatEndAtOnceAreExecutedOnce(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": errors.New("no luck")} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				const children = 20
				var calls doneLog
				child := newFunction("child", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
					calls.add("%d", n)
					time.Sleep(10 * time.Minute)
					return n, outcome
				}, workflow.WithWorkers(children), workflow.WithRunAttempts(1, time.Second))
				var m *worker
				for i := range 2 {
					m = w.flows(fmt.Sprint("m", i)).work(fanOut(), child)
					m.Link.Delay(time.Millisecond) // so that several read the parent before one of them wakes it
				}
				refused := w.countRefusals()
				m.start("parent", "p", children)
				m.await("p", workflow.Done)
				require.Len(t, calls.all(), children)
				require.Positive(t, refused(), "else the test shows nothing")
			})
		})
	}
}

// countRefusals counts the transactions that the servers refuse because a run's record has changed.
func (w *world) countRefusals() (count func() int64) {
	var refused atomic.Int64
	w.Observe(func(q zktest.Request) {
		for _, part := range q.Parts {
			if q.Op == zktest.OpMulti && part.Err != 0 && strings.HasPrefix(part.Path, runsPath+"/runs/") {
				refused.Add(1)
				return
			}
		}
	})
	return refused.Load
}

// operationsOfAFanOut counts the operations on workflows of a run with so many children, which end
// one after another.
func operationsOfAFanOut(t *testing.T, children, members int) (operations int64) {
	in(t, func(t *testing.T, w *world) {
		child := newFunction("child", func(ctx context.Context, run *workflow.Run, i int) (int, error) {
			return i, run.Sleep(ctx, "work", time.Duration(i+1)*time.Minute)
		})
		var m *worker
		for i := range members {
			m = w.flows(fmt.Sprint("m", i)).work(fanOut(), child)
		}
		var counted atomic.Int64
		w.Observe(func(q zktest.Request) {
			for _, part := range append(q.Parts, q) {
				if strings.HasPrefix(part.Path, runsPath+"/") {
					counted.Add(1)
				}
			}
		})
		m.start("parent", "p", children)
		m.await("p", workflow.Done)
		operations = counted.Load()
	})
	return operations
}

// TestCostOfAFanOut: the parent's function is called again after each end. Then it reads the child
// that has ended, and no other one: a child costs the same with 20 and with 160 children.
func TestCostOfAFanOut(t *testing.T) {
	for _, members := range []int{1, 2} {
		few, many := operationsOfAFanOut(t, 20, members)/20, operationsOfAFanOut(t, 160, members)/160
		require.Less(t, float64(many), 1.3*float64(few))
	}
}

// TestWhatComesBetweenTheLookAndTheSuspension: the executor has read that nothing has come, and its
// transaction is on its way. The servers refuse it.
func TestWhatComesBetweenTheLookAndTheSuspension(t *testing.T) {
	for name, come := range map[string]func(ctx context.Context, b *worker) error{
		"signal": func(ctx context.Context, b *worker) error { return b.Signal(ctx, "x", "approved", "eve") },
		"child":  func(ctx context.Context, b *worker) error { return b.Cancel(ctx, "x.c", "no need") },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var returned, once atomic.Bool
				kind := newFunction("waits",
					func(ctx context.Context, run *workflow.Run, _ int) (got string, err error) {
						defer returned.Store(true)
						if name == "signal" {
							return workflow.Await[string](ctx, run, "approved", 0)
						}
						got, err = child[string](ctx, run, "c", "never", 0)
						if errors.Is(err, workflow.ErrCancelled) {
							return "cancelled", nil
						}
						return got, err
					})
				never := newFunction("never", func(ctx context.Context, run *workflow.Run, _ int) (string, error) {
					return workflow.Await[string](ctx, run, "never", 0)
				})
				b := w.flows("b").work(never)
				a := w.flows("a").work(kind)
				settled()
				a.Link.Delay(50 * time.Millisecond)
				came := make(chan error, 1)
				own := a.Client.Status().SessionID
				w.Observe(func(q zktest.Request) {
					if q.Op == zktest.OpMultiRead && q.Session == own && returned.Load() &&
						once.CompareAndSwap(false, true) {
						// the look
						go func() { came <- come(context.Background(), b) }()
					}
				})
				a.start("waits", "x", 0)
				require.NoError(t, <-came)
				a.await("x", workflow.Done)
			})
		})
	}
}
