package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// TestAMemberWithSpreadJobsAloneStaysOutOfTheElection starts the member without leader jobs first:
// it would win.
func TestAMemberWithSpreadJobsAloneStaysOutOfTheElection(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		worker := w.start("worker", spreadJobs(1, "* * * * *", quick))
		w.start("main", []Job{{Name: "leader", Spec: "* * * * *", Run: quick}})
		time.Sleep(61 * time.Second)
		require.Equal(t, map[string]string{"j000": "worker", "leader": "main"}, w.runners("00:01:00"))

		require.NoError(t, worker.Add(Job{Name: "leader", Spec: "* * * * *", Run: quick}))
		time.Sleep(time.Second)
		require.Len(t, w.Children(testPath+"/election"), 2, "a job that is added makes it a candidate")
	})
}

func TestAMemberResignsWhenItsLastLeaderJobIsRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		first := w.start("first",
			append(spreadJobs(1, "* * * * *", quick), Job{Name: "a", Spec: "* * * * *", Run: quick}))
		w.start("second", []Job{{Name: "b", Spec: "* * * * *", Run: quick}})
		require.NoError(t, first.Remove(t.Context(), "a"))
		time.Sleep(61 * time.Second)
		require.Equal(t, map[string]string{"j000": "first", "b": "second"}, w.runners("00:01:00"))
		require.Len(t, w.Children(znode.Join(testPath, "election")), 1)
	})
}
