package scheduler

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// leaveRuns stores a job's state as a member leaves it that dies with so many runs, the latest of
// them a second ago.
func (w *world) leaveRuns(client *framework.Client, job string, runs int) (last int64) {
	w.t.Helper()
	state, now := w.stored(job), time.Now().UTC().Truncate(time.Second)
	for i := range runs {
		state.Number++
		tick := now.Add(-time.Duration(runs-i) * time.Second)
		state.Running = append(state.Running, storedRun{Member: "3f2c9a1b7d4e-10000a1b2c3d4e", RunRecord: RunRecord{
			Number: state.Number, ID: tick.Format("20060102T150405Z") + "-1000", Tick: tick, Attempt: 1,
			Runner: "web-7f9c5d-x2x4q-1", Started: tick}})
		state.Fired++
	}
	state.Last = now
	data, err := state.encode()
	require.NoError(w.t, err)
	_, err = client.Set(w.t.Context(), testPath+"/jobs/"+job, data, framework.AnyVersion)
	require.NoError(w.t, err)
	return state.Number
}

// TestTicksGoOnAfterAMemberDiedWithThousandsOfRuns: one transaction records them all, so it must
// not be too large.
func TestTicksGoOnAfterAMemberDiedWithThousandsOfRuns(t *testing.T) {
	for guarantee, runs := range map[Guarantee]int{AtMostOnce: 4000, AtLeastOnce: 300} {
		t.Run(string(guarantee), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				job := Job{Name: "many", Spec: "* * * * * *", Overlap: OverlapAllow, Guarantee: guarantee, Run: quick}
				a := w.start("a", []Job{job}, WithHistory(maxHistory))
				time.Sleep(10 * time.Second)
				a.stop()
				synctest.Wait()
				last := w.leaveRuns(a.client, "many", runs)
				b := w.member("b", []Job{job}, WithHistory(maxHistory))
				stop := w.Observe(func(r zktest.Request) {
					if len(r.Parts) > 0 {
						assert.LessOrEqual(t, len(r.Parts), maxHistory+4)
					}
				})
				b.run(t)
				until(time.Now().Truncate(time.Second).Add(1500 * time.Millisecond))
				stop()
				require.Less(t, int(w.Requests()[zktest.OpExists]), runs/2, "the claims were listed")
				records, err := b.Runs(t.Context(), "many")
				require.NoError(t, err)
				lost := map[int64]bool{}
				for _, r := range records {
					if r.Outcome == Lost {
						lost[r.Number] = true
					}
				}
				if guarantee == AtMostOnce { // else the repetitions are the latest
					require.Contains(t, lost, last)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				state := w.stored("many")
				require.Less(t, len(state.Running), 10)
				require.WithinDuration(t, time.Now(), state.Last, 2*time.Second)
				if guarantee == AtMostOnce {
					require.Equal(t, int64(runs), state.Missed[ReasonRunnerLost])
				}
			})
		})
	}
}

// TestTheHistoryOfManyRunsIsTheLatest, in the order of their numbers.
func TestTheHistoryOfManyRunsIsTheLatest(t *testing.T) {
	s := &store{nodes: "/cron", history: 5}
	var runs []storedRun
	for n := range 20 {
		runs = append(runs, storedRun{RunRecord: RunRecord{Number: int64(n + 1), Outcome: Lost}})
	}
	ops, err := s.historyOps("j", map[string]bool{}, runs...)
	require.NoError(t, err)
	require.Len(t, ops, 5)
	for i := range runs {
		runs[i].Runner = strings.Repeat("x", maxHistoryBytes/3)
	}
	ops, err = s.historyOps("j", nil, runs...)
	require.NoError(t, err)
	require.Len(t, ops, 2)
}

// TestRunsThatOverlapAreBounded: the state names them all, and is one node. A job that hangs could
// not be removed any more.
func TestRunsThatOverlapAreBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.config.Identity = strings.Repeat("x", 20_000) // makes it come sooner
		end := make(chan struct{})
		m := w.start("a", []Job{{Name: "hang", Spec: "* * * * * *", Overlap: OverlapAllow,
			Run: func(context.Context, Run) error { <-end; return nil }}})
		until(time.Now().Truncate(time.Second).Add(40*time.Second + 500*time.Millisecond))
		state := w.state("hang")
		require.Less(t, len(state.Running), 30)
		require.WithinDuration(t, time.Now(), state.Last, time.Second)
		require.Equal(t, state.Fired, int64(len(state.Running)))
		require.Positive(t, state.Missed[ReasonOverlap])
		require.Empty(t, w.log.all(EventFailed))
		require.NoError(t, m.Pause(t.Context(), "hang"))
		require.NoError(t, m.Resume(t.Context(), "hang"))
		require.NoError(t, m.Remove(t.Context(), "hang"))
		close(end)
	})
}

// TestATickWaitsBehindMaxOverlapping, if the job runs each tick.
func TestATickWaitsBehindMaxOverlapping(t *testing.T) {
	for misfire, waits := range map[Misfire]bool{MisfireLatest: false, MisfireAll: true} {
		j := planned(t, func(j *Job) { j.Overlap, j.Misfire, j.Deadline = OverlapAllow, misfire, time.Hour })
		state := jobState{Last: minute(-1)}
		for n := range MaxOverlapping {
			state.Running = append(state.Running, storedRun{RunRecord: RunRecord{Number: int64(n + 1)}})
		}
		p := j.plan(state, j.schedule, planInput{now: noon, lateReason: ReasonNoLeader})
		require.Nil(t, p.start, misfire)
		require.Equal(t, waits, p.isEmpty(), misfire)
		state.Running = state.Running[1:]
		require.NotNil(t, j.plan(state, j.schedule, planInput{now: noon, lateReason: ReasonNoLeader}).start, misfire)
	}
}
