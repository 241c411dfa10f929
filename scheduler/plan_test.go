package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planned returns a job due each minute.
func planned(t testing.TB, change func(*Job)) *job {
	t.Helper()
	j := Job{Name: "j", Spec: "* * * * *", Run: nop, Deadline: 30 * time.Second}
	if change != nil {
		change(&j)
	}
	added, err := newJob(j)
	require.NoError(t, err)
	return added
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Minute))) }

func gap(from, to, count int, why Reason) Gap {
	return Gap{From: minute(float64(from)), To: minute(float64(to)), Count: int64(count), Reason: why}
}

// TestHoldEndsAfterTheClockWasSetBack plans after a run that was started by a clock that was an
// hour and more ahead.
func TestHoldEndsAfterTheClockWasSetBack(t *testing.T) {
	j := planned(t, func(j *Job) { j.MinHold = time.Minute })
	state := jobState{Last: minute(-10), HoldUntil: minute(90)}
	p := j.plan(state, j.schedule, planInput{now: noon, lateReason: ReasonNoLeader})
	require.False(t, p.isEmpty(), "the hold is stored anew")
	require.Equal(t, minute(1), p.state.HoldUntil)
	near := jobState{Last: noon, HoldUntil: minute(1).Add(MaxAhead)}
	p = j.plan(near, j.schedule, planInput{now: noon, lateReason: ReasonNoLeader})
	require.True(t, p.isEmpty(), "another member's clock may be that far ahead")
}

// TestRequestOfAClockThatWasSetBackGoesFirst: until that time comes again, a job that is busy from
// tick to tick would keep it and all behind it waiting.
func TestRequestOfAClockThatWasSetBackGoesFirst(t *testing.T) {
	j := planned(t, nil)
	state := jobState{Last: noon,
		Pending: []pendingRun{{Tick: minute(75), Manual: true, Attempt: 1}, {Tick: noon, Manual: true, Attempt: 1}}}
	p := j.plan(state, j.schedule, planInput{now: minute(1), lateReason: ReasonNoLeader})
	require.NotNil(t, p.start)
	require.True(t, p.start.Manual)
	require.Equal(t, minute(75), p.start.Tick)
}

func TestARepetitionDoesNotProlongTheHold(t *testing.T) {
	j := planned(t, func(j *Job) { j.Guarantee, j.MinHold = AtLeastOnce, time.Hour })
	state := jobState{Last: noon, HoldUntil: minute(60), Pending: []pendingRun{{Tick: noon, Attempt: 2}}}
	p := j.plan(state, j.schedule, planInput{now: minute(1), lateReason: ReasonNoLeader})
	require.NotNil(t, p.start)
	require.Equal(t, minute(60), p.state.HoldUntil)
}

func TestPlans(t *testing.T) {
	going := func(ns ...int) (rs []storedRun) {
		for _, n := range ns {
			rs = append(rs, storedRun{RunRecord: RunRecord{Number: int64(n), ID: "r", Tick: noon, Attempt: 1}})
		}
		return rs
	}
	last := func(rs ...storedRun) jobState {
		return jobState{Last: noon, Number: int64(len(rs)), Fired: int64(len(rs)), Running: rs}
	}
	all := func(j *Job) { j.Misfire, j.Deadline = MisfireAll, 5*time.Minute }
	for name, c := range map[string]struct {
		job    func(*Job)
		state  jobState
		now    float64
		lost   []int64
		tick   float64 // of the run to start, 0: none
		again  int     // its attempt, if not 1
		missed []Gap
		yield  []int64
		wake   float64
	}{
		"nothing is due before the registration": {state: jobState{Registered: minute(5)}, now: 5, wake: 6},
		"nothing is due":                         {state: last(), now: 0.99, wake: 1},
		"a tick is due":                          {state: last(), now: 1, tick: 1, wake: 2},
		"the clock was set back":                 {state: last(), now: -50, wake: 1},
		"no tick before the schedule changed": {state: jobState{Last: noon, Since: minute(3.5)}, now: 4,
			tick: 4, wake: 5},

		"the latest of a gap": {state: last(), now: 10, tick: 10, missed: []Gap{gap(1, 9, 9, ReasonNoLeader)},
			wake: 11},
		"all are too old": {state: last(), now: 2.51, missed: []Gap{gap(1, 2, 2, ReasonNoLeader)}, wake: 3},
		"young enough":    {state: last(), now: 1.5, tick: 1, wake: 2},
		"skip, on time":   {job: func(j *Job) { j.Misfire = MisfireSkip }, state: last(), now: 1.05, tick: 1, wake: 2},
		"skip, late": {job: func(j *Job) { j.Misfire = MisfireSkip }, state: last(), now: 2.1,
			missed: []Gap{gap(1, 2, 2, ReasonNoLeader)}, wake: 3},
		"all, the oldest first": {job: all, state: last(), now: 4, tick: 1, wake: 5},
		"all, beyond the deadline": {job: all, state: last(), now: 8.5, tick: 4,
			missed: []Gap{gap(1, 3, 3, ReasonNoLeader)}, wake: 9},
		"all, beside each other": {job: func(j *Job) { all(j); j.Overlap = OverlapAllow }, state: last(going(1)...),
			now: 4, tick: 1, wake: 4},
		"all, one after the other": {job: all, state: last(going(1)...), now: 4, wake: 5},
		"all, waiting for too long": {job: all, state: last(going(1)...), now: 7,
			missed: []Gap{gap(1, 1, 1, ReasonOverlap)}, wake: 8},

		"forbid": {state: last(going(1)...), now: 2, missed: []Gap{gap(1, 2, 2, ReasonOverlap)}, wake: 3},
		"allow":  {job: func(j *Job) { j.Overlap = OverlapAllow }, state: last(going(1)...), now: 1, tick: 1, wake: 2},
		"replace": {job: func(j *Job) { j.Overlap = OverlapReplace }, state: last(going(1)...), now: 2.1,
			yield:  []int64{1},
			missed: []Gap{gap(1, 1, 1, ReasonOverlap)}, wake: 3},
		"replace, too late": {job: func(j *Job) { j.Overlap = OverlapReplace }, state: last(going(1)...), now: 1.8,
			missed: []Gap{gap(1, 1, 1, ReasonOverlap)}, wake: 2},
		"held": {state: jobState{Last: noon, HoldUntil: minute(1.5)}, now: 1,
			missed: []Gap{gap(1, 1, 1, ReasonMinHold)}, wake: 2},
		"held, all": {job: all, state: jobState{Last: noon, HoldUntil: minute(1.5)}, now: 1, wake: 1.5},

		"the runner was lost, nothing due": {state: last(going(1)...), now: 0, lost: []int64{1},
			missed: []Gap{gap(0, 0, 1, ReasonRunnerLost)}, wake: 1},
		"the runner was lost": {state: last(going(1)...), now: 1, lost: []int64{1}, tick: 1,
			missed: []Gap{gap(0, 0, 1, ReasonRunnerLost)}, wake: 2},
		"one of two runners was lost": {job: func(j *Job) { j.Overlap = OverlapAllow }, state: last(going(1, 2)...),
			now: 0.5, lost: []int64{2},
			missed: []Gap{gap(0, 0, 1, ReasonRunnerLost)}, wake: 1},
		"again": {job: func(j *Job) { j.Guarantee = AtLeastOnce }, state: last(going(1)...), now: 0.5, lost: []int64{1},
			tick: 0, again: 2, wake: 1},
		"again, before the next": {job: func(j *Job) { j.Guarantee = AtLeastOnce }, state: last(going(1)...), now: 1,
			lost: []int64{1},
			tick: 0, again: 2, wake: 2},
		"again no more": {job: func(j *Job) { j.Guarantee = AtLeastOnce },
			state: last(storedRun{RunRecord: RunRecord{Number: 1, Tick: noon, Attempt: MaxReruns + 1},
				Reruns: MaxReruns}), now: 0.5, lost: []int64{1},
			missed: []Gap{gap(0, 0, 1, ReasonRunnerLost)}, wake: 1},

		"retries are no reruns": {job: func(j *Job) { j.Guarantee = AtLeastOnce },
			state: last(storedRun{RunRecord: RunRecord{Number: 1, Tick: noon, Attempt: 500}, Reruns: MaxReruns - 1}),
			now:   0.5, lost: []int64{1}, again: 501, wake: 1},
		"again, though held": {job: func(j *Job) { j.Guarantee, j.MinHold = AtLeastOnce, time.Hour },
			state: jobState{Last: noon, HoldUntil: minute(60), Pending: []pendingRun{{Tick: noon, Attempt: 2}}},
			now:   0.5, again: 2, wake: 1},
		"again, while the former run goes on": {job: func(j *Job) { j.Guarantee = AtLeastOnce },
			state: jobState{Last: noon, Running: going(1), Pending: []pendingRun{{Tick: noon, Attempt: 2}}},
			now:   0.5, wake: 1},
		"not again while paused": {state: jobState{Last: noon, Paused: minute(0.1),
			Pending: []pendingRun{{Tick: noon, Attempt: 2}}}, now: 0.5},
		"paused, asked for behind one that is to be repeated": {state: jobState{Last: noon, Paused: minute(0.1),
			Pending: []pendingRun{{Tick: noon, Attempt: 2}, {Tick: minute(0.2), Manual: true, Attempt: 1}}},
			now: 0.5, tick: 0.2},
		"asked for before the latest tick": {job: all,
			state: jobState{Last: minute(1), Pending: []pendingRun{{Tick: minute(0.5), Manual: true, Attempt: 1}}},
			now:   2, tick: 0.5, wake: 3},
		"what was asked for is not replaced by an earlier tick": {job: func(j *Job) { j.Overlap = OverlapReplace },
			state: last(storedRun{RunRecord: RunRecord{Number: 1, Tick: noon, Manual: true, Attempt: 1,
				Started: minute(1.1)}}), now: 1.2, wake: 2},
		"but by a later one": {job: func(j *Job) { j.Overlap = OverlapReplace },
			state: last(storedRun{RunRecord: RunRecord{Number: 1, Tick: noon, Manual: true, Attempt: 1,
				Started: minute(0.9)}}), now: 1.2, yield: []int64{1}, wake: 2},
		"it may start at the end of the hold": {state: jobState{Last: noon, HoldUntil: minute(1)}, now: 1,
			tick: 1, wake: 2},
		"paused": {state: jobState{Last: noon, Paused: minute(1)}, now: 10},
		"paused and triggered": {state: jobState{Last: noon, Paused: minute(1),
			Pending: []pendingRun{{Tick: minute(9), Manual: true, Attempt: 1}}}, now: 10, tick: 9},
		"triggered": {
			state: jobState{Last: noon, Pending: []pendingRun{{Tick: minute(0.5), Manual: true, Attempt: 1}}},
			now:   0.7, tick: 0.5, wake: 1},
		"the tick goes before what was triggered": {
			state: jobState{Last: noon, Pending: []pendingRun{{Tick: minute(0.5), Manual: true, Attempt: 1}}},
			now:   1, tick: 1, wake: 2},
		"triggered while it runs": {state: jobState{Last: noon, Running: going(1),
			Pending: []pendingRun{{Manual: true, Attempt: 1}}}, now: 0.5, wake: 1},
		"triggered while held": {state: jobState{Last: noon, HoldUntil: minute(0.8),
			Pending: []pendingRun{{Manual: true, Attempt: 1}}},
			now: 0.5, wake: 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			j := planned(t, func(job *Job) {
				if c.job != nil {
					c.job(job)
				}
				if !c.state.HoldUntil.IsZero() {
					job.MinHold = time.Hour
				}
			})
			before := fmt.Sprint(c.state)
			p := j.plan(c.state, j.schedule, planInput{now: minute(c.now), lateReason: ReasonNoLeader, lost: c.lost})
			require.Equal(t, before, fmt.Sprint(c.state), "what is planned from stays")
			require.Equal(t, c.missed, p.missed)
			require.Equal(t, c.yield, p.toReplace)
			switch starts := c.tick != 0 || c.again != 0; {
			case !starts:
				require.Nil(t, p.start)
			default:
				require.NotNil(t, p.start)
				require.Equal(t, minute(c.tick), p.start.Tick)
				require.Equal(t, max(1, c.again), p.start.Attempt)
				require.Equal(t, p.state.Number, p.start.Number)
				require.Equal(t, p.start.ID, p.state.Running[len(p.state.Running)-1].ID)
			}
			if c.wake == 0 {
				require.Zero(t, p.wakeAt)
			} else {
				require.Equal(t, minute(c.wake), p.wakeAt)
			}
			require.Equal(t, p.start == nil && c.missed == nil && c.lost == nil, p.isEmpty())
		})
	}
}

func TestEveryTickIsRunOrMissedUnderAllPolicies(t *testing.T) {
	for _, misfire := range []Misfire{MisfireLatest, MisfireSkip, MisfireAll} {
		for _, overlap := range []Overlap{OverlapForbid, OverlapAllow, OverlapReplace} {
			for _, hold := range []time.Duration{0, 150 * time.Second} {
				j := planned(t, func(j *Job) {
					j.Misfire, j.Overlap, j.MinHold, j.Deadline, j.Jitter = misfire, overlap, hold, 3*time.Minute,
						20*time.Second
				})
				state := jobState{Last: noon}
				now := noon
				for i := range 150 {
					now = now.Add(time.Duration(1+i*i*37%200) * time.Second)
					p := j.plan(state, j.schedule, planInput{now: now, lateReason: ReasonLate})
					state = p.state
					if i%3 == 0 {
						for len(state.Running) > 0 {
							r := state.Running[0]
							r.Outcome = Succeeded
							state.recordEnd(r)
						}
					}
					require.Equal(t, j.schedule.findDueTicks(noon, state.Last).count, state.publicState("j").Due(),
						"%s %s %v", misfire, overlap, hold)
					require.True(t, p.wakeAt.After(now) || misfire == MisfireAll && !p.wakeAt.IsZero(),
						"it never sleeps for ever")
				}
				require.Greater(t, state.Fired, int64(5))
			}
		}
	}
}

func TestJitterIsTheSameEverywhereAndStaysBeforeTheNextTick(t *testing.T) {
	a, b := planned(t, func(j *Job) { j.Jitter = time.Hour }), planned(t, func(j *Job) { j.Jitter = time.Hour })
	other := planned(t, func(j *Job) { j.Name, j.Jitter = "k", time.Hour })
	seen := map[time.Duration]bool{}
	differs := false
	for tick := noon; tick.Before(minute(300)); tick = tick.Add(time.Minute) {
		d := a.jitterOf(a.schedule, tick)
		require.Equal(t, d, b.jitterOf(b.schedule, tick))
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.Less(t, d, time.Minute)
		seen[d.Truncate(10*time.Second)] = true
		differs = differs || d != other.jitterOf(other.schedule, tick)
	}
	require.Len(t, seen, 6, "all of the minute is used")
	require.True(t, differs)
}

func TestTheLeastJitterIsNone(t *testing.T) {
	j := planned(t, func(j *Job) { j.Jitter = time.Nanosecond })
	require.Zero(t, j.jitterOf(j.schedule, noon))
}

func TestPausesBetweenAttemptsGrow(t *testing.T) {
	j := planned(t, func(j *Job) { j.FirstPause = 20 * time.Second })
	require.Equal(t, 20*time.Second, j.pauseAfter(1))
	require.Equal(t, 40*time.Second, j.pauseAfter(2))
	require.Equal(t, time.Minute, j.pauseAfter(3))
	require.Equal(t, time.Minute, j.pauseAfter(1000))
	j.FirstPause = time.Hour
	require.Equal(t, time.Hour, j.pauseAfter(9))
}

func TestContinuedGapIsOneRowAndRowsAreBounded(t *testing.T) {
	j := planned(t, func(j *Job) { j.Deadline = time.Minute })
	s := jobState{Last: noon, Running: []storedRun{{RunRecord: RunRecord{Number: 1}}}}
	at := func() planInput { return planInput{now: s.Last.Add(time.Minute), lateReason: ReasonLate} }
	for i := range 30 {
		s = j.plan(s, j.schedule, at()).state
		require.Len(t, s.Gaps, 1)
		require.EqualValues(t, i+1, s.Gaps[0].Count)
	}
	for range 300 {
		s.Running = []storedRun{{RunRecord: RunRecord{Number: 1}}}
		s = j.plan(s, j.schedule, at()).state
		s.Running = nil
		s = j.plan(s, j.schedule, at()).state
	}
	require.Len(t, s.Gaps, maxGaps)
	require.EqualValues(t, 330, s.Missed[ReasonOverlap])
	require.EqualValues(t, 300, s.Fired)
	require.EqualValues(t, 630, s.publicState("j").Due())
}
