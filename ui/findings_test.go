package ui_test

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

// TestConsequencesAreNamedAtTheirCause: a process waits in a deadlock. Below it are the item that its
// consumer holds and its job that fails, and not the job of another process.
func TestConsequencesAreNamedAtTheirCause(t *testing.T) { synctest.Test(t, testConsequences) }

func testConsequences(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	defer cancel()
	first, second := s.member(t, "first", "first"), s.member(t, "second", "second")
	third := s.member(t, "third", "third")
	reports := locks.WithDeadlockMode(locks.DeadlockReport)
	a, err := locks.NewMutex(first, "/locks/a", reports).Lock(ctx)
	require.NoError(t, err)
	b, err := locks.NewMutex(second, "/locks/b", reports).Lock(ctx)
	require.NoError(t, err)
	tasks.Go(func() { _, _ = locks.NewMutex(first, "/locks/b", reports).Lock(a.Context()) })
	tasks.Go(func() { _, _ = locks.NewMutex(second, "/locks/a", reports).Lock(b.Context()) })
	q := queue.New(first, "/queues/one", codec.Text())
	require.NoError(t, q.Put(ctx, "item"))
	tasks.Go(func() {
		_ = q.Work(ctx, 1, func(ctx context.Context, _ *queue.Delivery[string]) error { <-ctx.Done(); return nil })
	})
	time.Sleep(time.Second)
	for path, jobs := range map[string]*scheduler.Scheduler{"late": scheduler.New(first, "/late"),
		"other": scheduler.New(third, "/other")} {
		require.NoError(t, jobs.Add(scheduler.Job{Name: path, Spec: "* * * * *",
			Run: func(context.Context, scheduler.Run) error { return errors.New("no lock") }}))
		tasks.Go(func() { _ = jobs.Run(ctx) })
	}
	time.Sleep(11 * time.Minute) // an item held for 10 minutes is a problem
	body := text(t, s.get(t, ""))
	cancel()
	_ = a.Release(context.Background())
	_ = b.Release(context.Background())
	tasks.Wait()
	require.NoError(t, q.Close(context.Background()))
	because := regexp.MustCompile(`Because of it:(.*)</p></div>`).FindStringSubmatch(body)
	require.NotNil(t, because, body)
	require.Contains(t, because[1], "/queues/one")
	require.Regexp(t, `failed at .*late`, because[1])
	require.NotContains(t, because[1], "other")
}
