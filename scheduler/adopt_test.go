package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// jobThatPrefers is the name of a job that belongs to b once b is there, and to a before.
func jobThatPrefers(b, a string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("s", i); placementWeight(b, name) > placementWeight(a, name) {
			return name
		}
	}
}

func TestClaimedRunStartsOnceAcrossWithdrawAndAdd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var began atomic.Int64
		job := Job{Name: jobThatPrefers("b", "a"), Spec: "0 * * * *", Placement: Spread,
			Run: func(ctx context.Context, r Run) error {
				began.Add(1)
				return lasting(30*time.Second)(ctx, r)
			}}
		claim := testPath + "/jobs/" + job.Name + "/run-1"
		a, c := w.start("a", []Job{job}), w.member("c", nil)
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		look := zktest.Match{Op: zktest.OpExists, Path: claim, Session: s.ID()}
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: claim, Session: s.ID(),
			Func: zktest.Request.Writes})
		second, first := w.DropReply(2, look), w.DropReply(1, look)
		require.NoError(t, c.Trigger(t.Context(), job.Name))
		<-lost.Hit()
		<-first.Hit()
		<-second.Hit()
		b := w.start("b", []Job{job}) // while a looks what became of its claim, the job is b's
		b.stop()                      // and a's again
		time.Sleep(20 * time.Second)
		require.EqualValues(t, 1, began.Load())
		require.Len(t, w.state(job.Name).Running, 1)
		time.Sleep(20 * time.Second)
		require.EqualValues(t, 1, began.Load())
		require.Equal(t, Succeeded, w.state(job.Name).LastRun.Outcome)
	})
}

// A look that was told of a claim before its run has ended, and goes on only then, does not start
// the run again.
func TestLateStateReadDoesNotRestartEndedRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("j", "* * * * *", quick))
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		j := a.jobs.allJobs()[0]
		run := func(number, token int64) *localRun {
			return newLocalRun(storedRun{RunRecord: RunRecord{Number: number, Token: token, Manual: true}}, s.ID())
		}
		first := run(1, 7)
		_, begun := j.local.beginRun(first)
		require.True(t, begun)
		j.local.endRun(first)
		_, begun = j.local.beginRun(run(1, 7))
		require.False(t, begun)
		_, begun = j.local.beginRun(run(2, 9))
		require.True(t, begun)
	})
}
