package scheduler

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// requests counts what sessions ask for beside proofs of life.
func (w *world) requests() (count func() map[framework.SessionID]int) {
	var mu sync.Mutex
	got := map[framework.SessionID]int{}
	stop := w.Observe(func(r zktest.Request) {
		mu.Lock()
		defer mu.Unlock()
		proof := r.Op == zktest.OpMulti && r.Zxid != 0 && len(r.Parts) > 0
		for _, p := range r.Parts {
			proof = proof && p.Op.String() == "check"
		}
		if r.Op != zktest.OpPing && r.Op != zktest.OpSync && !proof {
			got[r.Session]++
		}
	})
	return func() map[framework.SessionID]int {
		stop()
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func TestTickCostsTwoRequestsForAnyNumberOfMembers(t *testing.T) {
	for _, members := range []int{1, 10} {
		in(t, func(t *testing.T, w *world) {
			all := append(spreadJobs(5, "* * * * *", quick), jobs("leader", "* * * * *", quick)...)
			for i := range members {
				w.start(fmt.Sprint("m", i), all)
			}
			time.Sleep(61 * time.Second)
			count := w.requests()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			total := 0
			for _, n := range count() {
				total += n
			}
			require.Equal(t, 2*10*len(all), total, "a claim and an outcome")
		})
	}
}

func TestMemberWithoutJobsSendsNoRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := jobs("j", "* * * * * *", quick)
		w.start("a", all)
		b := w.start("b", all)
		session, err := b.client.Session(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		count := w.requests()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		got := count()
		require.Zero(t, got[session.ID()])
		require.Len(t, got, 1)
	})
}

// TestAJobTakesLittleMemory counts what 5,000 jobs take in the member that they belong to, and no
// goroutine.
func TestAJobTakesLittleMemory(t *testing.T) {
	const n = 5000
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", jobs("first", "0 0 1 1 *", quick))
		heap := func() (bytes, goroutines int) {
			synctest.Wait()
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc), runtime.NumGoroutine()
		}
		bytes, goroutines := heap()
		for i := range n {
			require.NoError(t, a.Add(Job{Name: fmt.Sprintf("job-%05d", i), Spec: "30 4 * * 1-5", Run: quick}))
		}
		a.run(t)
		time.Sleep(time.Second)
		after, more := heap()
		stored := 0
		for _, node := range w.Tree(testPath + "/jobs") {
			stored += len(node.Path) + len(node.Data) + 512 // what the server in this process takes for a node, about
		}
		perJob := (after - bytes - stored) / n
		t.Logf("%d bytes for each job, %d goroutines", perJob, more-goroutines)
		require.LessOrEqual(t, perJob, 2048)
		require.Less(t, more-goroutines, 30)
	})
}

// TestAWeeksStateOfAThousandJobsIsSmall fills the histories with what takes most, and adds up what
// is stored.
func TestAWeeksStateOfAThousandJobsIsSmall(t *testing.T) {
	s := New(idle(t), testPath)
	state := fullState(t)
	for i := range 100 {
		state.clone()
		state.addGap(parsed(t, "* * * * *", nil),
			Gap{From: minute(float64(2 * i)), To: minute(float64(2 * i)), Count: 1, Reason: ReasonRunnerLost})
	}
	state.LastRun.Error = errorText(fmt.Errorf("%01000d", 1))
	data, err := state.encode()
	require.NoError(t, err)
	size := len(data)
	for i := range int64(defaultHistory) {
		r := *state.LastRun
		r.Number = 100_000 + i
		record, err := encodeRun(r)
		require.NoError(t, err)
		size += len(record) + len(s.store.nodes.Job("a-job-with-a-name")) + 10
	}
	t.Logf("%d bytes at most for a job, %d of them the state", size, len(data))
	require.Less(t, 1000*size, 10_000_000)
}
