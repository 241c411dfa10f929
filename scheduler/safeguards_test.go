package scheduler

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestCheckBeforeTickDelayStartsNoRun(t *testing.T) {
	j := planned(t, func(j *Job) { j.Spec, j.Jitter, j.Deadline = "0 * * * *", 50*time.Minute, 0 })
	delay := j.jitterOf(j.schedule, noon)
	require.Greater(t, delay, time.Minute)
	p := j.plan(jobState{Last: noon.Add(-time.Hour)}, j.schedule,
		planInput{now: noon.Add(delay - time.Second), lateReason: ReasonLate})
	require.True(t, p.isEmpty())
	require.Equal(t, noon.Add(delay), p.wakeAt)
	p = j.plan(jobState{Last: noon.Add(-time.Hour)}, j.schedule,
		planInput{now: noon.Add(delay), lateReason: ReasonLate})
	require.Equal(t, noon, p.start.Tick)
}

func TestTheJitterProlongsTheDeadlineOfAll(t *testing.T) {
	j := planned(t, func(j *Job) { j.Spec, j.Jitter, j.Misfire = "0 * * * *", 50*time.Minute, MisfireAll })
	delay := j.jitterOf(j.schedule, noon)
	p := j.plan(jobState{Last: noon.Add(-time.Hour)}, j.schedule,
		planInput{now: noon.Add(delay + time.Second), lateReason: ReasonLate})
	require.Empty(t, p.missed)
	require.Equal(t, noon, p.start.Tick)
}

// A sum of the deadline and the jitter would overflow: all ticks until the year 2318 would be
// missed.
func TestDeadlineWithoutLimitBesideJitter(t *testing.T) {
	j := planned(t, func(j *Job) {
		j.Spec, j.Jitter, j.Misfire, j.Deadline = "0 * * * *", 50*time.Minute, MisfireAll, math.MaxInt64
	})
	p := j.plan(jobState{Last: noon.Add(-5 * time.Hour)}, j.schedule, planInput{now: noon, lateReason: ReasonLate})
	require.Empty(t, p.missed)
	require.Equal(t, noon.Add(-4*time.Hour), p.start.Tick)
}

func TestTheOnlyMemberRepeatsItsOwnLostRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Run: lasting(10 * time.Minute)}))
		time.Sleep(time.Hour + time.Minute)
		a.link.Cut()
		time.Sleep(time.Minute)
		a.link.Heal()
		time.Sleep(20 * time.Minute)
		require.Equal(t, []string{"01:00:00 1 lost", "01:00:00 2 succeeded"}, a.outcomes(t, "j"))
	})
}

func TestAChangedOrResumedScheduleBeginsThen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 0 * * *", Deadline: time.Hour, Run: quick}))
		time.Sleep(15*time.Hour + 30*time.Minute)
		changed := time.Now()
		require.NoError(t, a.Reschedule(t.Context(), "j", "0 * * * *", nil))
		time.Sleep(5 * time.Minute)
		require.Empty(t, w.log.ticks(), "no tick of the past")
		require.Empty(t, w.state("j").Missed)
		require.Equal(t, changed.UTC(), w.state("j").Since)
		require.NoError(t, a.Pause(t.Context(), "j"))
		time.Sleep(2 * time.Hour)
		resumed := time.Now()
		require.NoError(t, a.Resume(t.Context(), "j"))
		require.Equal(t, resumed.UTC(), w.state("j").Since)
		require.NoError(t, a.Pause(t.Context(), "j"))
		time.Sleep(3 * time.Hour)
		require.NoError(t, a.Reschedule(t.Context(), "j", "30 * * * *", nil))
		require.Equal(t, map[Reason]int64{ReasonPaused: 5}, w.state("j").Missed, "it was paused when they were due")
	})
}

func TestAJobIsNotLookedAtBeforeItIsRegistered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		a.link.Delay(50 * time.Millisecond)
		require.NoError(t, a.Add(jobs("k", "* * * * *", quick)[0]))
		a.participation.assignJobs() // as a member comes or goes
		time.Sleep(90 * time.Second)
		require.Empty(t, w.log.all(EventRemoved))
		require.EqualValues(t, 1, w.state("k").Fired)
	})
}

func TestLostClaimStartsNoRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var calls atomic.Int64
		a := w.start("a", jobs("j", "0 0 1 1 *", func(context.Context, Run) error { calls.Add(1); return nil }))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/j/run-1", nil, framework.Ephemeral))
		session, err := a.client.Session(t.Context())
		require.NoError(t, err)
		hold, err := primitives.Of(session).Hold(t.Context(), primitives.Created{Path: testPath + "/jobs/j/run-1"})
		require.NoError(t, err)
		hold.End(framework.ErrNodeGone)
		record := storedRun{RunRecord: RunRecord{Number: 1}}
		e := &execution{
			runner: a.participation.currentSession().ownership.runner, session: session, job: a.jobs.findJob("j"),
			record: record, local: newLocalRun(record, session.ID()),
		}
		defer e.local.stop(nil)
		err, why := e.runWhileHeld(hold)
		require.ErrorIs(t, err, framework.ErrNodeGone)
		require.ErrorIs(t, why, framework.ErrNodeGone)
		require.Zero(t, calls.Load())
		require.Empty(t, w.log.all(EventStarted))
	})
}

func TestDrainedRunIsNotRetried(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Attempts: 6, Run: func(context.Context, Run) error {
			time.Sleep(5 * time.Second)
			return errors.New("no")
		}}))
		time.Sleep(61 * time.Second)
		a.stop()
		require.NoError(t, <-a.done)
		require.Empty(t, w.log.all(EventRetrying))
		require.Len(t, w.log.all(EventFinished), 1)
	})
}

// A member adopts a run that it has claimed behind a look that failed, and which had given its slot
// back.
func TestAdoptedRunTakesSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: lasting(30 * time.Second)}), WithMaxConcurrent(1))
		b := w.member("b", nil)
		a.link.Delay(100 * time.Millisecond)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j/run-1",
			Func: zktest.Request.Writes})
		<-lost.Hit()
		claimed, _, err := b.client.Get(t.Context(), testPath+"/jobs/j")
		require.NoError(t, err)
		_, err = b.client.Set(t.Context(), testPath+"/jobs/j", []byte("not a state"), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NotEmpty(t, w.log.all(EventFailed), "the check that has claimed the run has failed")
		require.Equal(t, 1, a.slots.freeSlots())
		_, err = b.client.Set(t.Context(), testPath+"/jobs/j", claimed, framework.AnyVersion)
		require.NoError(t, err)
		until(time.Date(2000, 1, 1, 0, 1, 15, 0, time.UTC))
		require.Len(t, w.log.all(EventStarted), 1)
		require.Equal(t, 0, a.slots.freeSlots())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, a.slots.freeSlots())
	})
}

// The leader's clock is ahead. Its place is deleted, which it hears of only after it has sent a
// claim.
func TestAClaimOfAFormerLeaderIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "31 * * * * *", quick),
			WithNow(func() time.Time { return time.Now().Add(5 * time.Second) }))
		b := w.start("b", jobs("j", "31 * * * * *", quick))
		former, err := b.leadership.election.Leader(t.Context())
		require.NoError(t, err)
		a.link.Delay(200 * time.Millisecond)
		time.Sleep(26*time.Second - 100*time.Millisecond)
		require.NoError(t, b.client.Delete(t.Context(), former.Node, framework.AnyVersion))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"00:00:31"}, w.log.ticks())
		require.Equal(t, "b", w.log.all(EventStarted)[0].member)
	})
}

// Somebody deletes a job's node and the claim of its run, and the job is registered anew: the
// former run, which has the same number as the next, returns late.
func TestRunWithDeletedNodeEndsNoOtherRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := one(Job{Spec: "*/10 * * * * *", Run: lingering(8*time.Second, 30*time.Second, &most)})
		w.start("a", job)
		b := w.member("b", job)
		time.Sleep(12 * time.Second)
		for _, node := range []string{"/jobs/j/run-1", "/jobs/j"} {
			require.NoError(t, b.client.Delete(t.Context(), testPath+node, framework.AnyVersion))
		}
		b.run(t)
		time.Sleep(50 * time.Second)
		finished := w.log.all(EventFinished)
		require.Len(t, finished, 2)
		require.ErrorIs(t, finished[0].Err, framework.ErrNodeGone)
		require.Equal(t, "00:00:20", finished[1].Run.Tick.Format(time.TimeOnly))
		require.NoError(t, finished[1].Err)
	})
}

// Members learn from the list of removed jobs what they have missed, when they cannot tell what has
// changed.
func TestARemovedJobOfOthersIsDroppedWhenAnythingMayHaveChanged(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := []Job{{Name: "j", Spec: "* * * * *", Run: quick}, {Name: "other", Spec: "0 0 1 1 *", Run: quick}}
		// it leads: a job of Spread would come to a once b has dropped it, and a's check would
		// notice
		b := w.start("b", job)
		a := w.start("a", job)
		c := w.member("c", nil)
		a.link.Cut()
		require.NoError(t, c.Remove(t.Context(), "j"))
		for range maxChanges + 1 {
			require.NoError(t, c.Pause(t.Context(), "other"))
			require.NoError(t, c.Resume(t.Context(), "other"))
		}
		time.Sleep(time.Second)
		a.link.Heal()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Nil(t, a.jobs.findJob("j"))
		require.NotNil(t, a.jobs.findJob("other"))
		require.Equal(t, "b", w.leader())
		require.NotNil(t, b.jobs.findJob("other"))
	})
}

// A claim is known only after the removal: its run is ended at once.
func TestRunBegunAfterRemovalIsEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("j", "0 0 1 1 *", quick))
		session, err := a.client.Session(t.Context())
		require.NoError(t, err)
		l := a.jobs.findJob("j").local
		begin := func(generation int64) context.Context {
			r := newLocalRun(storedRun{RunRecord: RunRecord{Number: 1, Token: generation + 1, Manual: true},
				Generation: generation}, session.ID())
			t.Cleanup(func() { r.stop(nil) })
			l.beginRun(r)
			return r.ended
		}
		former := begin(0)
		l.endRunsOf(1)
		require.ErrorIs(t, context.Cause(former), ErrRemoved)
		require.ErrorIs(t, context.Cause(begin(1)), ErrRemoved)
		require.NoError(t, begin(2).Err(), "of a registration since")
	})
}

// TestTakingPartEndsWithItsContext also while there is no session: the campaign, which has ended
// the context, has the reason.
func TestTakingPartEndsWithItsContext(t *testing.T) {
	s := New(idle(t), testPath)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.participation.runMemberSessions(ctx, newActivation(ctx)))
}
