package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// outcomes returns the runs that have ended as tick, attempt and outcome, oldest first.
func (m *actor) outcomes(t *testing.T, job string) (out []string) {
	t.Helper()
	runs, err := m.Runs(context.Background(), job)
	require.NoError(t, err)
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		out = append(out, fmt.Sprintf("%s %d %s", r.Tick.Format(time.TimeOnly), r.Attempt, r.Outcome))
	}
	return out
}

func one(j Job) []Job {
	j.Name = "j"
	if j.Spec == "" {
		j.Spec = "* * * * *"
	}
	return []Job{j}
}

func TestARunOfADeadMemberIsRunAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "*/30 * * * *", Guarantee: AtLeastOnce, Run: lasting(20 * time.Minute)})
		a := w.start("a", job)
		b := w.start("b", job)
		time.Sleep(31 * time.Minute)
		a.kill()
		time.Sleep(time.Minute)
		started := w.log.all(EventStarted)
		require.Len(t, started, 2, "at once, not with the next tick")
		require.Equal(t, started[0].Run.Tick, started[1].Run.Tick)
		require.Equal(t, 2, started[1].Run.Attempt)
		require.Greater(t, started[1].Run.Token, started[0].Run.Token)
		time.Sleep(27 * time.Minute) // 00:59
		state := w.requireBalanced("j", "*/30 * * * *")
		require.EqualValues(t, 1, state.Fired)
		require.Empty(t, state.Missed)
		require.Equal(t, []string{"00:30:00 1 lost", "00:30:00 2 succeeded"}, b.outcomes(t, "j"))
	})
}

func TestRerunsOfCrashingRunAreLimited(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 1 * * *", Guarantee: AtLeastOnce, Run: lasting(time.Hour)})
		var members []*actor
		for i := range MaxReruns + 3 {
			members = append(members, w.start(fmt.Sprint("m", i), job))
		}
		time.Sleep(time.Hour + time.Second)
		for i := range MaxReruns + 1 {
			members[i].kill()
			time.Sleep(2 * timeout)
		}
		require.Len(t, w.log.all(EventStarted), MaxReruns+1)
		state := w.state("j")
		require.Equal(t, map[Reason]int64{ReasonRunnerLost: 1}, state.Missed)
		require.Zero(t, state.Fired)
	})
}

func TestAStoppedRunOfAtLeastOnceIsHandedOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 * * * *", Guarantee: AtLeastOnce, Run: lasting(10 * time.Minute)})
		a := w.start("a", job, WithGrace(time.Second))
		b := w.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		require.NoError(t, <-a.done)
		time.Sleep(30 * time.Minute)
		require.Equal(t, []string{"01:00:00 1 stopped", "01:00:00 2 succeeded"}, b.outcomes(t, "j"))
		require.EqualValues(t, 1, w.requireBalanced("j", "0 * * * *").Fired)
	})
}

func TestAllMissedTicksWithinTheDeadlineAreRunInOrder(t *testing.T) {
	for _, overlap := range []Overlap{OverlapForbid, OverlapAllow} {
		in(t, func(t *testing.T, w *world) {
			job := one(Job{Misfire: MisfireAll, Deadline: 5 * time.Minute, Overlap: overlap,
				Run: lasting(10 * time.Second)})
			a := w.start("a", job)
			a.stop()
			require.NoError(t, <-a.done)
			time.Sleep(10*time.Minute + 30*time.Second)
			w.start("b", job)
			time.Sleep(2 * time.Minute)
			ticks := w.log.ticks()
			if overlap == OverlapAllow { // claimed in order, and started together
				slices.Sort(ticks)
			}
			require.Equal(t, []string{"00:06:00", "00:07:00", "00:08:00", "00:09:00", "00:10:00", "00:11:00",
				"00:12:00"}, ticks)
			state := w.requireBalanced("j", "* * * * *")
			require.Equal(t, map[Reason]int64{ReasonNoLeader: 5}, state.Missed)
			second := w.log.all(EventStarted)[1].when
			require.Equal(t, overlap == OverlapForbid, second.After(w.log.all(EventFinished)[0].when) ||
				second.Equal(w.log.all(EventFinished)[0].when))
		})
	}
}

func TestTicksRunBesideEachOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Overlap: OverlapAllow, Run: lasting(150 * time.Second)}))
		time.Sleep(3*time.Minute + time.Second)
		require.Len(t, w.state("j").Running, 3)
		require.Len(t, w.claims("j"), 3)
		time.Sleep(90 * time.Second)
		require.Equal(t, []string{"00:01:00 1 succeeded", "00:02:00 1 succeeded", "00:03:00 1 ", "00:04:00 1 "},
			a.outcomes(t, "j"))
		require.Empty(t, w.requireBalanced("j", "* * * * *").Missed)
	})
}

func TestATickReplacesTheRunBeforeIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Overlap: OverlapReplace, Run: func(ctx context.Context, _ Run) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second) // tidies up
			return context.Cause(ctx)
		}}))
		time.Sleep(3*time.Minute + 5*time.Second)
		started, finished := w.log.all(EventStarted), w.log.all(EventFinished)
		require.Len(t, started, 3)
		require.ErrorIs(t, finished[0].Err, ErrReplaced)
		require.Equal(t, finished[0].when, started[1].when, "never two at once")
		require.Equal(t, []string{"00:01:00 1 replaced", "00:02:00 1 replaced", "00:03:00 1 "}, a.outcomes(t, "j"))
		require.Empty(t, w.requireBalanced("j", "* * * * *").Missed)
	})
}

func TestATickReplacesARunOfAFormerOwner(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Overlap: OverlapReplace, Run: lasting(time.Hour)})
		a := w.start("a", job, WithGrace(time.Hour))
		w.start("b", job)
		time.Sleep(61 * time.Second)
		a.stop() // its run goes on
		time.Sleep(61 * time.Second)
		require.NoError(t, <-a.done)
		started, finished := w.log.all(EventStarted), w.log.all(EventFinished)
		require.Len(t, started, 2)
		require.Equal(t, "b", started[1].member)
		require.ErrorIs(t, finished[0].Err, ErrReplaced)
		require.False(t, started[1].when.Before(finished[0].when))
		require.Empty(t, w.requireBalanced("j", "* * * * *").Missed)
	})
}

func TestMinHoldSeparatesStarts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", one(Job{MinHold: 150 * time.Second, Run: quick}))
		time.Sleep(7*time.Minute + time.Second)
		require.Equal(t, []string{"00:01:00", "00:04:00", "00:07:00"}, w.log.ticks())
		require.Equal(t, map[Reason]int64{ReasonMinHold: 4}, w.requireBalanced("j", "* * * * *").Missed)
	})
}

func TestFailedRunsAreRetried(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var when []time.Duration
		var began time.Time
		a := w.start("a", one(Job{Spec: "0 * * * *", Attempts: 4, FirstPause: 10 * time.Second,
			Run: func(_ context.Context, r Run) error {
				if r.Attempt == 1 {
					began = time.Now()
				}
				when = append(when, time.Since(began))
				switch {
				case r.Tick.Hour() == 1 && r.Attempt == 3:
					return nil
				case r.Attempt == 2:
					panic("once")
				}
				return errors.New("not yet")
			}}))
		time.Sleep(2*time.Hour + 10*time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 10 * time.Second, 30 * time.Second, 0, 10 * time.Second, 30 * time.Second,
			70 * time.Second}, when)
		require.Equal(t, []string{"01:00:00 3 succeeded", "02:00:00 4 failed"}, a.outcomes(t, "j"))
		require.Len(t, w.log.all(EventRetrying), 5)
		require.EqualValues(t, 1, w.state("j").Failures)
	})
}

// TestPermanentErrorIsNotRetried, by the member of the run or by another one after a stop.
func TestPermanentErrorIsNotRetried(t *testing.T) {
	require.NoError(t, Permanent(nil))
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 * * * *", Attempts: 4, Guarantee: AtLeastOnce,
			Run: func(_ context.Context, r Run) error {
				if r.Tick.Hour() == 1 && r.Attempt == 1 {
					return errors.New("not yet")
				}
				return fmt.Errorf("attempt %d: %w", r.Attempt, Permanent(errors.New("no such customer")))
			}}))
		time.Sleep(2*time.Hour + 10*time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"01:00:00 2 failed", "02:00:00 1 failed"}, a.outcomes(t, "j"))
		require.Equal(t, "attempt 1: no such customer", w.state("j").LastRun.Error)
		require.EqualValues(t, 2, w.state("j").Failures)
	})
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 * * * *", Guarantee: AtLeastOnce,
			Run: func(ctx context.Context, _ Run) error {
				<-ctx.Done()
				return Permanent(errors.New("no such customer"))
			}}))
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		require.NoError(t, <-a.done)
		state := w.state("j")
		require.Equal(t, Failed, state.LastRun.Outcome)
		require.Empty(t, state.Pending, "no other member repeats it")
	})
}

func TestAStoppedSchedulerRetriesNoMore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Attempts: 1000, FirstPause: time.Hour,
			Run: func(context.Context, Run) error { return errors.New("no") }}))
		time.Sleep(61 * time.Second)
		stopped := time.Now()
		a.stop()
		require.NoError(t, <-a.done)
		require.Zero(t, time.Since(stopped))
		require.Equal(t, Stopped, w.state("j").LastRun.Outcome)
	})
}

func TestEachAttemptHasItsTimeout(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", one(Job{Spec: "0 * * * *", Timeout: time.Minute, Attempts: 2,
			Run: func(ctx context.Context, r Run) error {
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), errTimeout)
				return ctx.Err()
			}}))
		time.Sleep(time.Hour + 3*time.Minute)
		require.Equal(t, []string{"01:00:00 2 timed out"}, a.outcomes(t, "j"))
		state := w.state("j")
		require.Equal(t, 2*time.Minute+time.Second, state.LastRun.Ended.Sub(state.LastRun.Started))
		require.Contains(t, state.LastRun.Error, "after 1m0s")
	})
}

func TestJitterDelaysStarts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Jitter: 40 * time.Second, Run: quick})
		w.start("a", job)
		time.Sleep(10*time.Minute + 59*time.Second)
		state := w.requireBalanced("j", "* * * * *")
		require.EqualValues(t, 10, state.Fired)
		delays := map[time.Duration]bool{}
		for _, e := range w.log.all(EventStarted) {
			d := e.when.Sub(e.Run.Tick)
			require.True(t, d >= 0 && d < 40*time.Second, d)
			delays[d] = true
		}
		require.Greater(t, len(delays), 5)
	})
}

func TestAMemberRunsSoManyAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var now, most int
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		var all []Job
		for i := range 10 {
			all = append(all, Job{Name: fmt.Sprint("j", i), Spec: "0 * * * *", Deadline: 10 * time.Minute,
				Run: func(ctx context.Context, r Run) error {
					count(1)
					defer count(-1)
					return lasting(3*time.Minute)(ctx, r)
				}})
		}
		w.start("a", all, WithMaxConcurrent(2))
		time.Sleep(time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Equal(t, 2, most)
		require.Len(t, w.log.all(EventStarted), 8, "four rounds of two within the deadline")
		var missed int64
		for i := range 10 {
			missed += w.requireBalanced(fmt.Sprint("j", i), "0 * * * *").Missed[ReasonBusy]
		}
		require.EqualValues(t, 2, missed)
	})
}

func TestStuckRunIsReported(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := make(chan struct{})
		a := w.start("a", one(Job{Timeout: time.Second, Run: func(context.Context, Run) error {
			<-free
			return errors.New("at last")
		}}), WithStuckAfter(5*time.Second), WithGrace(time.Second))
		time.Sleep(65 * time.Second)
		require.Empty(t, w.log.all(EventStuck))
		time.Sleep(2 * time.Second)
		stuck := w.log.all(EventStuck)
		require.Len(t, stuck, 1)
		require.ErrorIs(t, stuck[0].Err, errTimeout)
		require.True(t, w.state("j").Running[0].Stuck)
		time.Sleep(2 * time.Minute)
		require.Len(t, w.log.ticks(), 1, "its claim keeps the next from starting")
		a.stop()
		err := <-a.done
		require.ErrorIs(t, err, errStuck)
		require.ErrorContains(t, err, `"j"`)
		close(free)
		synctest.Wait()
		state := w.state("j")
		require.Empty(t, state.Running, "it is recorded all the same")
		require.True(t, state.LastRun.Stuck)
		require.Equal(t, TimedOut, state.LastRun.Outcome)
	})
}

func TestOutcomesTellWhyARunHasEnded(t *testing.T) {
	why := errors.New("why")
	for want, c := range map[Outcome][2]error{
		Succeeded: {nil, errDrained}, Failed: {why, nil}, Stopped: {why, errDrained}, Replaced: {why, ErrReplaced},
		Panicked: {fmt.Errorf("%w: x", errPanic), nil}, TimedOut: {fmt.Errorf("%w: x", errTimeout), nil},
	} {
		require.Equal(t, want, outcomeOf(c[0], c[1]))
	}
	require.Equal(t, Replaced, outcomeOf(why, ErrRemoved))
}

func TestTheHistoryIsARing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n := 0
		a := w.start("a", one(Job{Run: func(context.Context, Run) error {
			if n++; n%2 == 0 {
				return errors.New(strings.Repeat("long ", 1000))
			}
			return nil
		}}), WithHistory(4))
		time.Sleep(10*time.Minute + time.Second)
		runs, err := a.Runs(t.Context(), "j")
		require.NoError(t, err)
		require.Len(t, runs, 4)
		for i, r := range runs {
			require.EqualValues(t, 10-i, r.Number)
			require.Equal(t, fmt.Sprintf("00:%02d:00", 10-i), r.Tick.Format(time.TimeOnly))
			require.Equal(t, "a", r.Runner)
			require.Equal(t, r.Tick, r.Started, "on time")
			require.Positive(t, r.Token)
			require.Equal(t, i%2 == 0, r.Outcome == Failed)
			require.LessOrEqual(t, len(r.Error), maxErrorText)
		}
		require.Greater(t, runs[0].Token, runs[1].Token)
		require.EqualValues(t, 5, w.state("j").Failures)
		require.Len(t, w.Children(testPath+"/jobs/j"), 4)
		_, err = a.Runs(t.Context(), "k")
		require.ErrorIs(t, err, errUnknownJob)
	})
}
