package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestScheduleStoredByDeadMemberIsUsed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", jobs("j", "0 0 1 1 *", quick))
		b := w.member("b", jobs("j", "* * * * *", quick))
		_, err := b.State(t.Context(), "j")
		require.NoError(t, err)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j",
			Func: zktest.Request.Writes})
		b.run(t)
		<-lost.Hit()
		b.kill()
		require.Equal(t, "* * * * *", w.state("j").Spec)
		time.Sleep(10*time.Minute + time.Second)
		require.Positive(t, w.state("j").Fired)
	})
}

func TestFailedRegistrationReplacesNoSchedule(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/x", []byte("?"), framework.Persistent))
		b := w.member("b", append(jobs("j", "0 0 1 1 *", quick), jobs("x", "* * * * *", quick)...))
		require.ErrorIs(t, b.Run(t.Context()), framework.ErrBadRecord)
		require.Equal(t, "* * * * *", w.state("j").Spec)
		time.Sleep(10*time.Minute + time.Second)
		require.EqualValues(t, 10, w.state("j").Fired)
	})
}

// Jobs that run all the time are given other schedules by several members at once, which reach the
// servers late: all of them are replaced, and gone by.
func TestManySchedulesAreReplacedWhileTheirJobsRun(t *testing.T) {
	release := func(n int, name, spec string) (all []Job) {
		for i := range n {
			all = append(all, Job{Name: fmt.Sprint(name, i), Spec: spec, Jitter: time.Second, Run: quick})
		}
		return all
	}
	in(t, func(t *testing.T, w *world) {
		w.start("a", append(release(20, "busy", "* * * * * *"), release(60, "rare", "0 0 1 1 *")...))
		time.Sleep(10 * time.Second)
		next := append(release(20, "busy", "*/2 * * * * *"), release(60, "rare", "*/2 * * * * *")...)
		for _, name := range []string{"b", "c"} {
			m := w.member(name, next)
			m.link.Delay(50 * time.Millisecond)
			m.run(t)
		}
		time.Sleep(time.Minute)
		before := map[string]int64{}
		for _, j := range next {
			state := w.state(j.Name)
			require.Equal(t, j.Spec, state.Spec, j.Name)
			before[j.Name] = state.Fired
		}
		time.Sleep(20 * time.Second)
		for _, j := range next {
			require.InDelta(t, 10, w.state(j.Name).Fired-before[j.Name], 1, j.Name)
		}
	})
}

func TestSchedulesAreReplacedInFewTransactions(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", spreadJobs(300, "0 0 1 1 *", quick))
		b := w.member("b", spreadJobs(300, "* * * * *", quick))
		before := w.Requests()[zktest.OpMulti]
		b.run(t)
		time.Sleep(10 * time.Second)
		require.Less(t, w.Requests()[zktest.OpMulti]-before, int64(20))
		time.Sleep(time.Minute)
		require.Len(t, w.runners("00:01:00"), 300)
	})
}

// The job is removed between the look at its state and the transaction that replaces its schedule.
func TestAJobRemovedWhileItIsRegisteredStaysRemoved(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, by *actor) error{
		"removed": func(t *testing.T, by *actor) error { return by.Remove(t.Context(), "j") },
		"deleted by hand": func(t *testing.T, by *actor) error {
			session, err := by.client.Session(t.Context())
			require.NoError(t, err)
			return session.Delete(t.Context(), testPath+"/jobs/j", -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.start("a", jobs("j", "0 0 1 1 *", quick))
				a.stop()
				require.NoError(t, <-a.done)
				b := w.member("b", jobs("j", "* * * * *", quick))
				j := b.jobs.findJob("j")
				_, old, err := b.registrar.enterJob(t.Context(), j)
				require.NoError(t, err)
				require.Len(t, old, 1)
				require.NoError(t, remove(t, a))
				require.NoError(t, b.registrar.replaceSchedules(t.Context(), old))
				require.Nil(t, b.jobs.findJob("j"))
				created, old, err := b.registrar.enterJob(t.Context(), j)
				require.NoError(t, err)
				require.False(t, created, "a second try of a registration comes after the removal, too")
				require.Empty(t, old)
			})
		})
	}
}
