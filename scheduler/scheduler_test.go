package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestAWeekOfTicks(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		began := time.Now() // midnight, in a bubble
		a := w.start("a", jobs("hourly", "0 * * * *", quick))
		w.start("b", jobs("hourly", "0 * * * *", quick))
		until(began.Add(7*24*time.Hour + time.Minute))
		require.Len(t, w.log.ticks(), 7*24)
		for i, e := range w.log.all(EventStarted) {
			require.Equal(t, "a", e.member)
			require.Equal(t, began.Add(time.Duration(i+1)*time.Hour).UTC(), e.Run.Tick)
			require.Equal(t, e.Run.Tick, e.when.UTC(), "on time")
		}
		state := w.requireBalanced("hourly", "0 * * * *")
		require.EqualValues(t, 7*24, state.Fired)
		require.Empty(t, state.Missed)
		got, err := a.State(t.Context(), "hourly")
		require.NoError(t, err)
		require.Equal(t, state.Last, got.Last)
		require.Equal(t, "a", got.LastRun.Runner)
		require.Equal(t, "20000108T000000Z", strings.Split(got.LastRun.ID, "-")[0])
		reports, err := a.Jobs(t.Context())
		require.NoError(t, err)
		require.Len(t, reports, 1)
		require.Equal(t, "hourly", reports[0].Name)
		require.Equal(t, began.Add((7*24+1)*time.Hour).UTC(), reports[0].Next(time.Now()))
		_, err = a.State(t.Context(), "daily")
		require.ErrorIs(t, err, errUnknownJob)
	})
}

func TestNoTickBeforeTheRegistrationIsDue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		until(time.Now().Add(90 * time.Second))
		a := w.member("a", nil)
		names, err := a.Jobs(t.Context())
		require.NoError(t, err)
		require.Empty(t, names)
		w.start("b", jobs("j", "* * * * *", quick))
		time.Sleep(45 * time.Second)
		require.Equal(t, []string{"00:02:00"}, w.log.ticks())
		require.Empty(t, w.log.all(EventMissed))
	})
}

func TestRunsAreDescribed(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		var got []Run
		w.start("a", []Job{{Name: "j", Spec: "0 4 * * *", Zone: zone(t, "Asia/Kolkata"),
			Run: func(ctx context.Context, r Run) error {
				require.NoError(t, ctx.Err())
				got = append(got, r)
				n, ok := w.Node(fmt.Sprintf("%s/jobs/j/run-%d", testPath, len(got)))
				require.True(t, ok, "the claim")
				require.Equal(t, "a", string(n.Data))
				require.Equal(t, n.Stat.Czxid, r.Token)
				require.Equal(t, zktest.Ephemeral, n.Mode)
				require.Equal(t, r.ID, w.state("j").Running[0].ID)
				return nil
			}}})
		time.Sleep(47 * time.Hour)
		synctest.Wait()
		require.Len(t, got, 2)
		require.Equal(t, at(t, "2000-01-01T22:30:00Z"), got[0].Tick)
		require.Equal(t, time.UTC, got[0].Tick.Location())
		require.Equal(t, "j", got[0].Job)
		require.Positive(t, got[0].Token)
		require.NotEqual(t, got[0].ID, got[1].ID)
		require.Empty(t, w.claims("j"), "the claim is gone")
		require.Nil(t, w.state("j").Running)
	})
}

func TestOutcomes(t *testing.T) {
	for says, run := range map[string]func(context.Context, Run) error{
		"":               quick,
		"no disk":        func(context.Context, Run) error { return errors.New("no disk") },
		"panicked: oops": func(context.Context, Run) error { panic("oops") },
		"nil pointer":    func(context.Context, Run) error { var j *Job; j.Name = "x"; return nil },
		"goroutine":      func(context.Context, Run) error { runtime.Goexit(); return nil },
	} {
		in(t, func(t *testing.T, w *world) {
			w.start("a", jobs("j", "* * * * *", run))
			time.Sleep(3*time.Minute + time.Second)
			state := w.requireBalanced("j", "* * * * *")
			require.EqualValues(t, 3, state.Fired, "it goes on")
			require.Contains(t, state.LastRun.Error, says)
			require.Equal(t, says == "", state.LastRun.Error == "")
			e := w.log.all(EventFinished)
			require.Len(t, e, 3)
			require.Equal(t, strings.Contains(says, "panicked") || says == "nil pointer" || says == "goroutine",
				errors.Is(e[0].Err, errPanic))
		})
	}
}

// TestAFunctionOfEventsThatPanicsStopsNothing, nor does one that ends its goroutine.
func TestAFunctionOfEventsThatPanicsStopsNothing(t *testing.T) {
	for says, fail := range map[string]func(){"panics": func() { panic("oops") }, "Goexit": runtime.Goexit} {
		in(t, func(t *testing.T, w *world) {
			var started atomic.Int64
			w.start("a", jobs("j", "* * * * *", quick), WithOnEvent(func(e Event) {
				if e.Kind == EventStarted {
					started.Add(1)
				}
				fail()
			}))
			time.Sleep(3*time.Minute + time.Second)
			synctest.Wait()
			require.EqualValues(t, 3, w.requireBalanced("j", "* * * * *").Fired, says)
			require.EqualValues(t, 3, started.Load(), says)
		})
	}
}

func TestATickDuringARunIsMissed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", jobs("j", "* * * * *", lasting(150*time.Second)))
		time.Sleep(9*time.Minute + time.Second)
		require.Equal(t, []string{"00:01:00", "00:04:00", "00:07:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.Equal(t, map[Reason]int64{ReasonOverlap: 6}, state.Missed)
		require.Len(t, state.Gaps, 3, "ticks in a row are one gap")
		require.Equal(t, Gap{From: at(t, "2000-01-01T00:02:00Z"), To: at(t, "2000-01-01T00:03:00Z"), Count: 2,
			Reason: ReasonOverlap}, state.Gaps[0])
	})
}

func TestAfterAGapTheLatestTickIsRunIfItIsYoung(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := Job{Name: "j", Spec: "* * * * *", Run: quick, Deadline: 20 * time.Second}
		a := w.start("a", []Job{job})
		until(time.Now().Truncate(time.Minute).Add(61 * time.Second))
		a.stop()
		require.NoError(t, <-a.done)
		time.Sleep(10*time.Minute + 10*time.Second) // 00:11:11
		b := w.start("b", []Job{job})
		require.Equal(t, []string{"00:01:00", "00:11:00"}, w.log.ticks())
		state := w.requireBalanced("j", "* * * * *")
		require.Len(t, state.Gaps, 1)
		require.EqualValues(t, 9, state.Gaps[0].Count)
		require.Equal(t, ReasonNoLeader, state.Gaps[0].Reason)
		b.stop()
		require.NoError(t, <-b.done)
		time.Sleep(10*time.Minute + 15*time.Second) // 00:21:26
		w.start("c", []Job{job})
		require.Len(t, w.log.ticks(), 2, "00:21:00 is too old")
		state = w.requireBalanced("j", "* * * * *")
		require.EqualValues(t, 10, state.Gaps[1].Count)
		require.Equal(t, "00:21:00", state.Gaps[1].To.Format(time.TimeOnly))
	})
}

func TestAYearOfMissedSecondsIsOneGap(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * * *", quick))
		a.stop()
		require.NoError(t, <-a.done)
		_ = a.client.Close(t.Context())
		time.Sleep(365 * 24 * time.Hour)
		w.start("b", jobs("j", "* * * * * *", quick))
		time.Sleep(time.Minute)
		state := w.state("j")
		require.Len(t, state.Gaps, 1)
		require.Greater(t, state.Gaps[0].Count, int64(365*24*3600-10))
		require.EqualValues(t, state.Last.Sub(state.Registered.Truncate(time.Second))/time.Second, state.Due())
	})
}

func TestRepeatedLocalHourRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ny := zone(t, "America/New_York")
		until(time.Date(2000, 10, 29, 0, 0, 0, 0, ny)) // at 2:00 the clock goes back to 1:00
		w := &world{zktest.Start(t), t, &journal{}, config}
		w.start("a", []Job{
			{Name: "daily", Spec: "30 1 * * *", Zone: ny, Run: quick},
			{Name: "half", Spec: "30 * * * *", Zone: ny, Run: quick},
		})
		until(time.Date(2000, 10, 29, 3, 0, 0, 0, ny))
		require.EqualValues(t, 1, w.state("daily").Fired)
		require.EqualValues(t, 4, w.state("half").Fired)
	})
}

func TestDisconnectedLeaderStopsRunsBeforeNextLeaderRuns(t *testing.T) {
	for _, how := range []func(*zktest.Link){(*zktest.Link).Cut, func(k *zktest.Link) { k.BlackHole(true, true) },
		func(k *zktest.Link) { k.BlackHole(true, false) }} {
		in(t, func(t *testing.T, w *world) {
			a := w.start("a", jobs("j", "*/20 * * * * *", lasting(time.Hour)))
			w.start("b", jobs("j", "*/20 * * * * *", lasting(time.Hour)))
			time.Sleep(21 * time.Second)
			how(a.link)
			time.Sleep(time.Minute)
			started, finished := w.log.all(EventStarted), w.log.all(EventFinished)
			require.Len(t, started, 2)
			require.Len(t, finished, 1)
			require.Equal(t, "a", finished[0].member)
			require.ErrorIs(t, finished[0].Err, framework.ErrSessionLost)
			require.Equal(t, "b", started[1].member)
			require.True(t, finished[0].when.Before(started[1].when))
			require.Greater(t, started[1].Run.Token, started[0].Run.Token)
			state := w.requireBalanced("j", "*/20 * * * * *")
			require.EqualValues(t, 1, state.Missed[ReasonRunnerLost])
			a.link.Heal()
		})
	}
}

func TestStopDrains(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", lasting(5*time.Second)))
		time.Sleep(61 * time.Second)
		stopped := time.Now()
		a.stop()
		require.NoError(t, <-a.done)
		require.Equal(t, 4*time.Second, time.Since(stopped))
		state := w.state("j")
		require.Nil(t, state.Running)
		require.Empty(t, state.LastRun.Error)
	})
}

func TestRunBeyondDrainIsEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", lasting(time.Hour)), WithGrace(3*time.Second))
		b := w.start("b", jobs("j", "* * * * *", lasting(time.Hour)), WithGrace(0))
		time.Sleep(61 * time.Second)
		stopped := time.Now()
		a.stop()
		synctest.Wait()
		require.Equal(t, "b", w.leader(), "another one leads at once")
		require.NoError(t, <-a.done)
		require.Equal(t, 3*time.Second, time.Since(stopped))
		require.Contains(t, w.state("j").LastRun.Error, errDrained.Error())
		time.Sleep(time.Minute)
		require.Equal(t, "b", w.log.all(EventStarted)[1].member)
		stopped = time.Now()
		b.stop()
		require.NoError(t, <-b.done)
		require.Zero(t, time.Since(stopped))
	})
}

func TestUnreadableStateEndsSchedulerRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("j", "* * * * *", quick))
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/jobs"))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/j", []byte(`{"v":2}`), framework.Persistent))
		err := a.Run(t.Context())
		require.ErrorIs(t, err, framework.ErrNewer)
		require.ErrorContains(t, err, testPath+"/jobs/j")
		_, err = a.client.Set(t.Context(), testPath+"/jobs/j", []byte("?"), framework.AnyVersion)
		require.NoError(t, err)
		require.ErrorIs(t, a.Run(t.Context()), framework.ErrBadRecord)
		_, err = a.State(t.Context(), "j")
		require.ErrorIs(t, err, framework.ErrBadRecord)
	})
}

func TestOneJobsTroubleIsNotTheOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", []Job{{Name: "good", Spec: "* * * * *", Run: quick},
			{Name: "bad", Spec: "* * * * *", Run: quick}})
		good := w.stored("bad")
		_, err := a.client.Set(t.Context(), testPath+"/jobs/bad", []byte("?"), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(150 * time.Second)
		require.EqualValues(t, 2, w.state("good").Fired)
		failed := w.log.all(EventFailed)
		require.NotEmpty(t, failed)
		require.Less(t, len(failed), 40, "it is tried again with growing pauses")
		require.Equal(t, "bad", failed[0].Job)
		require.ErrorIs(t, failed[0].Err, framework.ErrBadRecord)
		data, err := good.encode()
		require.NoError(t, err)
		_, err = a.client.Set(t.Context(), testPath+"/jobs/bad", data, framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		w.requireBalanced("bad", "* * * * *")
		require.Positive(t, w.state("bad").Fired)
	})
}

func TestATickIsNotRunAgainAfterItsStateWasDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fast := func() time.Time { return time.Now().Add(8 * time.Second) }
		a := w.start("a", jobs("j", "* * * * *", quick), WithNow(fast))
		time.Sleep(54 * time.Second) // the tick of 00:01:00 has been run
		require.NoError(t, a.Remove(t.Context(), "j"))
		synctest.Wait()
		require.Len(t, w.log.all(EventRemoved), 1)
		require.NoError(t, a.Add(jobs("j", "* * * * *", quick)[0]))
		a.stop()
		require.NoError(t, <-a.done)
		a.run(t)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"00:01:00", "00:02:00"}, w.log.ticks())
		require.Empty(t, w.claims("j"), "no claim is left in the way")
	})
}

func TestUnknownFieldsSurviveARun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("j", "* * * * *", quick))
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/jobs"))
		stored := `{"v":1,"spec":"* * * * *","zone":"UTC","mood":"of a later release"}`
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/j", []byte(stored), framework.Persistent))
		a.run(t)
		time.Sleep(61 * time.Second)
		n, _ := w.Node(testPath + "/jobs/j")
		require.Contains(t, string(n.Data), `"mood":"of a later release"`)
		require.EqualValues(t, 1, w.state("j").Fired)
	})
}

func TestATickAheadOfTheEnsemblesClockIsHeld(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fast := func() time.Time { return time.Now().Add(time.Hour) }
		a := w.start("a", jobs("j", "*/30 * * * *", quick), WithNow(fast)) // it is 01:00 there
		time.Sleep(time.Second)
		held := w.log.all(EventAhead)
		require.Len(t, held, 1)
		require.Equal(t, "00:30:00", held[0].Run.Tick.Format(time.TimeOnly))
		until(time.Now().Truncate(time.Hour).Add(29 * time.Minute))
		require.Len(t, w.log.all(EventAhead), 1, "a tick is reported once")
		require.Empty(t, w.log.ticks())
		until(time.Now().Truncate(time.Hour).Add(61 * time.Minute))
		require.Equal(t, []string{"00:30:00", "01:00:00"}, w.log.ticks())
		for _, e := range w.log.all(EventStarted) {
			early := e.Run.Tick.Sub(e.when)
			require.True(t, early > MaxAhead-time.Second && early <= MaxAhead, early)
		}
		a.stop()
		require.NoError(t, <-a.done)
		w.start("b", jobs("j", "*/30 * * * *", quick))
		until(time.Now().Truncate(time.Hour).Add(95 * time.Minute))
		state := w.requireBalanced("j", "*/30 * * * *")
		require.Empty(t, state.Missed)
		require.Len(t, slices.Compact(w.log.ticks()), len(w.log.ticks()))
	})
}

func TestJumpsOfTheLeadersClock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var offset atomic.Int64
		jumpy := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		w.start("a", jobs("j", "*/5 * * * * *", quick), WithNow(jumpy))
		for i := range 200 {
			time.Sleep(7 * time.Second)
			offset.Store(int64(time.Duration(i*i*37%41-20) * 5 * time.Second)) // from -100 s to +100 s
		}
		offset.Store(0)
		time.Sleep(3 * time.Minute)
		seen := map[string]bool{}
		for _, e := range w.log.all(EventStarted) {
			require.False(t, seen[e.Run.ID], "%s ran twice", e.Run.ID)
			seen[e.Run.ID] = true
			require.LessOrEqual(t, e.Run.Tick.Sub(e.when), MaxAhead)
		}
		require.Greater(t, len(seen), 50)
		w.requireBalanced("j", "*/5 * * * * *")
	})
}

func TestASchedulerRunsOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", jobs("j", "* * * * *", quick))
		require.ErrorIs(t, a.Run(t.Context()), errRunning)
		a.stop()
		require.NoError(t, <-a.done)
		require.NoError(t, a.Add(Job{Name: "k", Spec: "* * * * *", Run: quick}))
		a.run(t)
		time.Sleep(61 * time.Second)
		require.EqualValues(t, 1, w.state("k").Fired)
		require.NoError(t, a.client.Close(t.Context()))
		require.ErrorIs(t, <-a.done, framework.ErrClosed)
	})
}

func TestRunStopsWhileThereIsNoServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("j", "* * * * *", quick))
		a.link.Cut()
		time.Sleep(2 * timeout)
		a.run(t)
		time.Sleep(time.Minute)
		a.stop()
		require.NoError(t, <-a.done)
	})
}
