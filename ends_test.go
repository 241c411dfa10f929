package lockstep_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/queue/curatorqueue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// A call is one that lasts until its context ends. Another client holds what it waits for.
type call func(ctx context.Context, c *framework.Client) error

// follow is the call that reads a live view to its end.
func follow[T any](view func(ctx context.Context, c *framework.Client) iter.Seq2[T, error]) call {
	return func(ctx context.Context, c *framework.Client) error {
		var last error
		for _, err := range view(ctx, c) {
			last = err
		}
		return last
	}
}

type tree struct{ Rate int }

// TestCallsThatRunUntilTheirContextEndsReturnNil (ADR 119), and live views end without an error.
func TestCallsThatRunUntilTheirContextEndsReturnNil(t *testing.T) {
	untilDone := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, run := range map[string]call{
		"election.Lead as the leader": func(ctx context.Context, c *framework.Client) error {
			return election.New(c, "/free").Lead(ctx, func(ctx context.Context, _ *election.Term) error {
				return untilDone(ctx)
			})
		},
		"election.Lead in line": func(ctx context.Context, c *framework.Client) error {
			return election.New(c, "/election").Lead(ctx, func(context.Context, *election.Term) error { return nil })
		},
		"scheduler.Run": func(ctx context.Context, c *framework.Client) error {
			s := scheduler.New(c, "/jobs")
			err := s.Add(scheduler.Job{Name: "a", Spec: "@every 1m",
				Run: func(context.Context, scheduler.Run) error { return nil }})
			return errors.Join(err, s.Run(ctx))
		},
		"queue.Work": func(ctx context.Context, c *framework.Client) error {
			q := queue.New(c, "/queue", codec.Bytes())
			defer func() { _ = q.Close(ctx) }()
			return q.Work(ctx, 1, func(context.Context, *queue.Delivery[[]byte]) error { return nil })
		},
		"workflow.Work": func(ctx context.Context, c *framework.Client) error {
			w := workflow.New(c, "/others")
			defer func() { _ = w.Close(ctx) }()
			err := w.Register(workflow.NewKind[int, int]("order").Function(
				func(ctx context.Context, _ *workflow.Run, _ int) (int, error) { return 0, untilDone(ctx) }))
			return errors.Join(err, w.Work(ctx))
		},
		"monitor.Run": func(ctx context.Context, c *framework.Client) error {
			return monitor.New(c, "/monitor", "/").Run(ctx)
		},
		"config.Run": func(ctx context.Context, c *framework.Client) error {
			return config.New(c, "/value", codec.Text(), config.WithDefault("")).Run(ctx)
		},
		"config.Tree.Run": func(ctx context.Context, c *framework.Client) error {
			return config.NewTree[tree](c, []string{"/tree"}).Run(ctx)
		},
		"lockstep.Run": func(ctx context.Context, c *framework.Client) error {
			return lockstep.Run(ctx, c, []lockstep.Part{lockstep.Go("work", untilDone)})
		},
		"config.Tree.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[config.Snapshot[tree], error] {
			return config.NewTree[tree](c, []string{"/tree"}).Follow(ctx)
		}),
		"framework.FollowState": func(ctx context.Context, c *framework.Client) error {
			for range c.FollowState(ctx) { //nolint:revive // read to its end
			}
			return nil
		},
		"framework.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[framework.NodeValue, error] {
			return c.Follow(ctx, "/value")
		}),
		"election.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[*election.Candidate, error] {
			return election.New(c, "/election").Follow(ctx)
		}),
		"config.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[config.Snapshot[string], error] {
			return config.New(c, "/value", codec.Text(), config.WithDefault("")).Follow(ctx)
		}),
		"members.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[members.View, error] {
			return members.New(c, "/members").Follow(ctx)
		}),
		"registry.Follow": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[[]registry.Instance, error] {
			pool := registry.NewPool(c, "/services", "billing")
			context.AfterFunc(ctx, func() { _ = pool.Close(ctx) })
			return pool.Follow(ctx)
		}),
		"queue.Deliveries": follow(func(ctx context.Context, c *framework.Client,
		) iter.Seq2[*queue.Delivery[[]byte], error] {
			q := queue.New(c, "/queue", codec.Bytes())
			context.AfterFunc(ctx, func() { _ = q.Close(ctx) })
			return q.Deliveries(ctx)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, endOf(t, run, errors.New("enough")))
		})
	}
}

// TestWaitsReturnTheErrorOfTheirContext, and its cause.
func TestWaitsReturnTheErrorOfTheirContext(t *testing.T) {
	for name, wait := range map[string]call{
		"Mutex.Lock": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewMutex(c, "/mutex").Lock(ctx)
			return err
		},
		"locks.Do": func(ctx context.Context, c *framework.Client) error {
			return locks.Do(ctx, locks.NewMutex(c, "/mutex"), func(context.Context, *locks.Lease) error { return nil })
		},
		"RWLock.Lock": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewRWLock(c, "/rw").Lock(ctx)
			return err
		},
		"RWLock.RLock": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewRWLock(c, "/rw").RLock(ctx)
			return err
		},
		"Semaphore.Acquire": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewSemaphore(c, "/semaphore", 1).Acquire(ctx, 1)
			return err
		},
		"Election.Campaign": func(ctx context.Context, c *framework.Client) error {
			_, err := election.New(c, "/election").Campaign(ctx)
			return err
		},
		"DoubleBarrier.Enter": func(ctx context.Context, c *framework.Client) error {
			_, err := barrier.NewDoubleBarrier(c, "/barrier", 2).Enter(ctx)
			return err
		},
		"Latch.Wait": func(ctx context.Context, c *framework.Client) error {
			return barrier.NewLatch(c, "/latch", 1).Wait(ctx)
		},
		"Gate.Wait": func(ctx context.Context, c *framework.Client) error {
			return barrier.NewGate(c, "/gate").Wait(ctx)
		},
		"Queue.Take": func(ctx context.Context, c *framework.Client) error {
			q := queue.New(c, "/queue", codec.Bytes())
			defer func() { _ = q.Close(ctx) }()
			_, err := q.Take(ctx)
			return err
		},
		"Queue.TakeBatch": func(ctx context.Context, c *framework.Client) error {
			q := queue.New(c, "/queue", codec.Bytes())
			defer func() { _ = q.Close(ctx) }()
			_, err := q.TakeBatch(ctx, 2)
			return err
		},
		"MultiLock.Lock": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewMultiLock(locks.NewMutex(c, "/free"), locks.NewMutex(c, "/mutex")).Lock(ctx)
			return err
		},
		"Queue.Put into a full queue": func(ctx context.Context, c *framework.Client) error {
			q := queue.New(c, "/full", codec.Bytes(), queue.WithCapacity(1))
			defer func() { _ = q.Close(ctx) }()
			return q.Put(ctx, nil)
		},
		"curatorqueue.Take": func(ctx context.Context, c *framework.Client) error {
			_, err := curatorqueue.New(c, "/curator").Take(ctx)
			return err
		},
		"Group.Drain": func(ctx context.Context, c *framework.Client) error {
			return members.New(c, "/members").Drain(ctx, "busy")
		},
		"Handle.Wait": func(ctx context.Context, c *framework.Client) error {
			_, err := workflow.NewKind[int, int]("order").Handle(workflow.New(c, "/workflows"), "1").Wait(ctx)
			return err
		},
		"Workflows.Wait": func(ctx context.Context, c *framework.Client) error {
			_, err := workflow.New(c, "/workflows").Wait(ctx, "1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			why := errors.New("enough")
			err := endOf(t, wait, why)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, why)
		})
	}
}

// endOf begins a call beside another client that holds all that the calls wait for, ends its
// context for a reason, and returns the error of the call. The call ends at once.
func endOf(t *testing.T, f call, why error) (err error) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		other, m := zk.Member(t, "other", framework.Config{}), zk.Member(t, "m", framework.Config{})
		holdAll(t, other.Client)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- f(ctx, m.Client) }()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		select {
		case err = <-done:
			require.Fail(t, "the call has ended before its context", "%v", err)
		default:
		}
		ended := time.Now()
		cancel(why)
		err = <-done
		require.Less(t, time.Since(ended), 2*time.Second)
	})
	return err
}

func holdAll(t *testing.T, c *framework.Client) {
	t.Helper()
	for _, l := range []locks.Locker{
		locks.NewMutex(c, "/mutex"), locks.NewRWLock(c, "/rw"), locks.NewSemaphore(c, "/semaphore", 1),
	} {
		_, err := l.Lock(t.Context())
		require.NoError(t, err)
	}
	_, err := election.New(c, "/election").Campaign(t.Context())
	require.NoError(t, err)
	require.NoError(t, barrier.NewGate(c, "/gate").Raise(t.Context()))
	full := queue.New(c, "/full", codec.Bytes(), queue.WithCapacity(1))
	require.NoError(t, full.Put(t.Context(), nil))
	require.NoError(t, full.Close(t.Context()))
	busy, err := members.New(c, "/members").Join(t.Context(), "busy", members.Info{},
		members.WithDrain(func(ctx context.Context, _ members.Cordon) error { <-ctx.Done(); return ctx.Err() }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Leave(t.Context()) }) // which has ended: it does not wait for the drain
	w := workflow.New(c, "/workflows")
	_, err = workflow.NewKind[int, int]("order").Start(t.Context(), w, "1", 1)
	require.NoError(t, err)
	require.NoError(t, w.Close(t.Context()))
}
