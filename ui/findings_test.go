package ui_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
)

// trouble is a stage on which tasks go on until its end.
type trouble struct {
	*stage
	ctx   context.Context
	tasks sync.WaitGroup
	last  []func() // after ctx has ended
}

// inTrouble runs a test in virtual time, with an open overview.
func inTrouble(t *testing.T, test func(t *testing.T, on *trouble), opts ...ui.Option) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		on := &trouble{stage: newStage(t, opts...), ctx: ctx}
		_, closePage := on.open(t, "")
		t.Cleanup(func() {
			closePage()
			end()
			for _, f := range on.last {
				f()
			}
			on.tasks.Wait()
		})
		test(t, on)
	})
}

var reportsDeadlocks = locks.WithDeadlockMode(locks.DeadlockReport)

func (on *trouble) hold(t *testing.T, client *framework.Client, path string) *locks.Lease {
	t.Helper()
	lease, err := locks.NewMutex(client, path, reportsDeadlocks).Lock(on.ctx)
	require.NoError(t, err)
	on.last = append(on.last, func() { _ = lease.Release(context.Background()) })
	return lease
}

// wait waits for a lock while the client holds another one.
func (on *trouble) wait(client *framework.Client, path string, holding *locks.Lease) {
	on.tasks.Go(func() { _, _ = locks.NewMutex(client, path, reportsDeadlocks).Lock(holding.Context()) })
}

// deadlock has two clients wait for each other's lock.
func (on *trouble) deadlock(t *testing.T, first, second *framework.Client) {
	t.Helper()
	a, b := on.hold(t, first, "/locks/a"), on.hold(t, second, "/locks/b")
	on.wait(first, "/locks/b", a)
	on.wait(second, "/locks/a", b)
}

func (on *trouble) queue(client *framework.Client, path string) *queue.Queue[string] {
	q := queue.New(client, path, codec.Text())
	on.last = append(on.last, func() { _ = q.Close(context.Background()) })
	return q
}

// keep works on an item until the end.
func keep(ctx context.Context, _ *queue.Delivery[string]) error { <-ctx.Done(); return nil }

// because is what the overview names as consequences of the problem at a path, without its
// directory.
func (on *trouble) because(t *testing.T, problem, leaf string) string {
	t.Helper()
	body, all := text(t, on.get(t, "")), ""
	for _, article := range regexp.MustCompile(`(?s)<article.*?</article>`).FindAllString(body, -1) {
		words := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(article, " ")), " ")
		words = strings.ReplaceAll(words, "/ ", "/") // a path is two elements
		about := regexp.MustCompile(problem + ` \S*/` + leaf + ` .*Because of it: (.*?) \.`)
		if found := about.FindStringSubmatch(words); found != nil {
			return found[1]
		}
		all += words + "\n"
	}
	require.Fail(t, "no consequences", "of %s at %s:\n%s", problem, leaf, all)
	return ""
}

// TestConsequencesAreNamedAtTheirCause: a process waits in a deadlock. Below it are the item that
// its consumer holds and its job that fails, and not the job of another process.
func TestConsequencesAreNamedAtTheirCause(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		first, second := on.member(t, "first", "first"), on.member(t, "second", "second")
		third := on.member(t, "third", "third")
		on.deadlock(t, first, second)
		q := on.queue(first, "/queues/one")
		require.NoError(t, q.Put(on.ctx, "item"))
		on.tasks.Go(func() {
			_ = q.Work(on.ctx, 1, keep)
		})
		time.Sleep(time.Second)
		for path, jobs := range map[string]*scheduler.Scheduler{"late": scheduler.New(first, "/late"),
			"other": scheduler.New(third, "/other")} {
			require.NoError(t, jobs.Add(scheduler.Job{Name: path, Spec: "* * * * *",
				Run: func(context.Context, scheduler.Run) error { return errors.New("no lock") }}))
			on.tasks.Go(func() { _ = jobs.Run(on.ctx) })
		}
		time.Sleep(11 * time.Minute) // an item held for 5 minutes is a problem
		because := on.because(t, "deadlock", "[ab]")
		require.Contains(t, because, "held item at queues/one")
		require.Regexp(t, `failed at .*late`, because)
		require.NotContains(t, because, "other")
	})
}

// TestAGrowingQueueFollowsFromADeadlock: its consumer waits in one. A queue that grows because
// nobody takes its items follows from nothing.
func TestAGrowingQueueFollowsFromADeadlock(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		first, second := on.member(t, "first", "first"), on.member(t, "second", "second")
		third := on.member(t, "third", "third")
		for _, path := range []string{"/queues/one", "/queues/other"} {
			q := on.queue(third, path)
			on.tasks.Go(func() {
				for q.Put(on.ctx, "item") == nil {
					time.Sleep(time.Second / 5)
				}
			})
		}
		q := on.queue(first, "/queues/one")
		on.tasks.Go(func() {
			_ = q.Work(on.ctx, 1, keep)
		})
		time.Sleep(time.Second)
		on.deadlock(t, first, second)
		time.Sleep(time.Minute)
		because := on.because(t, "deadlock", "[ab]")
		require.Contains(t, because, "growing queue at queues/one")
		require.NotContains(t, because, "other")
		require.Regexp(t, `(?s)growing queue.*/queues/.*other`, text(t, on.get(t, "")))
	})
}

// TestAnOverdueJobFollowsFromADeadlock: the process that should run it waits in one, and does
// nothing else.
func TestAnOverdueJobFollowsFromADeadlock(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		first, second := on.member(t, "first", "first"), on.member(t, "second", "second")
		on.deadlock(t, first, second)
		jobs := scheduler.New(first, "/cron", scheduler.WithOnEvent(func(e scheduler.Event) {
			if e.Kind == scheduler.EventLeading {
				<-on.ctx.Done() // its own code stands still
			}
		}))
		require.NoError(t, jobs.Add(scheduler.Job{Name: "late", Spec: "* * * * *",
			Run: func(context.Context, scheduler.Run) error { return nil }}))
		on.tasks.Go(func() { _ = jobs.Run(on.ctx) })
		time.Sleep(10 * time.Minute)
		require.Contains(t, on.because(t, "deadlock", "[ab]"), "overdue at cron/late")
	})
}

// TestALongHoldIsACauseAndAConsequence: one process holds a lock for long, another waits for it
// with a lock that it holds for as long.
func TestALongHoldIsACauseAndAConsequence(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		first, second := on.member(t, "first", "first"), on.member(t, "second", "second")
		third := on.member(t, "third", "third")
		on.hold(t, first, "/locks/first")
		time.Sleep(time.Minute)
		on.wait(second, "/locks/first", on.hold(t, second, "/locks/second"))
		on.tasks.Go(func() { _, _ = locks.NewMutex(third, "/locks/second").Lock(on.ctx) })
		time.Sleep(10 * time.Minute)
		require.Contains(t, on.because(t, "long hold", "first"), "long hold at locks/second")
		require.Contains(t, text(t, on.get(t, "")), "1 at risk")
	})
}
