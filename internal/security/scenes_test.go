package security

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

// recipeUse leaves what a recipe creates in the tree until ctx ends, and what goes on in the background to a crew.
type recipeUse func(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks)

var scenes = map[string]recipeUse{
	"locks": useLocks, "semaphore": useSemaphore, "election": useElection, "jobs": useScheduler,
	"queue": useQueue, "parallel queue": useParallelQueue, "barriers": useBarriers,
}

// backgroundTasks are the goroutines of scenes. What they return when their context ends is of no interest.
type backgroundTasks struct {
	cancel context.CancelFunc
	done   []chan struct{}
}

func (c *backgroundTasks) add(work func()) {
	done := make(chan struct{})
	c.done = append(c.done, done)
	go func() { defer close(done); work() }()
}

func (c *backgroundTasks) end() {
	c.cancel()
	for _, done := range c.done {
		<-done
	}
}

// runAll plays every scene, and ends them after the test.
func runAll(t *testing.T, c *framework.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	crew := &backgroundTasks{cancel: cancel}
	t.Cleanup(crew.end)
	for _, play := range scenes {
		play(ctx, t, c, crew)
	}
}

func useLocks(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks) {
	m := locks.NewMutex(c, "/locks/mutex")
	_, err := m.Lock(ctx)
	require.NoError(t, err)
	waits(ctx, t, crew, func(ctx context.Context, queued onWait) error {
		_, err := locks.NewMutex(c, m.Path(), queued).Lock(ctx)
		return err
	})
	_, err = locks.NewRWLock(c, "/locks/rw").RLock(ctx)
	require.NoError(t, err)
	waits(ctx, t, crew, func(ctx context.Context, queued onWait) error {
		_, err := locks.NewRWLock(c, "/locks/rw", queued).Lock(ctx)
		return err
	})
	_, err = locks.NewClaim(c, "/locks/claim").Lock(ctx)
	require.NoError(t, err)
}

func useSemaphore(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks) {
	_, err := locks.NewSemaphore(c, "/locks/semaphore", 2).Acquire(ctx, 2)
	require.NoError(t, err)
	waits(ctx, t, crew, func(ctx context.Context, queued onWait) error {
		_, err := locks.NewSemaphore(c, "/locks/semaphore", 2, queued).Lock(ctx)
		return err
	})
}

// onWait is the option of locks.WithOnWait.
type onWait interface {
	locks.MutexOption
	locks.RWLockOption
	locks.SemaphoreOption
}

// waits leaves a waiter in line.
func waits(ctx context.Context, t *testing.T, crew *backgroundTasks, lock func(context.Context, onWait) error) {
	t.Helper()
	inLine := make(chan struct{}, 16)
	failed := make(chan error, 1)
	crew.add(func() { failed <- lock(ctx, locks.WithOnWait(func(int) { inLine <- struct{}{} })) })
	select {
	case <-inLine:
	case err := <-failed:
		require.Fail(t, "did not wait", "%v", err)
	}
}

func useElection(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks) {
	e := election.New(c, "/elections/one", election.WithMetadata(election.Metadata{"a": "b"}), election.WithPriority(1, 0))
	_, err := e.Campaign(ctx)
	require.NoError(t, err)
	crew.add(func() { _, _ = election.New(c, "/elections/one", election.WithPriority(0, 0)).Campaign(ctx) })
	require.Eventually(t, func() bool {
		all, err := e.Candidates(ctx)
		return err == nil && len(all) == 2
	}, patience, tick)
	_, err = election.New(c, "/elections/selector", election.WithSelectorLayout()).Campaign(ctx)
	require.NoError(t, err)
	_, err = members.New(c, "/elections/members").Join(ctx, "one", members.Info{Metadata: members.Metadata{"a": "b"}})
	require.NoError(t, err)
}

// useScheduler has two runs at hand: one that has ended, and one that goes on.
func useScheduler(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks) {
	s := scheduler.New(c, "/jobs")
	goesOn := make(chan struct{})
	require.NoError(t, s.Add(scheduler.Job{Name: "job", Spec: "0 0 1 1 *", Run: func(ctx context.Context, run scheduler.Run) error {
		select {
		case <-goesOn:
			<-ctx.Done()
		default:
			close(goesOn)
		}
		return nil
	}}))
	crew.add(func() { _ = s.Run(ctx) })
	require.Eventually(t, func() bool {
		_, err := s.State(ctx, "job")
		return err == nil
	}, patience, tick)
	require.NoError(t, s.Trigger(ctx, "job"))
	<-goesOn
	require.Eventually(t, func() bool {
		runs, err := s.Runs(ctx, "job")
		return err == nil && len(runs) > 0
	}, patience, tick)
	require.NoError(t, s.Trigger(ctx, "job"))
}

func useQueue(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	q := queue.New(c, "/queues/strict", queue.Text(), queue.WithCapacity(100))
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	fillQueue(ctx, t, q)
	require.NoError(t, queue.NewCuratorQueue(c, "/queues/simple").Put(ctx, []byte("item")))
}

func useParallelQueue(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	q := queue.New(c, "/queues/parallel", queue.Text(), queue.WithOrder(queue.Parallel),
		queue.WithMaxAttempts(1), queue.WithDedup(time.Minute))
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Put(ctx, "known", queue.WithID("id")))
	fillQueue(ctx, t, q)
	d, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, d.Nack(ctx, 0, errors.New("spoilt"))) // a dead letter
}

// fillQueue puts items of every kind, of which one is taken.
func fillQueue(ctx context.Context, t *testing.T, q *queue.Queue[string]) {
	t.Helper()
	require.NoError(t, q.PutBatch(ctx, []string{"a", "b", "c"}))
	require.NoError(t, q.Put(ctx, "later", queue.WithDelay(time.Hour)))
	require.NoError(t, q.Put(ctx, "soon", queue.WithPriority(5)))
	_, err := q.Take(ctx)
	require.NoError(t, err)
}

func useBarriers(ctx context.Context, t *testing.T, c *framework.Client, crew *backgroundTasks) {
	require.NoError(t, barrier.NewGate(c, "/barriers/raised").Raise(ctx))
	_, err := barrier.NewGate(c, "/barriers/held").Hold(ctx)
	require.NoError(t, err)
	latch := barrier.NewLatch(c, "/barriers/latch", 3)
	require.NoError(t, latch.CountDown(ctx, "me"))
	for range 2 {
		crew.add(func() { _, _ = barrier.NewDoubleBarrier(c, "/barriers/inside", 2).Enter(ctx) })
		crew.add(func() {
			_, _ = barrier.NewDoubleBarrier(c, "/barriers/curator", 2, barrier.WithCuratorLayout()).Enter(ctx)
		})
	}
	crew.add(func() { _, _ = barrier.NewDoubleBarrier(c, "/barriers/waits", 2).Enter(ctx) })
	for _, node := range []string{"/barriers/inside/round", "/barriers/curator/ready", "/barriers/waits/in"} {
		require.Eventually(t, func() bool {
			_, err := c.Exists(ctx, node)
			return err == nil
		}, patience, tick, node)
	}
}
