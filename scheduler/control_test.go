package scheduler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func TestAJobIsTriggeredFromAnywhere(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", one(Job{Spec: "0 * * * *", Run: lasting(time.Minute)}))
		b := w.start("b", one(Job{Spec: "0 * * * *", Run: lasting(time.Minute)}))
		time.Sleep(90*time.Second + 300*time.Millisecond)
		require.NoError(t, b.Trigger(t.Context(), "j"))
		require.NoError(t, b.Trigger(t.Context(), "j"))
		synctest.Wait()
		started := w.log.all(EventStarted)
		require.Len(t, started, 1)
		require.Equal(t, "a", started[0].member)
		require.True(t, started[0].Run.Manual)
		require.Equal(t, "00:01:30", started[0].Run.Tick.Format(time.TimeOnly))
		require.Len(t, w.state("j").Pending, 1)
		time.Sleep(61 * time.Second)
		require.Len(t, w.log.all(EventStarted), 2, "one after the other")
		for range maxPending {
			require.NoError(t, b.Trigger(t.Context(), "j"))
		}
		require.ErrorIs(t, b.Trigger(t.Context(), "j"), ErrTooManyPending)
		require.ErrorIs(t, b.Trigger(t.Context(), "k"), errUnknownJob)
		time.Sleep(15 * time.Minute)
		state := w.requireBalanced("j", "0 * * * *")
		require.EqualValues(t, maxPending+2, state.Number)
		require.Zero(t, state.Fired, "they are no ticks")
	})
}

// TestTriggerRegistersAJobOfThisMember that no member has registered, before Run, at its begin, and
// after a removal.
func TestTriggerRegistersAJobOfThisMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := append(one(Job{Spec: "0 * * * *", Run: quick}),
			Job{Name: "k", Spec: "0 * * * *", Run: quick, Placement: Spread})
		a := w.member("a", all)
		require.NoError(t, a.Trigger(t.Context(), "j"))
		require.ErrorIs(t, a.Trigger(t.Context(), "l"), errUnknownJob)
		a.link.Delay(time.Second)
		a.run(t)
		require.NoError(t, a.Trigger(t.Context(), "k"))
		a.link.Delay(0)
		until(time.Now().Add(time.Minute))
		require.Len(t, w.log.all(EventStarted), 2)

		require.NoError(t, a.Remove(t.Context(), "k"))
		require.ErrorIs(t, a.Trigger(t.Context(), "k"), errUnknownJob)
		b := w.member("b", all)
		require.NoError(t, b.Trigger(t.Context(), "k"))
		b.run(t)
		until(time.Now().Add(time.Minute))
		require.Len(t, w.log.all(EventStarted), 3)
		require.EqualValues(t, 1, w.state("k").Triggered)
	})
}

// TestAJobThatNoMemberHasRegisteredIsChanged by the Scheduler that has it: before its Run, and
// while its Run has begun and has not registered the job yet. The registration undoes no change.
func TestAJobThatNoMemberHasRegisteredIsChanged(t *testing.T) {
	changes := map[string]struct {
		change func(ctx context.Context, s *Scheduler) error
		is     func(t *testing.T, w *world)
	}{
		"paused": {func(ctx context.Context, s *Scheduler) error { return s.Pause(ctx, "j") },
			func(t *testing.T, w *world) {
				require.NotZero(t, w.state("j").Paused)
				require.Empty(t, w.log.all(EventStarted))
			}},
		"resumed": {func(ctx context.Context, s *Scheduler) error { return s.Resume(ctx, "j") },
			func(t *testing.T, w *world) { require.Len(t, w.log.all(EventStarted), 1) }},
		"rescheduled": {
			func(ctx context.Context, s *Scheduler) error { return s.Reschedule(ctx, "j", "30 * * * *", nil) },
			func(t *testing.T, w *world) { require.Equal(t, []string{"00:30:00"}, w.log.ticks()) }},
		"removed": {func(ctx context.Context, s *Scheduler) error { return s.Remove(ctx, "j") },
			func(t *testing.T, w *world) {
				require.NotZero(t, w.stored("j").Removed)
				require.Empty(t, w.log.all(EventStarted))
			}},
	}
	for name, c := range changes {
		for when, began := range map[string]bool{"before Run": false, "while Run registers": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					a := w.member("a", append(jobs("j", "0 * * * *", quick), jobs("other", "0 0 1 1 *", quick)...))
					j := a.jobs.findJob("j")
					if began {
						a.link.Delay(100 * time.Millisecond)
						a.run(t)
						require.False(t, j.entered.Load())
					}
					require.NoError(t, c.change(t.Context(), a.Scheduler))
					created, _, err := a.registrar.enterJob(t.Context(), j)
					require.NoError(t, err)
					require.False(t, created, "a registration that comes later")
					if !began {
						a.run(t)
					}
					until(time.Date(2000, time.January, 1, 1, 10, 0, 0, time.UTC))
					c.is(t, w)
				})
			})
		}
	}
}

// TestTwoCallsEnterAJobAtOnce: one of them reads that the job has no node, and gets the answer
// after the other one has entered the job. So the job was not removed, unless somebody has removed
// it.
func TestTwoCallsEnterAJobAtOnce(t *testing.T) {
	for _, removed := range []bool{false, true} {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a", jobs("j", "0 * * * *", quick)), w.member("b", jobs("j", "0 * * * *", quick))
			j := a.jobs.findJob("j")
			a.link.Delay(100 * time.Millisecond)
			ended := make(chan error)
			go func() {
				_, _, err := a.registrar.enterJob(t.Context(), j)
				ended <- err
			}()
			time.Sleep(150 * time.Millisecond) // the answer is on its way
			require.NoError(t, b.Trigger(t.Context(), "j"))
			if removed {
				require.NoError(t, b.Remove(t.Context(), "j"))
			}
			j.entered.Store(true) // as the other call does
			require.NoError(t, <-ended)
			require.Equal(t, removed, a.jobs.findJob("j") == nil)
			require.Equal(t, removed, !w.stored("j").Removed.IsZero())
		})
	}
}

func TestALostReplyOfATriggerRunsItOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", one(Job{Spec: "0 * * * *", Run: quick}))
		b := w.member("b", nil)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/changes",
			Func: zktest.Request.Writes})
		require.NoError(t, b.Trigger(t.Context(), "j"))
		<-lost.Hit()
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventStarted), 1)
	})
}

func TestLateSettledTriggerRunsOnceAfterOtherRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", one(Job{Spec: "* * * * * *", Run: quick}))
		b := w.member("b", nil)
		_, err := b.State(t.Context(), "j")
		require.NoError(t, err)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/changes",
			Func: zktest.Request.Writes})
		done := make(chan error)
		go func() { done <- b.Trigger(t.Context(), "j") }()
		<-lost.Hit()
		b.link.Cut()
		time.Sleep(time.Minute)
		b.link.Heal()
		require.NoError(t, <-done)
		time.Sleep(10 * time.Second)
		manual := 0
		for _, e := range w.log.all(EventStarted) {
			if e.Run.Manual {
				manual++
			}
		}
		require.Equal(t, 1, manual)
	})
}

func TestTriggerOutlivesAllMembers(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 0 1 1 *", Run: quick})
		a := w.start("a", job)
		a.stop()
		require.NoError(t, <-a.done)
		require.NoError(t, a.Trigger(t.Context(), "j"))
		time.Sleep(24 * time.Hour)
		w.start("b", job)
		require.Len(t, w.log.all(EventStarted), 1)
	})
}

func TestAPausedJobMissesItsTicks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: quick}))
		b := w.start("b", one(Job{Run: quick}))
		time.Sleep(90 * time.Second)
		for range 2 {
			require.NoError(t, b.Pause(t.Context(), "j"))
		}
		reports, err := b.Jobs(t.Context())
		require.NoError(t, err)
		require.Zero(t, reports[0].Next(time.Now()))
		time.Sleep(5 * time.Minute)
		a.kill() // whoever is next does not run it either
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 1)
		require.NoError(t, b.Trigger(t.Context(), "j"))
		synctest.Wait()
		require.Len(t, w.log.ticks(), 2, "but runs it when asked to")
		for range 2 {
			require.NoError(t, b.Resume(t.Context(), "j"))
		}
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 3)
		require.Equal(t, map[Reason]int64{ReasonPaused: 6}, w.requireBalanced("j", "* * * * *").Missed)
	})
}

func TestAScheduleIsChangedAtRunTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 0 * * *", Run: quick})
		a := w.start("a", job)
		b := w.start("b", job)
		require.NoError(t, b.Reschedule(t.Context(), "j", "*/10 * * * *", zone(t, "Asia/Kolkata")))
		time.Sleep(31 * time.Minute)
		require.Equal(t, []string{"00:10:00", "00:20:00", "00:30:00"}, w.log.ticks())
		a.stop()
		require.NoError(t, <-a.done)
		w.start("c", job)
		require.Equal(t, "*/10 * * * *", w.state("j").Spec, "the same release does not change it back")
		time.Sleep(10 * time.Minute)
		require.Len(t, w.log.ticks(), 4)
		w.start("d", one(Job{Spec: "0 12 * * *", Run: quick}))
		state := w.state("j")
		require.Equal(t, "0 12 * * *", state.Spec, "another one does")
		require.Empty(t, w.stored("j").DeclaredSpec)
		require.NoError(t, b.Reschedule(t.Context(), "j", "0 1 * * *", nil))
		require.NoError(t, b.Reschedule(t.Context(), "j", "0 12 * * *", nil))
		require.Empty(t, w.stored("j").DeclaredSpec, "as if nothing had been")
	})
}

func TestTicksOfAReplacedScheduleAreRecorded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "* * * * *", Run: quick}))
		a.stop()
		require.NoError(t, <-a.done)
		time.Sleep(10*time.Minute + 30*time.Second)
		w.start("b", one(Job{Spec: "*/5 * * * *", Run: quick}))
		time.Sleep(15 * time.Minute)
		require.Equal(t, []string{"00:15:00", "00:20:00", "00:25:00"}, w.log.ticks())
		require.Equal(t, map[Reason]int64{ReasonChanged: 10}, w.state("j").Missed)
	})
}

func TestReleasesSideBySide(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		release := func(spec string,
			revision int64) []Job {
			return one(Job{Spec: spec, Revision: revision, Run: quick})
		}
		spec := func() string { return w.state("j").Spec }
		old := w.start("old", release("* * * * *", 0))
		w.start("new", release("*/2 * * * *", 0))
		require.Equal(t, "*/2 * * * *", spec(), "the last to start")
		time.Sleep(4*time.Minute + time.Second)
		require.Equal(t, []string{"00:02:00", "00:04:00"}, w.log.ticks(), "the old one runs by the new schedule")
		require.Equal(t, "old", w.log.all(EventStarted)[0].member)
		old.stop()
		require.NoError(t, <-old.done)
		w.start("old again", release("* * * * *", 0))
		require.Equal(t, "* * * * *", spec())
		w.start("newest", release("*/3 * * * *", 7))
		require.Equal(t, "*/3 * * * *", spec())
		w.start("older", release("* * * * *", 6))
		w.start("new again", release("*/2 * * * *", 0))
		require.Equal(t, "*/3 * * * *", spec(), "a lower revision replaces nothing")
		time.Sleep(20 * time.Minute)
		state := w.state("j")
		require.Equal(t, state.Fired, int64(len(w.log.ticks())))
	})
}

func TestJobsAreAddedAndRemovedWhileTheyRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Run: lasting(30 * time.Second)}))
		b := w.start("b", one(Job{Run: lasting(30 * time.Second)}))
		for _, m := range []*actor{a, b} {
			require.NoError(t, m.Add(Job{Name: "k", Spec: "* * * * *", Run: quick}))
			require.NoError(t, m.Add(Job{Name: "s", Spec: "* * * * *", Run: quick, Placement: Spread}))
		}
		time.Sleep(61 * time.Second)
		require.Len(t, w.log.all(EventStarted), 3)
		require.NoError(t, b.Remove(t.Context(), "j"))
		synctest.Wait()
		finished := w.log.all(EventFinished)
		require.ErrorIs(t, finished[len(finished)-1].Err, ErrRemoved, "the run that went on")
		_, err := b.State(t.Context(), "j")
		require.ErrorIs(t, err, errUnknownJob)
		time.Sleep(2 * time.Minute)
		require.Len(t, w.log.all(EventStarted), 7)
		require.ErrorIs(t, b.Remove(t.Context(), "j"), errUnknownJob)
		w.start("c", one(Job{Run: quick}))
		time.Sleep(time.Minute)
		require.Zero(t, w.state("j").Fired, "the leader has it no more")
		require.NoError(t, a.Add(Job{Name: "j", Spec: "* * * * *", Run: quick}))
		time.Sleep(time.Minute)
		require.Positive(t, w.state("j").Fired)
	})
}

func TestARemovedJobIsAddedToAnyMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := append(spreadJobs(20, "* * * * *", quick), jobs("j", "* * * * *", quick)...)
		a, b := w.start("a", all), w.start("b", all)
		require.Equal(t, "a", w.leader())
		time.Sleep(time.Second)
		for _, j := range all {
			require.NoError(t, b.Remove(t.Context(), j.Name))
		}
		time.Sleep(time.Second)
		for _, m := range []*actor{b, a} { // whether the jobs were its own or not
			for _, j := range all {
				require.NoError(t, m.Add(j), j.Name)
			}
		}
		time.Sleep(2 * time.Minute)
		for _, j := range all {
			require.Positive(t, w.state(j.Name).Fired, j.Name)
		}
	})
}

func TestEverythingIsCaughtUpByPolicyAfterARestartOfAll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var all []Job
		for _, m := range []Misfire{MisfireSkip, MisfireLatest, MisfireAll} {
			for _, p := range []Placement{OnLeader, Spread} {
				all = append(all, Job{Name: fmt.Sprint(m, "-", p), Spec: "*/10 * * * *", Misfire: m, Placement: p,
					Deadline: 27 * time.Minute, Run: quick})
			}
		}
		a := w.start("a", all)
		a.kill()
		time.Sleep(time.Hour + 5*time.Minute)
		w.start("b", all)
		time.Sleep(time.Second)
		for _, j := range all {
			want := map[Misfire]int64{MisfireSkip: 0, MisfireLatest: 1, MisfireAll: 3}[j.Misfire]
			require.Equal(t, want, w.requireBalanced(j.Name, j.Spec).Fired, j.Name)
		}
	})
}

func TestUnreadableChangesReloadAllJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 * * * *", Run: quick}))
		_, err := a.client.Set(t.Context(), testPath+"/changes", []byte("?"), -1)
		require.NoError(t, err)
		require.NoError(t, a.Trigger(context.Background(), "j"))
		synctest.Wait()
		require.Len(t, w.log.all(EventStarted), 1)
	})
}

// TestTriggeredRunsAreCounted beside those of ticks.
func TestTriggeredRunsAreCounted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.start("a", jobs("yearly", "0 0 1 7 *", quick))
		for range 2 {
			require.NoError(t, m.Trigger(t.Context(), "yearly"))
			time.Sleep(time.Minute)
		}
		state := w.state("yearly")
		require.Equal(t, int64(2), state.Triggered)
		require.Zero(t, state.Fired)
	})
}
