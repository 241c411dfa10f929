package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"
)

// problems inspects a job and returns its problems.
func (m *actor) problems(t *testing.T, job string) (Report, []Problem) {
	t.Helper()
	r, err := m.Inspect(t.Context(), job)
	require.NoError(t, err)
	var all []Problem
	for _, f := range r.Findings {
		all = append(all, f.Problem)
	}
	return r, all
}

func ids(members []Member) (out []string) {
	for _, m := range members {
		out = append(out, m.ID)
	}
	return out
}

func TestInspectFindsJobWithoutMemberAndOverdueTicks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		look := w.member("look", nil)
		a := w.start("a", append(one(Job{Spec: "0 * * * *", Run: quick, Description: "./a.sh"}),
			spreadJobs(1, "0 * * * *", quick)...))
		b := w.start("b", jobs("other", "0 * * * *", quick))
		time.Sleep(90 * time.Minute)
		for _, job := range []string{"j", "j000"} {
			r, problems := look.problems(t, job)
			require.Empty(t, problems, job)
			require.Equal(t, []string{"a"}, ids(r.Members))
			require.Equal(t, "a", r.Owner.ID)
			require.Equal(t, job == "j", r.Description == "./a.sh")
		}
		a.stop()
		require.NoError(t, <-a.done)
		synctest.Wait()
		r, problems := look.problems(t, "j")
		require.Equal(t, []Problem{ProblemNoMember}, problems)
		require.Zero(t, r.Overdue.Count)
		require.Nil(t, r.Owner)
		require.Equal(t, "b", r.Leader, "which leads without the job")
		require.Equal(t, "01:00:00", r.Alive.Format(time.TimeOnly))
		time.Sleep(150 * time.Minute)
		for _, job := range []string{"j", "j000"} {
			r, problems = look.problems(t, job)
			require.Equal(t, []Problem{ProblemNoMember}, problems, job)
			require.EqualValues(t, 3, r.Overdue.Count)
			require.Equal(t, "02:00:00", r.Overdue.From.Format(time.TimeOnly))
			require.Equal(t, "02:00:00", r.Findings[0].Since.Format(time.TimeOnly))
			require.Contains(t, r.Findings[0].Text,
				"no member has it; b leads without it; 3 ticks due since 2000-01-01T02:00:00Z")
		}
		b.stop()
		require.NoError(t, <-b.done)
		all, err := failure.Collect(look.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, all, 3)
		for _, r := range all {
			require.Equal(t, ProblemNoMember, r.Findings[0].Problem, r.Name)
			require.Empty(t, r.Members)
		}
		require.Zero(t, w.state("j").Missed, "to look changes nothing")
	})
}

func TestInspectReportsRunningMemberAsOwner(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		look := w.member("look", nil)
		all := spreadJobs(8, "* * * * *", quick)
		all[0].Labels = map[string]string{"disk": "ssd"}
		w.start("a", all)
		w.start("b", all, WithLabels(map[string]string{"disk": "ssd"}))
		time.Sleep(61 * time.Second)
		for _, e := range w.log.all(EventStarted) {
			r, problems := look.problems(t, e.Job)
			require.Empty(t, problems)
			require.Equal(t, e.member, r.Owner.ID, e.Job)
			if e.Job == all[0].Name {
				require.Equal(t, []string{"b"}, ids(r.Members), "a lacks the label")
			} else {
				require.Equal(t, []string{"a", "b"}, ids(r.Members))
			}
		}
	})
}

func TestTheMembersOfAJobFollowAddAndWithdraw(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", append(jobs("j", "* * * * *", quick), jobs("z", "* * * * *", quick)...))
		b := w.start("b", jobs("k", "* * * * *", quick))
		changes := func() int32 {
			n, ok := w.Node(testPath + "/changes")
			require.True(t, ok)
			return n.Stat.Version
		}
		before := changes()
		require.NoError(t, b.Add(Job{Name: "j", Spec: "* * * * *", Run: quick}))
		synctest.Wait()
		r, _ := a.problems(t, "j")
		require.Equal(t, []string{"a", "b"}, ids(r.Members))
		require.Equal(t, before, changes(), "other members need not know")
		require.NoError(t, a.Withdraw("j"))
		synctest.Wait()
		r, problems := a.problems(t, "j")
		require.Equal(t, []string{"b"}, ids(r.Members))
		require.Equal(t, []Problem{ProblemNoMember}, problems)
		require.Contains(t, r.Findings[0].Text, "a leads and does not have it; b does")
	})
}

func TestUnexplainedTicksOfServedJobAreOverdue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		look := w.member("look", nil)
		w.start("a", one(Job{Spec: "0 * * * *", Run: lasting(90 * time.Minute), Misfire: MisfireAll,
			Deadline: 24 * time.Hour, Jitter: time.Minute}))
		until(time.Date(2000, 1, 1, 2, 20, 0, 0, time.UTC))
		r, problems := look.problems(t, "j")
		require.Empty(t, problems, "the tick of 2:00 waits for a run")
		require.Equal(t, time.Minute, r.Jitter)
		r.Running = nil
		for _, at := range []struct {
			after   time.Duration
			overdue int64
		}{{10 * time.Second, 0}, {134 * time.Second, 0}, {135 * time.Second, 1}, {time.Hour + 135*time.Second, 2}} {
			r.At = time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC).Add(at.after)
			r.findProblems()
			require.Equal(t, at.overdue, r.Overdue.Count, at.after)
		}
		require.Equal(t, ProblemOverdue, r.Findings[0].Problem)
		r.Paused = r.At
		r.findProblems()
		require.Empty(t, r.Findings)
	})
}

func TestInspectFindsFailedAndMissedRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var mended atomic.Bool
		look := w.member("look", nil)
		a := w.start("a", one(Job{Spec: "0 * * * *", Run: func(context.Context, Run) error {
			if mended.Load() {
				return nil
			}
			return errors.New("disk full")
		}}))
		time.Sleep(61 * time.Minute)
		r, problems := look.problems(t, "j")
		require.Equal(t, []Problem{ProblemFailed}, problems)
		require.Equal(t, "the latest run failed: disk full", r.Findings[0].Text)
		mended.Store(true)
		time.Sleep(time.Hour)
		_, problems = look.problems(t, "j")
		require.Empty(t, problems)
		a.kill()
		time.Sleep(3 * time.Hour)
		w.start("b", one(Job{Spec: "0 * * * *", Run: quick, Misfire: MisfireSkip}))
		r, problems = look.problems(t, "j")
		require.Equal(t, []Problem{ProblemMissed}, problems)
		require.Equal(t, "the latest tick did not run: no leader, 3 ticks until 2000-01-01T05:00:00Z",
			r.Findings[0].Text)
		time.Sleep(time.Hour)
		_, problems = look.problems(t, "j")
		require.Empty(t, problems)
	})
}

func TestRunOfGoneMemberIsAbandoned(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		look := w.member("look", nil)
		a := w.start("a", one(Job{Spec: "0 * * * *", Run: lasting(3 * time.Hour)}))
		time.Sleep(61 * time.Minute)
		r, _ := look.problems(t, "j")
		require.Len(t, r.Running, 1)
		require.Empty(t, r.Abandoned)
		a.kill()
		time.Sleep(2 * timeout)
		r, problems := look.problems(t, "j")
		require.Len(t, r.Abandoned, 1)
		require.Equal(t, []Problem{ProblemNoMember}, problems)
		time.Sleep(time.Hour)
		r, _ = look.problems(t, "j")
		require.EqualValues(t, 1, r.Overdue.Count, "a run that is gone explains nothing")
	})
}

func TestAStoppedRunIsNoFailure(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: lasting(time.Hour)}), WithGrace(time.Second))
		time.Sleep(61 * time.Second)
		a.stop()
		require.NoError(t, <-a.done)
		state := w.state("j")
		require.Equal(t, Stopped, state.LastRun.Outcome)
		require.Zero(t, state.Failures)
	})
}

func TestADescriptionIsReplacedAsASchedule(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		described := func(text string, revision int64) []Job {
			return one(Job{Spec: "0 * * * *", Run: quick, Description: text, Revision: revision})
		}
		w.start("a", described("first", 1))
		time.Sleep(90 * time.Minute)
		w.start("b", described("second", 1))
		state := w.state("j")
		require.Equal(t, "second", state.Description)
		require.Zero(t, state.Missed)
		require.True(t, state.Since.IsZero(), "the schedule is the same")
		w.start("c", described("third", 0))
		require.Equal(t, "second", w.state("j").Description, "of a higher revision")
		require.ErrorIs(t, w.member("d", nil).Add(described("\xff", 0)[0]), errInvalidJob)
	})
}

// TestAJobWithoutMembersIsDueSinceItsTick: nobody tells when its members left, and its latest tick
// may be long ago.
func TestAJobWithoutMembersIsDueSinceItsTick(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("daily", "0 0 * * *", quick))
		looker := w.member("looker", nil)
		time.Sleep(time.Hour)
		a.stop()
		time.Sleep(time.Hour)
		report, err := looker.Inspect(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, ProblemNoMember, report.Findings[0].Problem)
		require.Zero(t, report.Findings[0].Since, "no tick is due")
		time.Sleep(24 * time.Hour)
		report, err = looker.Inspect(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, report.Overdue.From, report.Findings[0].Since)
	})
}
