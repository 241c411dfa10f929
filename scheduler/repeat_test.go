package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hang is what a run does whose member is killed.
var hang = lasting(10 * time.Hour)

func TestPauseStopsRepetitionOfRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Run: hang})
		a, b := w.start("a", job), w.start("b", job)
		time.Sleep(time.Hour + time.Second)
		require.NoError(t, b.Pause(t.Context(), "j"))
		a.kill()
		time.Sleep(5 * time.Minute)
		require.Len(t, w.log.all(EventStarted), 1)
		require.Len(t, w.state("j").Pending, 1)
		require.NoError(t, b.Resume(t.Context(), "j"))
		time.Sleep(time.Second)
		require.Len(t, w.log.all(EventStarted), 2)
	})
}

func TestPauseDoesNotStopRepetitionOfTriggeredRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Overlap: OverlapAllow, Run: hang})
		a, b := w.start("a", job), w.start("b", job)
		time.Sleep(time.Hour + time.Second)
		require.NoError(t, b.Pause(t.Context(), "j"))
		require.NoError(t, b.Trigger(t.Context(), "j"))
		time.Sleep(time.Second)
		require.Len(t, w.log.all(EventStarted), 2)
		a.kill()
		time.Sleep(5 * time.Minute)
		started := w.log.all(EventStarted)
		require.Len(t, started, 3)
		require.True(t, started[2].Run.Manual)
		require.Equal(t, 2, started[2].Run.Attempt)
		waiting := w.state("j").Pending
		require.Len(t, waiting, 1)
		require.False(t, waiting[0].Manual, "the tick's run waits for Resume")
	})
}

func TestMinHoldDelaysNoRepetition(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, MinHold: 23 * time.Hour,
			Run: lasting(10 * time.Minute)})
		a := w.start("a", job)
		b := w.start("b", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		time.Sleep(time.Minute)
		require.Len(t, w.log.all(EventStarted), 2, "the tick is run again")
		time.Sleep(48 * time.Hour)
		require.Empty(t, w.state("j").Missed, "%v", b.outcomes(t, "j"))
	})
}

func TestTriggerOfBusyJobRuns(t *testing.T) {
	for _, j := range []Job{
		{Overlap: OverlapReplace, Run: lasting(2 * time.Minute)},
		{Misfire: MisfireAll, Deadline: 10 * time.Minute, Run: lasting(70 * time.Second)},
	} {
		in(t, func(t *testing.T, w *world) {
			a := w.start("a", one(j))
			time.Sleep(3*time.Minute + 30*time.Second)
			require.NoError(t, a.Trigger(t.Context(), "j"))
			time.Sleep(20 * time.Minute)
			var manual []entry
			for _, e := range w.log.all(EventStarted) {
				if e.Run.Manual {
					manual = append(manual, e)
				}
			}
			require.Len(t, manual, 1)
			require.Less(t, manual[0].when.Sub(manual[0].Run.Tick), 4*time.Minute)
			for _, e := range w.log.all(EventFinished) {
				if e.Run.Manual {
					require.GreaterOrEqual(t, e.when.Sub(manual[0].when), time.Minute, "it is not replaced at once")
				}
			}
			w.requireBalanced("j", "* * * * *")
		})
	}
}

func TestAStopBetweenTwoTriesHandsARunOver(t *testing.T) {
	for name, fail := range map[string]func(context.Context, Run) error{
		"fails":     func(context.Context, Run) error { return errors.New("the database is down") },
		"panics":    func(context.Context, Run) error { panic("the database is down") },
		"times out": hang,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var succeeds atomic.Bool
				run := func(ctx context.Context, r Run) error {
					if succeeds.Load() {
						return nil
					}
					return fail(ctx, r)
				}
				job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Timeout: time.Second, Attempts: 11,
					FirstPause: time.Minute, Run: run})
				a := w.start("a", job)
				b := w.start("b", job)
				time.Sleep(time.Hour + 2*time.Second)
				succeeds.Store(true) // a waits for its next try, and b may begin before a's Run has returned
				a.stop()
				require.NoError(t, <-a.done)
				time.Sleep(time.Minute)
				require.Equal(t, []string{"01:00:00 1 stopped", "01:00:00 2 succeeded"}, b.outcomes(t, "j"))
			})
		})
	}
}

// Retries are no reruns, and neither are orderly stops: each of many members that are restarted
// hands the run over.
func TestARollingRestartHandsARunOverAsOftenAsItTakes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Attempts: 51, FirstPause: time.Second,
			Run: func(ctx context.Context, r Run) error {
				if r.Attempt <= MaxReruns {
					return errors.New("not yet")
				}
				return hang(ctx, r)
			}})
		var members []*actor
		for range MaxReruns + 5 {
			members = append(members, w.start("m", job, WithGrace(time.Second)))
		}
		time.Sleep(time.Hour + 20*time.Minute)
		for _, m := range members[:MaxReruns+3] {
			m.stop()
			require.NoError(t, <-m.done)
			time.Sleep(time.Second)
		}
		require.Len(t, w.state("j").Running, 1)
		require.EqualValues(t, 2*MaxReruns+4, w.state("j").Running[0].Attempt)
		members[MaxReruns+3].kill()
		time.Sleep(time.Minute)
		require.Len(t, w.state("j").Running, 1, "stops do not count as reruns")
		require.EqualValues(t, 2*MaxReruns+5, w.state("j").Running[0].Attempt)
	})
}

// Two runs of a job that may overlap wait for a slot, for as long as another job's run takes.
func TestRunsWaitingForSlotSendNoRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var looks atomic.Int64
		now := func() time.Time { // the clock is read for each look
			if looks.Add(1)%1000 == 0 {
				time.Sleep(time.Second) // a loop without a pause would not let time go on
			}
			return time.Now()
		}
		a := w.start("a", []Job{
			{Name: "long", Spec: "0 0 1 1 *", Run: lasting(time.Hour)},
			{Name: "beside", Spec: "0 0 1 1 *", Overlap: OverlapAllow, Run: quick},
		}, WithMaxConcurrent(1), WithNow(now))
		for _, name := range []string{"long", "beside", "beside"} {
			require.NoError(t, a.Trigger(t.Context(), name))
			synctest.Wait()
		}
		before := looks.Load()
		time.Sleep(10 * time.Minute)
		require.Less(t, looks.Load()-before, int64(300), "a look each ten seconds")
		require.Len(t, w.log.all(EventStarted), 1)
		time.Sleep(time.Hour)
		require.Len(t, w.log.all(EventStarted), 3)
	})
}

// What waits for a slot behind a job that has left the member gets it.
func TestJobLeavingSlotLineFreesItsTurn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rare := func(name string) Job { return Job{Name: name, Spec: "0 0 1 1 *", Run: lasting(time.Minute)} }
		a := w.member("a", []Job{rare("x"), rare("y"), rare("z")}, WithMaxConcurrent(1))
		a.settings.maxPause = time.Hour
		a.run(t)
		for _, name := range []string{"x", "y", "z"} {
			require.NoError(t, a.Trigger(t.Context(), name))
			synctest.Wait()
		}
		require.NoError(t, a.Withdraw("y"))
		time.Sleep(61 * time.Second)
		started := w.log.all(EventStarted)
		require.Len(t, started, 2)
		require.Equal(t, "z", started[1].Job)
	})
}

// TestJobsWaitingForSlotTakeTurns has four jobs of one member that are due again whenever their
// runs end, and one slot.
func TestJobsWaitingForSlotTakeTurns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var all []Job
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, Job{Name: name, Spec: "* * * * * *", Misfire: MisfireAll, Deadline: time.Hour,
				Run: lasting(3 * time.Second)})
		}
		w.member("m", all, WithMaxConcurrent(1)).run(t)
		time.Sleep(10 * time.Minute)
		last, longest := map[string]time.Time{}, time.Duration(0)
		for _, e := range w.log.all(EventStarted) {
			if before, ran := last[e.Job]; ran {
				longest = max(longest, e.when.Sub(before))
			}
			last[e.Job] = e.when
		}
		require.Len(t, last, 4)
		require.Less(t, longest, 25*time.Second, "a turn of each takes 12 s")
	})
}
