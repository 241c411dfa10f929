package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestClaimChecksVersionOfStateRead: a member that hears late that its jobs belong to another one
// claims a tick that the other has run already. It still is a member, and the claim is free again:
// what refuses it is the version of the job's state.
func TestClaimChecksVersionOfStateRead(t *testing.T) {
	for step := range 16 {
		synctest.Test(t, func(t *testing.T) { joinBeforeATick(t, time.Duration(step)*200*time.Millisecond) })
	}
}

func joinBeforeATick(t *testing.T, before time.Duration) {
	const jobs = 12
	zk := zktest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	runs, byOther := map[string]int{}, 0
	var members sync.WaitGroup
	join := func(name string) *zktest.Member {
		m := zk.Member(t, name, framework.Config{SessionTimeout: 40 * time.Second})
		s := scheduler.New(m.Client, "/cron")
		for n := range jobs {
			require.NoError(t, s.Add(scheduler.Job{Name: fmt.Sprintf("job-%d", n), Spec: "@every 1m",
				Placement: scheduler.Spread,
				Run: func(_ context.Context, run scheduler.Run) error {
					mu.Lock()
					defer mu.Unlock()
					runs[run.Job+" "+run.Tick.Format(time.TimeOnly)]++
					if name == "quick" {
						byOther++
					}
					return nil
				}}))
		}
		members.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return m
	}
	slow := join("slow")
	time.Sleep(5*time.Minute + 30*time.Second)
	slow.Link.Delay(time.Second)
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) - before)
	join("quick")
	time.Sleep(5 * time.Minute)
	stop()
	members.Wait()
	require.Positive(t, byOther)
	require.Greater(t, len(runs), 8*jobs)
	for tick, n := range runs {
		require.Equal(t, 1, n, tick)
	}
}
