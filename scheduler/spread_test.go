package scheduler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func spreadJobs(n int, spec string, run func(context.Context, Run) error) (all []Job) {
	for i := range n {
		all = append(all, Job{Name: fmt.Sprintf("j%03d", i), Spec: spec, Run: run, Placement: Spread})
	}
	return all
}

// runners are the members that the runs of a tick were started in, by job; each once.
func (w *world) runners(tick string) map[string]string {
	out := map[string]string{}
	for _, e := range w.log.all(EventStarted) {
		if e.Run.Tick.Format(time.TimeOnly) == tick {
			require.Empty(w.t, out[e.Job], "%s ran twice", e.Job)
			out[e.Job] = e.member
		}
	}
	return out
}

func TestSpreadJobsMoveOnlyWithJoiningOrLeavingMember(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(200, "* * * * *", quick)
		for i := range 4 {
			w.start(fmt.Sprint("m", i), all)
		}
		time.Sleep(61 * time.Second)
		m4 := w.start("m4", all)
		time.Sleep(time.Minute)
		m4.stop()
		require.NoError(t, <-m4.done)
		time.Sleep(time.Minute)
		first, second, third := w.runners("00:01:00"), w.runners("00:02:00"), w.runners("00:03:00")
		require.Len(t, first, 200)
		share := map[string]int{}
		for job, m := range first {
			share[m]++
			require.Contains(t, []string{m, "m4"}, second[job])
		}
		require.Equal(t, first, third)
		moved := 0
		for _, m := range second {
			if m == "m4" {
				moved++
			}
		}
		require.InDelta(t, 40, moved, 20)
		for m, n := range share {
			require.InDelta(t, 50, n, 25, m)
		}
		for _, j := range all {
			require.Empty(t, w.requireBalanced(j.Name, j.Spec).Missed)
		}
	})
}

func TestADeadMembersJobsAreTakenOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(30, "*/5 * * * *", quick)
		members := map[string]*actor{}
		for i := range 3 {
			name := fmt.Sprint("m", i)
			members[name] = w.start(name, all)
		}
		time.Sleep(10*time.Minute - time.Second)
		members["m1"].kill()
		time.Sleep(time.Minute)
		got := w.runners("00:10:00")
		require.Len(t, got, 30, "within the deadline")
		for job, m := range got {
			require.NotEqual(t, "m1", m, job)
		}
	})
}

func TestRunsArePinnedByLabels(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(20, "* * * * *", quick)
		for i := range all {
			all[i].Labels = map[string]string{"gpu": "yes"}
		}
		all = append(all, Job{Name: "nowhere", Spec: "* * * * *", Placement: Spread,
			Labels: map[string]string{"moon": "full"}, Run: quick})
		for i := range 6 {
			labels := map[string]string{"zone": "b"}
			if i < 2 {
				labels["gpu"] = "yes"
			}
			w.start(fmt.Sprint("m", i), all, WithLabels(labels))
		}
		time.Sleep(61 * time.Second)
		got := w.runners("00:01:00")
		require.Len(t, got, 20)
		for _, m := range got {
			require.Contains(t, []string{"m0", "m1"}, m)
		}
		w.start("m6", all, WithLabels(map[string]string{"moon": "full"}))
		time.Sleep(30 * time.Second)
		require.Equal(t, "m6", w.runners("00:01:00")["nowhere"], "late, but within the deadline")
	})
}

func TestMemberOwnsOnlyJobsItHas(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("old", spreadJobs(20, "* * * * *", quick))
		w.start("new", spreadJobs(40, "* * * * *", quick))
		time.Sleep(61 * time.Second)
		got := w.runners("00:01:00")
		require.Len(t, got, 40)
		for i := 20; i < 40; i++ {
			require.Equal(t, "new", got[fmt.Sprintf("j%03d", i)])
		}
	})
}

func TestMembersWithSameIDShareJobs(t *testing.T) {
	members := []member{{node: "n-1", id: "host", keys: []uint32{jobKey("j")}},
		{node: "n-2", id: "host", keys: []uint32{jobKey("j")}}}
	share := map[string]int{}
	for i := range 100 {
		j := &job{Job: Job{Name: fmt.Sprint("j", i)}}
		for k := range members {
			members[k].keys = []uint32{jobKey(j.Name)}
		}
		share[j.ownerAmong(members)]++
	}
	require.InDelta(t, 50, share["n-1"], 25)
	require.Equal(t, 100, share["n-1"]+share["n-2"])
	require.Empty(t, (&job{Job: Job{Name: "k"}}).ownerAmong(members), "nobody has it")
}

func TestRemovedJobAddedToOneMemberRunsThere(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(10, "* * * * *", quick)
		w.start("a", all)
		b := w.start("b", all)
		for _, j := range all {
			require.NoError(t, b.Remove(t.Context(), j.Name))
		}
		synctest.Wait()
		w.start("c", all)
		time.Sleep(61 * time.Second)
		require.Len(t, w.runners("00:01:00"), 10)
	})
}

func TestMemberRejoinsAfterItsNodeIsDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", spreadJobs(5, "* * * * *", lasting(2*time.Second)))
		time.Sleep(61 * time.Second)
		for _, node := range w.Children(testPath + "/members") {
			require.NoError(t, a.client.Delete(t.Context(), testPath+"/members/"+node, framework.AnyVersion))
		}
		time.Sleep(timeout)
		require.Len(t, w.Children(testPath+"/members"), 1)
		time.Sleep(time.Minute)
		require.Len(t, w.runners("00:02:00"), 5)
		for _, e := range w.log.all(EventFinished) {
			require.NoError(t, e.Err, "claims are not the member's node")
		}
	})
}

func TestASuspendedMembersJobsWaitForItOrItsEnd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(20, "*/30 * * * * *", quick)
		a := w.start("a", all)
		w.start("b", all)
		time.Sleep(31 * time.Second)
		a.link.Reset()
		time.Sleep(28 * time.Second)
		a.link.BlackHole(true, true)
		time.Sleep(40 * time.Second)
		a.link.Heal()
		time.Sleep(30 * time.Second)
		for _, tick := range []string{"00:00:30", "00:01:00", "00:01:30", "00:02:00"} {
			require.Len(t, w.runners(tick), 20, tick)
		}
		synctest.Wait()
		for _, j := range all {
			require.Empty(t, w.requireBalanced(j.Name, j.Spec).Missed)
		}
	})
}
