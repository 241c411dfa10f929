package security

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/queue/curatorqueue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// recipeUse uses a recipe so that its nodes exist until ctx ends. It starts goroutines in
// background.
type recipeUse func(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks)

var recipeUses = map[string]recipeUse{
	"locks": useLocks, "semaphore": useSemaphore, "election": useElection, "jobs": useScheduler,
	"queue": useQueue, "parallel queue": useParallelQueue, "barriers": useBarriers,
	"members": useMembers, "config": useConfig, "ids": useIDs, "services": useRegistry,
	"ledgers": useLedger, "workflows": useWorkflows, "monitors": useMonitor,
}

// recipeDirs are the directories that the recipe uses leave nodes in.
var recipeDirs = []string{
	"barriers", "config", "elections", "groups", "ids", "jobs", "ledgers", "locks", "monitored", "monitors", "queues",
	"services", "workflows",
}

// backgroundTasks are the goroutines of recipe uses. The errors that they return when their context
// ends are ignored.
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

// useAllRecipes uses every recipe of recipeUses, and ends the uses after the test.
func useAllRecipes(t *testing.T, c *framework.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	background := &backgroundTasks{cancel: cancel}
	t.Cleanup(background.end)
	for _, use := range recipeUses {
		use(ctx, t, c, background)
	}
}

func useLocks(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	m := locks.NewMutex(c, "/locks/mutex")
	_, err := m.Lock(ctx)
	require.NoError(t, err)
	startWaiter(ctx, t, background, func(ctx context.Context, queued onWait) error {
		_, err := locks.NewMutex(c, m.Path(), queued).Lock(ctx)
		return err
	})
	_, err = locks.NewRWLock(c, "/locks/rw").RLock(ctx)
	require.NoError(t, err)
	startWaiter(ctx, t, background, func(ctx context.Context, queued onWait) error {
		_, err := locks.NewRWLock(c, "/locks/rw", queued).Lock(ctx)
		return err
	})
	_, err = locks.NewClaim(c, "/locks/claim").Lock(ctx)
	require.NoError(t, err)
}

func useSemaphore(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	_, err := locks.NewSemaphore(c, "/locks/semaphore", 2).Acquire(ctx, 2)
	require.NoError(t, err)
	startWaiter(ctx, t, background, func(ctx context.Context, queued onWait) error {
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

// startWaiter starts a waiter, which stays in line.
func startWaiter(ctx context.Context, t *testing.T, background *backgroundTasks,
	lock func(context.Context, onWait) error) {
	t.Helper()
	inLine := make(chan struct{}, 16)
	failed := make(chan error, 1)
	background.add(func() { failed <- lock(ctx, locks.WithOnWait(func(int) { inLine <- struct{}{} })) })
	select {
	case <-inLine:
	case err := <-failed:
		require.Fail(t, "did not wait", "%v", err)
	}
}

func useElection(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	e := election.New(c, "/elections/one", election.WithMetadata(map[string]string{"a": "b"}),
		election.WithPriority(1, 0))
	_, err := e.Campaign(ctx)
	require.NoError(t, err)
	background.add(func() { _, _ = election.New(c, "/elections/one", election.WithPriority(0, 0)).Campaign(ctx) })
	require.Eventually(t, func() bool {
		all, err := e.Candidates(ctx)
		return err == nil && len(all) == 2
	}, patience, tick)
	_, err = election.New(c, "/elections/selector", election.WithSelectorLayout()).Campaign(ctx)
	require.NoError(t, err)
}

// useMembers joins a group and cordons the member.
func useMembers(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	g := members.New(c, "/groups/one")
	_, err := g.Join(ctx, "one", members.Info{Metadata: map[string]string{"a": "b"}})
	require.NoError(t, err)
	require.NoError(t, g.Cordon(ctx, "one", members.WithReason("an update")))
}

// useConfig sets a value twice, so that it has a history.
func useConfig(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	v := config.New(c, "/config/value", codec.Text(), config.WithDefault("none"))
	require.NoError(t, v.Set(ctx, "one"))
	require.NoError(t, v.Set(ctx, "two", config.WithNote("why")))
}

func useIDs(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	sequence, worker, counter := ids.NewSequence(c, "/ids/sequence"), ids.NewWorker(c, "/ids/workers", 4),
		ids.NewCounter(c, "/ids/counter")
	t.Cleanup(func() {
		for _, end := range []func(context.Context) error{sequence.Close, worker.Close, counter.Close} {
			if err := end(context.Background()); !errors.Is(err, framework.ErrSessionLost) {
				// the test may have ended the session
				require.NoError(t, err)
			}
		}
	})
	_, err := sequence.Next(ctx)
	require.NoError(t, err)
	_, err = worker.Next(ctx)
	require.NoError(t, err)
	_, err = counter.Add(ctx, 1)
	require.NoError(t, err)
	_, err = ids.MakeName(ctx, c, "/ids/names", "name-", []byte("data"))
	require.NoError(t, err)
}

func useRegistry(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	instance, err := registry.New(c, "/services").Register(ctx,
		registry.Instance{Service: "billing", Address: "10.0.0.7", Port: 8080})
	require.NoError(t, err)
	require.NoError(t, instance.Disable(ctx, "an update")) // a write of the instance
}

func useLedger(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	lease, err := locks.NewMutex(c, "/locks/ledger").Lock(ctx)
	require.NoError(t, err)
	opened, err := workflow.NewLedger(c, "/ledgers/one").Open(ctx, lease)
	require.NoError(t, err)
	require.NoError(t, opened.Do(ctx, "step", func(context.Context, workflow.Key) error { return nil }))
}

// useWorkflows starts three runs: one that is done, one that has failed, and one that waits for a
// signal.
func useWorkflows(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	flows := workflow.New(c, "/workflows")
	t.Cleanup(func() { require.NoError(t, flows.Close(context.Background())) })
	approve, fail := workflow.NewKind[string, string]("approve"), workflow.NewKind[string, string]("fail")
	approved := approve.Function(func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
		if err := run.Do(ctx, "step", func(context.Context, workflow.Key) error { return nil }); err != nil {
			return "", err
		}
		return workflow.Await[string](ctx, run, "approved", time.Hour)
	})
	failed := fail.Function(func(context.Context, *workflow.Run, string) (string, error) {
		return "", workflow.Permanent(errors.New("spoilt"))
	})
	require.NoError(t, flows.Register(approved, failed))
	background.add(func() { _ = flows.Work(ctx) })
	for id, kind := range map[string]workflow.Kind[string, string]{"done": approve, "waits": approve, "failed": fail} {
		_, err := kind.Start(ctx, flows, id, "input")
		require.NoError(t, err)
	}
	require.NoError(t, flows.Signal(ctx, "done", "approved", "by me"))
	for id, want := range map[string]workflow.State{"done": workflow.Done, "failed": workflow.Failed} {
		run, err := flows.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, run.State)
	}
	require.Eventually(t, func() bool {
		run, err := flows.Inspect(ctx, "waits")
		return err == nil && run.State == workflow.Waiting
	}, patience, tick)
}

// useMonitor lets a monitor record a finding: a queue with a dead letter.
func useMonitor(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	q := queue.New(c, "/monitored/queue", codec.Text(), queue.WithMaxAttempts(1))
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Put(ctx, "item"))
	d, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, d.Nack(ctx, 0, errors.New("spoilt")))
	begun := make(chan struct{}, 1)
	m := monitor.New(c, "/monitors/one", "/monitored", monitor.WithInterval(time.Second), monitor.WithHysteresis(1, 1),
		monitor.WithOnEvent(patience, func(context.Context, monitor.Event) error {
			select {
			case begun <- struct{}{}:
			default:
			}
			return nil
		}))
	require.NoError(t, m.Validate())
	background.add(func() { _ = m.Run(ctx) })
	select {
	case <-begun:
	case <-time.After(patience):
		require.Fail(t, "the monitor has not found the dead letter")
	}
}

// useScheduler starts two runs: one that has ended, and one that is under way.
func useScheduler(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	s := scheduler.New(c, "/jobs")
	secondStarted := make(chan struct{})
	require.NoError(t, s.Add(scheduler.Job{Name: "job", Spec: "0 0 1 1 *",
		Run: func(ctx context.Context, run scheduler.Run) error {
			select {
			case <-secondStarted:
				<-ctx.Done()
			default:
				close(secondStarted)
			}
			return nil
		}}))
	background.add(func() { _ = s.Run(ctx) })
	require.Eventually(t, func() bool {
		_, err := s.State(ctx, "job")
		return err == nil
	}, patience, tick)
	require.NoError(t, s.Trigger(ctx, "job"))
	<-secondStarted
	require.Eventually(t, func() bool {
		runs, err := s.Runs(ctx, "job")
		return err == nil && len(runs) > 0
	}, patience, tick)
	require.NoError(t, s.Trigger(ctx, "job"))
}

func useQueue(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	q := queue.New(c, "/queues/strict", codec.Text(), queue.WithCapacity(100))
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	fillQueue(ctx, t, q)
	require.NoError(t, curatorqueue.New(c, "/queues/simple").Put(ctx, []byte("item")))
}

func useParallelQueue(ctx context.Context, t *testing.T, c *framework.Client, _ *backgroundTasks) {
	q := queue.New(c, "/queues/parallel", codec.Text(), queue.WithOrder(queue.Parallel),
		queue.WithMaxAttempts(1), queue.WithDedup(time.Minute))
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	require.NoError(t, q.Put(ctx, "known", queue.WithID("id")))
	fillQueue(ctx, t, q)
	d, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, d.Nack(ctx, 0, errors.New("spoilt"))) // a dead letter
}

// fillQueue puts items of every kind, and takes one of them.
func fillQueue(ctx context.Context, t *testing.T, q *queue.Queue[string]) {
	t.Helper()
	require.NoError(t, q.PutBatch(ctx, []string{"a", "b", "c"}))
	require.NoError(t, q.Put(ctx, "later", queue.WithDelay(time.Hour)))
	require.NoError(t, q.Put(ctx, "soon", queue.WithPriority(5)))
	_, err := q.Take(ctx)
	require.NoError(t, err)
}

func useBarriers(ctx context.Context, t *testing.T, c *framework.Client, background *backgroundTasks) {
	require.NoError(t, barrier.NewGate(c, "/barriers/raised").Raise(ctx))
	_, err := barrier.NewGate(c, "/barriers/held").Hold(ctx)
	require.NoError(t, err)
	latch := barrier.NewLatch(c, "/barriers/latch", 3)
	require.NoError(t, latch.CountDown(ctx, "me"))
	for range 2 {
		background.add(func() { _, _ = barrier.NewDoubleBarrier(c, "/barriers/inside", 2).Enter(ctx) })
		background.add(func() {
			_, _ = barrier.NewDoubleBarrier(c, "/barriers/curator", 2, barrier.WithCuratorLayout()).Enter(ctx)
		})
	}
	background.add(func() { _, _ = barrier.NewDoubleBarrier(c, "/barriers/waits", 2).Enter(ctx) })
	for _, node := range []string{"/barriers/inside/round", "/barriers/curator/ready", "/barriers/waits/round"} {
		require.Eventually(t, func() bool {
			_, err := c.Exists(ctx, node)
			return err == nil
		}, patience, tick, node)
	}
}
