package scheduler

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// deleteJob deletes a job's nodes as an operator does.
func (w *world) deleteJob(client *framework.Client, job string) {
	w.t.Helper()
	node := testPath + "/jobs/" + job
	for _, child := range w.Children(node) {
		require.NoError(w.t, client.Delete(w.t.Context(), node+"/"+child, framework.AnyVersion))
	}
	require.NoError(w.t, client.Delete(w.t.Context(), node, framework.AnyVersion))
}

// A run of the deleted job has not returned when the job is added again: generations begin at zero
// again, so they do not tell the new registration's runs from the old ones.
func TestJobDeletedByHandRunsAgainOnceAdded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := one(Job{Run: lingering(5*time.Minute, time.Second, &most)})
		a, b := w.start("a", job), w.member("b", nil)
		time.Sleep(61 * time.Second)
		w.deleteJob(b.client, "j")
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventRemoved), 1)
		require.NoError(t, a.Add(job[0]))
		time.Sleep(10 * time.Minute)
		finished := w.log.all(EventFinished)
		require.NoError(t, finished[len(finished)-1].Err)
		require.Equal(t, Succeeded, w.state("j").LastRun.Outcome)
	})
}

// Another member has created the node again before this one registers the job.
func TestJobDeletedByHandThatAnotherMemberHasRegistered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := Job{Name: jobThatPrefers("a", "b"), Spec: "* * * * *", Placement: Spread,
			Run: lingering(5*time.Minute, time.Second, &most)}
		a, b := w.start("a", []Job{job}), w.member("b", []Job{job})
		time.Sleep(61 * time.Second)
		w.deleteJob(b.client, job.Name)
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventRemoved), 1)
		b.run(t)
		require.NoError(t, a.Add(job))
		time.Sleep(15 * time.Minute)
		last := w.state(job.Name).LastRun
		require.Equal(t, "a", last.Runner)
		require.Equal(t, Succeeded, last.Outcome)
	})
}

// Changes are announced while the job has no node yet, and a run of the deleted job goes on.
func TestChangesDuringRegistrationOfDeletedJobEndNoLaterRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var most atomic.Int64
		job := one(Job{Run: lingering(5*time.Minute, time.Second, &most)})
		a, b := w.start("a", job), w.member("b", nil)
		time.Sleep(61 * time.Second)
		w.deleteJob(b.client, "j")
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventRemoved), 1)
		a.link.Delay(100 * time.Millisecond)
		require.NoError(t, a.Add(job[0]))
		require.NoError(t, b.store.announceChanges(t.Context(), "j"))
		time.Sleep(10 * time.Minute)
		require.Equal(t, Succeeded, w.state("j").LastRun.Outcome)
	})
}

// The job's generation is 1 when its node is deleted, and 0 in the node that the next Run creates.
func TestJobDeletedBetweenTwoRunsIsRegisteredAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.start("b", one(Job{Run: quick}))
		require.NoError(t, b.Remove(t.Context(), "j"))
		a := w.start("a", one(Job{Run: quick}))
		synctest.Wait()
		require.EqualValues(t, 1, w.stored("j").Generation)
		a.stop()
		require.NoError(t, <-a.done)
		w.deleteJob(b.client, "j")
		a.run(t)
		time.Sleep(61 * time.Second)
		require.Empty(t, w.log.all(EventRemoved)[1:])
		require.Equal(t, []string{"00:01:00"}, w.log.ticks())
	})
}

// Two members of a release are started at once, and one of them replaces the schedule.
func TestReplacedScheduleIsReportedMissedByOneMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "* * * * * *", Misfire: MisfireSkip, Run: quick}))
		a.stop()
		require.NoError(t, <-a.done)
		time.Sleep(time.Minute)
		next := one(Job{Spec: "0 0 1 1 *", Run: quick})
		slow := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetData, Path: testPath + "/changes"})
		defer slow.Cancel()
		for _, name := range []string{"b", "c"} {
			m := w.member(name, next)
			m.link.Delay(50 * time.Millisecond)
			m.run(t)
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, "0 0 1 1 *", w.state("j").Spec)
		var stored, reported int64
		for _, n := range w.state("j").Missed {
			stored += n
		}
		for _, e := range w.log.all(EventMissed) {
			reported += e.Gap.Count
		}
		require.Positive(t, stored)
		require.Equal(t, stored, reported)
	})
}

// The record of changes was deleted and written as often as before while this member was cut off.
func TestChangesInANewRecordAreNoticed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.start("a", one(Job{Spec: "0 0 1 1 *", Run: quick})), w.member("b", nil)
		time.Sleep(time.Second)
		before, _ := w.Node(testPath + "/changes")
		a.link.Cut()
		require.NoError(t, b.client.Delete(t.Context(), testPath+"/changes", framework.AnyVersion))
		require.NoError(t, b.Trigger(t.Context(), "j"))
		after, _ := w.Node(testPath + "/changes")
		require.Equal(t, before.Stat.Version, after.Stat.Version)
		time.Sleep(time.Second)
		a.link.Heal()
		time.Sleep(30 * time.Second)
		require.Len(t, w.log.all(EventStarted), 1)
	})
}

// A member's node was deleted, and created again with another description, while another member was
// cut off.
func TestNewDescriptionOfMemberWhoseNodeWasDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := Job{Name: jobThatPrefers("b", "a"), Spec: "* * * * *", Placement: Spread, Run: quick}
		a, b := w.start("a", []Job{job}), w.start("b", []Job{job, {Name: "other", Spec: "0 0 1 1 *", Run: quick}})
		c := w.member("c", nil)
		time.Sleep(61 * time.Second)
		require.Equal(t, "b", w.log.all(EventStarted)[0].member)
		node := b.participation.currentSession().membership.name
		a.link.Cut()
		b.link.Cut()
		require.NoError(t, b.Withdraw(job.Name))
		require.NoError(t, c.client.Delete(t.Context(), testPath+"/members/"+node, framework.AnyVersion))
		b.link.Heal()
		time.Sleep(3 * time.Second)
		a.link.Heal()
		time.Sleep(3 * time.Minute)
		started := w.log.all(EventStarted)
		require.Equal(t, "a", started[len(started)-1].member)
	})
}
