package scheduler

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// lingering returns a job function whose first run returns only some time after the end of its
// context. It counts the runs at once.
func lingering(after, next time.Duration, most *atomic.Int64) func(context.Context, Run) error {
	var calls, going atomic.Int64
	return func(ctx context.Context, r Run) error {
		most.Store(max(most.Load(), going.Add(1)))
		defer going.Add(-1)
		if calls.Add(1) > 1 {
			return lasting(next)(ctx, r)
		}
		<-ctx.Done()
		time.Sleep(after)
		return ctx.Err()
	}
}

func TestARunOfARemovedJobIsNotOverlappedByItsSuccessor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := one(Job{Spec: "* * * * * *", Run: lingering(5*time.Second, 20*time.Second, &most)})
		a := w.start("a", job)
		b := w.member("b", nil)
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, a.Remove(t.Context(), "j"))
		require.NoError(t, a.Add(job[0]), "at once")
		time.Sleep(4 * time.Second)
		require.Equal(t, []string{"run-1"}, w.claims("j"), "the former run goes on")
		require.Empty(t, w.log.all(EventFinished))
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, most.Load())
		finished := w.log.all(EventFinished)
		require.ErrorIs(t, finished[0].Err, ErrRemoved)
		require.Equal(t, "a", finished[0].member)
		require.NoError(t, finished[1].Err, "the outcome of the former run ends no other")
		require.Equal(t, "00:00:07", w.log.ticks()[1])
		runs, err := b.Runs(t.Context(), "j")
		require.NoError(t, err)
		require.EqualValues(t, 2, runs[len(runs)-1].Number, "numbers go on, and the former run is not in the history")
		state := w.requireBalanced("j", "* * * * * *")
		require.EqualValues(t, state.Number, state.Fired+1)
	})
}

func TestLostRunOfRemovedJobIsNotRepeated(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Guarantee: AtLeastOnce, Run: lasting(time.Hour)})
		a := w.start("a", job)
		time.Sleep(61 * time.Second)
		a.link.Cut()
		require.NoError(t, w.member("operator", nil).Remove(t.Context(), "j"))
		w.start("b", one(Job{Spec: "0 * * * *", Guarantee: AtLeastOnce, Run: quick}))
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventStarted), 1)
		state := w.state("j")
		require.Empty(t, state.Running, "its claim is gone with its session")
		require.Zero(t, state.Due())
		require.Zero(t, state.Failures)
	})
}

func TestATickIsNotRunAgainByASuccessor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fast := func() time.Time { return time.Now().Add(8 * time.Second) }
		a := w.start("a", one(Job{Run: quick}), WithNow(fast))
		time.Sleep(53 * time.Second)
		require.Equal(t, []string{"00:01:00"}, w.log.ticks())
		require.NoError(t, a.Remove(t.Context(), "j"))
		a.stop()
		require.NoError(t, <-a.done)
		w.start("b", one(Job{Run: quick}))
		time.Sleep(90 * time.Second)
		require.Equal(t, []string{"00:01:00", "00:02:00"}, w.log.ticks())
		w.requireBalanced("j", "* * * * *")
	})
}

func TestMissedRemovalCountsAfterJobIsAddedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Run: lasting(time.Hour)})
		a, b := w.start("a", job), w.start("b", []Job{{Name: "other", Spec: "0 0 1 1 *", Run: quick}})
		time.Sleep(61 * time.Second)
		a.link.Cut()
		require.NoError(t, b.Remove(t.Context(), "j"))
		require.NoError(t, b.Add(job[0]))
		time.Sleep(time.Second)
		a.link.Heal()
		time.Sleep(5 * time.Second)
		require.Len(t, w.log.all(EventRemoved), 1)
		require.ErrorIs(t, w.log.all(EventFinished)[0].Err, ErrRemoved)
		require.Nil(t, a.jobs.findJob("j"))
		require.NotNil(t, b.jobs.findJob("j"))
		require.NoError(t, a.Add(job[0]))
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 2)
	})
}

// A claim is applied, its reply is lost, and the job is removed before the member can ask.
func TestClaimOfRemovedJobIsReleased(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: lasting(time.Hour)}))
		b := w.member("b", nil)
		_, err := b.State(t.Context(), "j")
		require.NoError(t, err)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1",
			Func: zktest.Request.Writes})
		go func() {
			<-lost.Hit()
			a.link.Cut()
		}()
		time.Sleep(61 * time.Second)
		require.NoError(t, b.Remove(t.Context(), "j"))
		a.link.Heal()
		time.Sleep(5 * time.Second)
		require.Empty(t, w.claims("j"))
		require.Empty(t, w.state("j").Running)
	})
}

func TestARemovalIsDoneOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.start("a", one(Job{Run: quick})), w.member("b", nil)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j",
			Func: zktest.Request.Writes})
		go func() {
			<-lost.Hit()
			b.link.Cut()
		}()
		done := make(chan error)
		go func() { done <- b.Remove(t.Context(), "j") }()
		time.Sleep(time.Second)
		require.NoError(t, a.Add(one(Job{Run: quick})[0]))
		time.Sleep(time.Second)
		b.link.Heal()
		require.NoError(t, <-done)
		time.Sleep(61 * time.Second)
		require.NotEmpty(t, w.log.ticks(), "the job that was added since stays")
		require.NoError(t, b.Remove(t.Context(), "j"))
		require.ErrorIs(t, b.Remove(t.Context(), "j"), errUnknownJob)
		require.ErrorIs(t, b.Pause(t.Context(), "j"), errUnknownJob)
		require.ErrorIs(t, b.Trigger(t.Context(), "j"), errUnknownJob)
		_, err := b.Runs(t.Context(), "j")
		require.ErrorIs(t, err, errUnknownJob)
		reports, err := b.Jobs(t.Context())
		require.NoError(t, err)
		require.Empty(t, reports)
	})
}

func (w *world) tombstones() (names []string) {
	for _, name := range w.Children(testPath + "/jobs") {
		if !w.stored(name).Removed.IsZero() {
			names = append(names, name)
		}
	}
	return names
}

func TestOldTombstonesAreDeleted(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		rare := func(name string) Job { return Job{Name: name, Spec: "0 0 1 1 *", Run: quick} }
		a := w.start("a", []Job{rare("stays"), rare("busy"), rare("noted"), rare("x"),
			{Name: "again", Spec: "0 0 1 1 *", Run: quick}})
		busy := lasting(72 * time.Hour)
		require.NoError(t, a.Update(Job{Name: "busy", Spec: "0 0 1 1 *",
			Run: func(ctx context.Context, r Run) error { return busy(context.Background(), r) }}))
		require.NoError(t, a.Trigger(t.Context(), "busy"))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/noted/note", nil, framework.Persistent))
		synctest.Wait()
		for _, name := range []string{"busy", "noted", "x", "again"} {
			require.NoError(t, a.Remove(t.Context(), name))
		}
		require.NoError(t, a.Add(rare("again")))
		synctest.Wait()
		require.Equal(t, []string{"busy", "noted", "x"}, w.tombstones())
		time.Sleep(keepTombstones - time.Minute)
		require.NoError(t, a.Add(rare("y")))
		synctest.Wait()
		require.NoError(t, a.Remove(t.Context(), "y"))
		require.Len(t, w.tombstones(), 4)
		time.Sleep(2 * time.Minute)
		b := w.start("b", []Job{rare("stays")})
		require.Equal(t, []string{"busy", "noted", "y"}, w.tombstones(),
			"a run goes on, somebody's node is in the way, too young")
		n, _ := w.Node(testPath + "/removed")
		require.NotContains(t, string(n.Data), "again", "it is there again")
		require.NotContains(t, string(n.Data), "noted")
		time.Sleep(72 * time.Hour)
		require.NoError(t, b.Remove(t.Context(), "stays"))
		require.Equal(t, []string{"noted", "stays"}, w.tombstones())
	})
}

func TestTombstonesAreBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 0 1 1 *", Run: quick}))
		for i := range maxTombstones + 20 {
			name := fmt.Sprintf("once-%03d", i)
			require.NoError(t, a.Add(Job{Name: name, Spec: "0 0 1 1 *", Run: quick}))
			synctest.Wait()
			require.NoError(t, a.Remove(t.Context(), name))
		}
		left := w.tombstones()
		require.Len(t, left, maxTombstones)
		require.Equal(t, "once-020", left[0])
		synctest.Wait() // until this member has seen the last removal
		require.Len(t, a.jobs.runs, 1, "and nothing of them is kept in memory")
	})
}

func TestATombstoneIsStoredAsThisReleaseWritesIt(t *testing.T) {
	state := fullState(t)
	state.markRemoved(at(t, "2026-05-04T10:17:00Z"))
	state.Generation, state.Reregistered = 2, at(t, "2026-05-03T00:00:00Z")
	state.Running[0].Generation = 2
	data, err := state.encode()
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/tombstone-v1.json")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(want)), string(data))
	again, err := decodeState(data)
	require.NoError(t, err)
	require.Empty(t, again.unknown)
	require.Equal(t, state.Removed, again.Removed)
	require.Equal(t, state.Removed, again.Paused, "an earlier release takes it for paused")
	require.True(t, again.Running[0].Replace, "and ends its runs")
	again.Paused = time.Time{} // as an earlier release resumes it
	data, err = again.encode()
	require.NoError(t, err)
	resumed, err := decodeState(data)
	require.NoError(t, err)
	require.Zero(t, resumed.Removed)
}

func TestUnreadableTombstoneListIsReplaced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/removed", []byte("?"), framework.Persistent))
		require.NoError(t, a.Remove(t.Context(), "j"))
		n, _ := w.Node(testPath + "/removed")
		require.Contains(t, string(n.Data), `"job":"j"`)
	})
}

func FuzzDecodeRemoved(f *testing.F) {
	f.Add([]byte(`{"v":1,"jobs":[{"job":"a","at":"2026-05-04T10:15:00Z"}],"x":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := decodeRemoved(data)
		if err != nil {
			return
		}
		once, err := list.encode()
		require.NoError(t, err)
		again, err := decodeRemoved(once)
		require.NoError(t, err)
		twice, err := again.encode()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// A run of the former registration goes on here, so that a change has the member read the state,
// which is still a tombstone.
func TestJobDuringRegistrationIsNotTakenForRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := one(Job{Spec: "* * * * * *", Run: lingering(20*time.Second, time.Second, &most)})
		a := w.start("a", job)
		b := w.member("b", nil)
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, b.Remove(t.Context(), "j"))
		time.Sleep(time.Second)
		require.Nil(t, a.jobs.findJob("j"))
		a.link.Delay(100 * time.Millisecond) // the registration takes several round trips, the follower's reading two
		require.NoError(t, a.Add(job[0]))
		require.NoError(t, b.store.announceChanges(t.Context(), "j"))
		time.Sleep(30 * time.Second)
		require.NotNil(t, a.jobs.findJob("j"))
		require.Len(t, w.log.all(EventRemoved), 1)
		require.Zero(t, w.stored("j").Removed)
		require.EqualValues(t, 1, most.Load())
	})
}

// An observer adds a job again, and a run of the new registration begins, while the runs of the
// removed one are being ended.
func TestEndOfRemovedRunsEndsNoRunOfTheNextRegistration(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", jobs("j", "0 0 1 1 *", quick))
		own := w.member("own", jobs("j", "0 0 1 1 *", quick)) // does not run: nothing else ends its runs
		session, err := own.client.Session(t.Context())
		require.NoError(t, err)
		j, runs := own.jobs.findRuns("j")
		j.entered.Store(true)
		old, next := newLocalRun(storedRun{}, 1), newLocalRun(storedRun{Generation: 1}, 2)
		runs.beginRun(old)
		f := &changeFollower{store: own.store, report: own.report, jobs: own.jobs, session: session}
		f.removed = func(*job) {
			runs.endRunsOf(j.generation.Load())
			runs.beginRun(next)
		}
		require.NoError(t, w.member("b", nil).Remove(t.Context(), "j"))
		require.NoError(t, f.stopReplacedRuns(t.Context(), "j"))
		require.ErrorIs(t, context.Cause(old.ended), ErrRemoved)
		require.Contains(t, runs.allRuns(), next)
		require.NoError(t, next.ended.Err())
	})
}
