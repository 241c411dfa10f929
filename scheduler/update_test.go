package scheduler

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestADefinitionIsUpdatedInPlace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var old, updated []string
		note := func(into *[]string, d time.Duration) func(context.Context, Run) error {
			return func(ctx context.Context, r Run) error {
				*into = append(*into, r.Tick.Format(time.TimeOnly))
				return lasting(d)(ctx, r)
			}
		}
		a := w.start("a", one(Job{Run: note(&old, 90*time.Second)}))
		time.Sleep(70 * time.Second)
		require.NoError(t, a.Update(one(Job{Run: note(&updated, 0)})[0]))
		synctest.Wait()
		require.Empty(t, w.log.all(EventFinished), "the run that goes on is not disturbed")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"00:01:00"}, old)
		require.Equal(t, []string{"00:03:00", "00:04:00"}, updated)
		require.Equal(t, map[Reason]int64{ReasonOverlap: 1}, w.requireBalanced("j", "* * * * *").Missed)
		require.NoError(t, a.Update(one(Job{Spec: "*/2 * * * *", Overlap: OverlapAllow, Run: note(&updated, 0)})[0]))
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"00:03:00", "00:04:00", "00:06:00", "00:08:00"}, updated)
		require.Equal(t, "*/2 * * * *", w.state("j").Spec)
		require.Empty(t, w.log.all(EventRemoved))
	})
}

func TestTheLatestOfManyUpdatesCounts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "0 0 1 1 *", quick))
		a.link.Delay(300 * time.Millisecond)
		for _, spec := range []string{"0 1 * * *", "0 2 * * *", "0 3 * * *", "* * * * *"} {
			require.NoError(t, a.Update(jobs("j", spec, quick)[0]))
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(61 * time.Second)
		require.Equal(t, "* * * * *", w.state("j").Spec)
		require.Equal(t, []string{"00:01:00"}, w.log.ticks())
	})
}

func TestAnUpdateMovesAJobToAnotherPlacement(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spread := Job{Name: "j", Spec: "* * * * *", Placement: Spread, Labels: map[string]string{"disk": "fast"},
			Run: quick}
		members := []*actor{w.start("a", one(Job{Run: quick})),
			w.start("b", one(Job{Run: quick}), WithLabels(spread.Labels))}
		for _, m := range append(members, w.start("c", one(Job{Run: quick}))) {
			require.NoError(t, m.Update(spread))
		}
		time.Sleep(3*time.Minute + time.Second)
		for _, e := range w.log.all(EventStarted) {
			require.Equal(t, "b", e.member)
		}
		require.Len(t, w.log.ticks(), 3)
	})
}

func TestUpdateAndWithdrawNeedTheJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: quick}))
		require.ErrorIs(t, a.Update(Job{Name: "k", Spec: "* * * * *", Run: quick}), errUnknownJob)
		require.ErrorIs(t, a.Update(Job{Name: "j", Spec: "?", Run: quick}), errInvalidSpec)
		require.ErrorIs(t, a.Withdraw("k"), errUnknownJob)
		require.ErrorIs(t, a.Withdraw("k/l"), errInvalidJob)
		require.NoError(t, a.Withdraw("j"))
		require.ErrorIs(t, a.Withdraw("j"), errUnknownJob)
	})
}

func TestUpdateDoesNotRegisterRemovedJobAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.start("a", one(Job{Run: quick})), w.member("b", nil)
		a.link.Cut()
		require.NoError(t, b.Remove(t.Context(), "j"))
		require.NoError(t, a.Update(one(Job{Spec: "*/2 * * * *", Run: quick})[0]))
		a.link.Heal()
		time.Sleep(3 * time.Minute)
		require.Empty(t, w.log.ticks())
		require.Len(t, w.log.all(EventRemoved), 1)
		require.Equal(t, []string{"j"}, w.tombstones())
	})
}

func TestAWithdrawnJobIsRunByOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := []Job{{Name: jobThatPrefers("a", "b"), Spec: "* * * * *", Placement: Spread,
			Run: lasting(90 * time.Second)}}
		a := w.start("a", job)
		w.start("b", job)
		time.Sleep(61 * time.Second)
		require.NoError(t, a.Withdraw(job[0].Name))
		time.Sleep(3 * time.Minute)
		started := w.log.all(EventStarted)
		require.Equal(t, "a", started[0].member)
		require.Equal(t, "b", started[1].member)
		require.Equal(t, "00:03:00", started[1].Run.Tick.Format(time.TimeOnly),
			"the run that went on was not overlapped")
		require.NoError(t, w.log.all(EventFinished)[0].Err, "and has finished")
		require.Empty(t, a.jobs.runs)
		require.NoError(t, a.Add(job[0]))
		time.Sleep(2 * time.Minute)
		started = w.log.all(EventStarted)
		require.Equal(t, "a", started[len(started)-1].member)
	})
}

// A run goes on here while its job is withdrawn and added again: it is not taken for one whose
// claim was not noticed.
func TestARunIsNotStartedAgainWhenItsJobIsWithdrawnAndAdded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Run: lasting(10 * time.Minute)})
		a := w.start("a", job)
		time.Sleep(61 * time.Second)
		require.NoError(t, a.Withdraw("j"))
		synctest.Wait()
		require.NoError(t, a.Add(job[0]))
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventStarted), 1)
		require.NoError(t, a.Withdraw("j"))
		require.NoError(t, w.member("b", nil).Remove(t.Context(), "j"))
		time.Sleep(time.Second)
		require.ErrorIs(t, w.log.all(EventFinished)[0].Err, ErrRemoved,
			"a withdrawn job's run ends when the job is removed")
	})
}

// The old definition's look has sent nothing yet when the new one is given.
func TestCheckOfOldDefinitionStartsNoRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var old, updated atomic.Int32
		count := func(n *atomic.Int32) func(context.Context, Run) error {
			return func(context.Context, Run) error { n.Add(1); return nil }
		}
		a := w.start("a", one(Job{Spec: "0 0 1 1 *", Run: count(&old)}))
		b := w.member("b", nil)
		held := w.DelayReplies(time.Second,
			zktest.Match{Op: zktest.OpGetData, Session: a.sessionID(t), Path: testPath + "/jobs/j"})
		require.NoError(t, b.Trigger(t.Context(), "j"))
		<-held.Hit() // a's check reads the state
		require.NoError(t, a.Update(one(Job{Spec: "0 0 1 1 *", Run: count(&updated)})[0]))
		time.Sleep(10 * time.Second)
		require.Zero(t, old.Load())
		require.EqualValues(t, 1, updated.Load())
	})
}

func TestPendingClaimRunsUpdatedDefinition(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ran := func(by *[]string) func(context.Context, Run) error {
			return func(_ context.Context, r Run) error {
				*by = append(*by, r.Tick.Format(time.TimeOnly))
				return nil
			}
		}
		var old, updated []string
		a := w.start("a", one(Job{Run: ran(&old)}))
		// the reply to the claim comes before the updated definition's check could find the run
		a.link.Delay(100 * time.Millisecond)
		time.Sleep(60150 * time.Millisecond)
		require.Equal(t, []string{"run-1"}, w.claims("j"))
		require.NoError(t, a.Update(one(Job{Run: ran(&updated)})[0]))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		require.Empty(t, old)
		require.Equal(t, []string{"00:01:00", "00:02:00"}, updated)
	})
}

// TestRunWhoseSessionWakesRunsUpdatedDefinition: a run has been claimed, and begins once its
// session has a lease again.
func TestRunWhoseSessionWakesRunsUpdatedDefinition(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var old, updated atomic.Int64
		count := func(n *atomic.Int64) func(context.Context, Run) error {
			return func(context.Context, Run) error { n.Add(1); return nil }
		}
		a := w.start("a", one(Job{Run: count(&old), Placement: Spread}))
		time.Sleep(30 * time.Second) // until it sleeps
		require.False(t, a.client.Status().Awake)
		a.link.Delay(100 * time.Millisecond)
		for len(a.jobs.findJob("j").local.allRuns()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.Empty(t, w.log.all(EventStarted))
		require.NoError(t, a.Update(one(Job{Run: count(&updated), Placement: Spread})[0]))
		time.Sleep(10 * time.Second)
		require.Zero(t, old.Load())
		require.EqualValues(t, 1, updated.Load())
	})
}

func TestPendingClaimOfRemovedJobStartsNoRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: quick}))
		slow := w.DelayReplies(5*time.Second,
			zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1", Func: zktest.Request.Writes})
		time.Sleep(61 * time.Second)
		require.Equal(t, []string{"run-1"}, w.claims("j"))
		slow.Cancel()
		a.jobs.findJob("j").local.endRunsOf(0) // as the member does that hears of the removal before its claim's answer
		time.Sleep(10 * time.Second)
		require.Empty(t, w.log.all(EventStarted))
		require.Empty(t, w.claims("j"))
	})
}

func TestCheckOfWithdrawnJobStartsNoRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// it goes on to lead
		a := w.start("a", []Job{{Name: "j", Spec: "0 0 1 1 *", Run: quick},
			{Name: "other", Spec: "0 0 1 1 *", Run: quick}})
		b := w.member("b", nil)
		held := w.DelayReplies(time.Second,
			zktest.Match{Op: zktest.OpGetData, Session: a.sessionID(t), Path: testPath + "/jobs/j"})
		require.NoError(t, b.Trigger(t.Context(), "j"))
		<-held.Hit() // a's check reads the state
		require.NoError(t, a.Withdraw("j"))
		time.Sleep(10 * time.Second)
		require.Empty(t, w.log.all(EventStarted))
		require.Len(t, w.stored("j").Pending, 1, "the run waits for a member that has the job")
	})
}

// The write of an earlier update is still to come when a later one restores the stored schedule.
func TestAnUpdateIsRegisteredAfterTheOneBefore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "0 1 * * *", quick))
		b := w.member("b", nil)
		a.link.Delay(100 * time.Millisecond)
		asked := w.DelayReplies(1, zktest.Match{Op: zktest.OpSetData, Path: testPath + "/jobs"})
		require.NoError(t, a.Update(jobs("j", "0 2 * * *", quick)[0]))
		<-asked.Hit() // it asks for the ensemble's time
		// it has heard that, and is about to tell of the change in a node that is missing
		time.Sleep(150 * time.Millisecond)
		require.NoError(t, b.client.Delete(t.Context(), testPath+"/changes", framework.AnyVersion))
		// an update now reads the job before the former one writes it, and the node of changes
		// after that
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, a.Update(jobs("j", "0 1 * * *", quick)[0]))
		time.Sleep(10 * time.Second)
		require.Equal(t, "0 1 * * *", w.state("j").Spec)
	})
}
