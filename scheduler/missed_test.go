package scheduler

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// told sums up what was told of missed ticks, by reason.
func (j *journal) told() map[Reason]int64 {
	sum := map[Reason]int64{}
	for _, e := range j.all(EventMissed) {
		sum[e.Gap.Reason] += e.Gap.Count
	}
	return sum
}

func TestEveryMissedTickIsRecordedWithReason(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Run: quick})
		a := w.start("a", job)
		time.Sleep(61 * time.Second)
		require.NoError(t, a.Pause(t.Context(), "j"))
		time.Sleep(10 * time.Minute)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/changes", Func: zktest.Request.Writes})
		require.NoError(t, a.Resume(t.Context(), "j"))
		require.Equal(t, map[Reason]int64{ReasonPaused: 10}, w.log.told())
		a.kill()
		time.Sleep(5 * time.Minute)
		c := w.member("c", nil)
		require.NoError(t, c.Reschedule(t.Context(), "j", "*/2 * * * *", nil))
		require.Equal(t, map[Reason]int64{ReasonPaused: 10, ReasonChanged: 5}, w.log.told())
		time.Sleep(5 * time.Minute)
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/j", Func: zktest.Request.Writes})
		w.start("d", one(Job{Spec: "*/3 * * * *", Run: quick}))
		time.Sleep(time.Minute)
		require.Equal(t, w.state("j").Missed, w.log.told())
		require.EqualValues(t, 7, w.log.told()[ReasonChanged])
	})
}

func TestTicksBeforeAnEarlyRunAreMissedOnReschedule(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fast := func() time.Time { return time.Now().Add(9 * time.Second) }
		a := w.start("a", one(Job{Spec: "*/10 * * * * *", Run: quick}), WithNow(fast))
		time.Sleep(2500 * time.Millisecond)
		require.Equal(t, []string{"00:00:10"}, w.log.ticks())
		require.NoError(t, a.Reschedule(t.Context(), "j", "*/3 * * * * *", nil))
		require.Equal(t, map[Reason]int64{ReasonChanged: 3}, w.log.told(), "of 3, 6 and 9")
		changed := w.state("j").Since
		time.Sleep(time.Minute)
		state := w.state("j")
		require.EqualValues(t, parsed(t, "*/3 * * * * *", nil).findDueTicks(changed, state.Last).count+1, state.Due())
		require.Equal(t, "00:00:12", w.log.ticks()[1])
	})
}

func TestTicksOfBothSchedulesAreCountedOnce(t *testing.T) {
	state := jobState{Spec: "*/10 * * * * *", Zone: "UTC", Last: noon.Add(30 * time.Second), Fired: 3}.clone()
	state.setSchedule("*/5 * * * * *", "UTC", noon.Add(2*time.Second))
	require.Equal(t, missedCounts{ReasonChanged: 3}, state.Missed)
	require.Equal(t, []Gap{{From: noon.Add(5 * time.Second), To: noon.Add(25 * time.Second), Count: 3,
		Reason: ReasonChanged}}, state.publicState("j").Gaps)
	require.Equal(t, state.publicState("j").Gaps, state.newGaps)
	// the ensemble's clock was set back
	state = jobState{Spec: "*/10 * * * * *", Zone: "UTC", Last: noon.Add(24 * time.Hour)}.clone()
	state.setSchedule("5-9 * * * * *", "UTC", noon)
	require.Equal(t, missedCounts{ReasonChanged: 5 * 24 * 60}, state.Missed)
}

// The latest tick was run ahead of its time, and the schedule changes several times before that
// time has come.
func TestTicksOfSeveralSchedulesAreCountedOnce(t *testing.T) {
	state := jobState{Spec: "*/10 * * * * *", Zone: "UTC", Last: noon.Add(30 * time.Second), Fired: 3}.clone()
	state.setSchedule("*/5 * * * * *", "UTC", noon.Add(2*time.Second))
	state.setSchedule("*/10 * * * * *", "UTC", noon.Add(3*time.Second))
	require.Equal(t, missedCounts{ReasonChanged: 3}, state.Missed, "of 5, 15 and 25")
	data, err := state.encode()
	require.NoError(t, err)
	state, err = decodeState(data)
	require.NoError(t, err)
	state.setSchedule("*/3 * * * * *", "UTC", noon.Add(4*time.Second))
	require.Equal(t, missedCounts{ReasonChanged: 3 + 7}, state.Missed, "15 was counted as a tick of every 5 seconds")
	state.setSchedule("*/5 * * * * *", "UTC", noon.Add(31*time.Second))
	require.Empty(t, state.Replaced, "none of their ticks lies ahead any more")

	state = jobState{Spec: "*/10 * * * * *", Zone: "UTC", Since: noon.Add(12 * time.Second),
		Last: noon.Add(30 * time.Second), Fired: 2}.clone()
	state.setSchedule("*/5 * * * * *", "UTC", noon.Add(2*time.Second)) // the ensemble's clock was set back
	require.Equal(t, missedCounts{ReasonChanged: 2}, state.Missed,
		"of 15 and 25: none before the earlier change is due")
	require.Equal(t, noon.Add(12*time.Second), state.Since)

	state = jobState{Spec: "*/10 * * * * *", Zone: "UTC", Registered: noon.Add(12 * time.Second),
		Last: noon.Add(30 * time.Second), Fired: 2}.clone()
	state.setSchedule("*/5 * * * * *", "UTC", noon.Add(2*time.Second)) // the ensemble's clock was set back
	require.Equal(t, missedCounts{ReasonChanged: 2}, state.Missed, "of 15 and 25: none before the registration is due")
	require.Equal(t, noon.Add(12*time.Second), state.Since)
}

// A later release, or somebody else, makes the state unreadable while a run goes on: the run ends
// when it returns, and so does a member that waits for its runs without a bound.
func TestRunEndsDespiteUnreadableState(t *testing.T) {
	for _, stored := range []string{`{"v":2}`, `?`} {
		in(t, func(t *testing.T, w *world) {
			job := []Job{{Name: "j", Spec: "0 1 * * *", Run: lasting(time.Minute)},
				{Name: "other", Spec: "* * * * *", Run: quick}}
			a, other := w.start("a", job, WithGrace(math.MaxInt64)), w.member("other", job)
			time.Sleep(time.Hour + time.Second)
			_, err := a.client.Set(t.Context(), testPath+"/jobs/j", []byte(stored), framework.AnyVersion)
			require.NoError(t, err)
			s, err := other.client.Session(t.Context())
			require.NoError(t, err)
			announced, err := other.store.announceOp(t.Context(), s, "j")
			require.NoError(t, err)
			_, err = s.Multi(t.Context(), announced)
			require.NoError(t, err)
			require.NoError(t, other.Trigger(t.Context(), "other"))
			synctest.Wait()
			require.True(t, w.log.all(EventStarted)[len(w.log.all(EventStarted))-1].Run.Manual,
				"other jobs' changes are followed")
			time.Sleep(2 * time.Minute)
			require.Empty(t, w.claims("j"))
			a.stop()
			select {
			case err := <-a.done:
				require.NoError(t, err)
			case <-time.After(time.Minute):
				require.Fail(t, "Run has not returned")
			}
			require.NotEmpty(t, w.log.all(EventFailed))
		})
	}
}

func TestTheDefaultDeadlineIsTheTimeToTheNextTick(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		misfire Misfire
		outage  time.Duration // of all members, from a minute before noon on
		runs    int64         // of the ticks that were due meanwhile
	}{
		"nightly, two minutes":          {"0 12 * * *", MisfireLatest, 3 * time.Minute, 1},
		"nightly, an hour":              {"0 12 * * *", MisfireLatest, time.Hour, 1},
		"nightly, longer":               {"0 12 * * *", MisfireLatest, 62 * time.Minute, 0},
		"nightly, of all":               {"0 12 * * *", MisfireAll, time.Hour, 1},
		"each ten minutes":              {"*/10 * * * *", MisfireLatest, 40*time.Minute - time.Second, 1},
		"each ten minutes, of all":      {"*/10 * * * *", MisfireAll, 40 * time.Minute, 1},
		"each second":                   {"* * * * * *", MisfireLatest, 10 * time.Minute, 1},
		"each second, all that are not": {"* * * * * *", MisfireAll, 10 * time.Minute, 6},
		"only on time":                  {"0 12 * * *", MisfireSkip, 3 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := planned(t, func(j *Job) { j.Spec, j.Misfire, j.Deadline = c.spec, c.misfire, 0 })
			from := noon.Add(-time.Minute)
			state := jobState{Last: from, Registered: from.Add(-time.Hour)}
			at := planInput{now: from.Add(c.outage), lateReason: ReasonNoLeader}
			due := j.schedule.findDueTicks(from, at.now).count
			for p := j.plan(state, j.schedule, at); !p.isEmpty(); p = j.plan(state, j.schedule, at) {
				if state = p.state; p.start != nil {
					state.removeRun(*p.start)
				}
			}
			require.Equal(t, c.runs, state.Fired)
			require.Equal(t, due, state.publicState("j").Due())
		})
	}
}

func TestNightlyRunSurvivesAnOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 3 * * *", Run: func(context.Context, Run) error { return nil }})
		a := w.start("a", job)
		time.Sleep(3*time.Hour - time.Minute)
		a.kill()
		time.Sleep(3 * time.Minute)
		w.start("b", job)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"03:00:00"}, w.log.ticks())
	})
}
