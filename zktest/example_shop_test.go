package zktest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// shop is a service: one instance leads, one writes a report each hour and orders a mail about it,
// all send mails. It tells does what it does.
func shop(ctx context.Context, client *framework.Client, does func(string)) error {
	mails := queue.New(client, "/shop/mails", codec.Text())
	defer mails.Close(ctx)
	jobs := scheduler.New(client, "/shop/jobs")
	err := jobs.Add(scheduler.Job{Name: "report", Spec: "@hourly",
		Run: func(ctx context.Context, run scheduler.Run) error {
			return mails.Put(ctx, run.Tick.Format(time.TimeOnly))
		}})
	if err != nil {
		return err
	}
	return lockstep.Run(ctx, client, []lockstep.Part{
		lockstep.Lead(election.New(client, "/shop/leader"), func(ctx context.Context, _ *election.Term) error {
			does("lead")
			<-ctx.Done()
			return nil
		}),
		lockstep.Go("jobs", jobs.Run),
		lockstep.Go("mails", func(ctx context.Context) error {
			return mails.Work(ctx, 8, func(_ context.Context, d *queue.Delivery[string]) error {
				does("mail of " + d.Value)
				return nil
			})
		}),
	}, lockstep.WithSignals())
}

// TestShop runs three instances for three hours, in a fraction of a second. Each hour another one
// is without network when the report is due.
func TestShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		done := map[string]int{}
		var instances sync.WaitGroup
		var links []*zktest.Link
		for _, name := range []string{"a", "b", "c"} {
			member := zk.Member(t, name, framework.Config{})
			links = append(links, member.Link)
			instances.Go(func() {
				err := shop(ctx, member.Client, func(what string) {
					mu.Lock()
					defer mu.Unlock()
					done[what]++
				})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		for _, link := range links {
			time.Sleep(30 * time.Minute)
			link.Cut()
			time.Sleep(30*time.Minute + time.Second)
			link.Heal()
		}
		time.Sleep(time.Minute)
		stop()
		instances.Wait()
		require.GreaterOrEqual(t, done["lead"], 2)
		for _, hour := range []string{"01:00:00", "02:00:00", "03:00:00"} { // synctest begins at midnight
			require.Equal(t, 1, done["mail of "+hour], hour)
		}
	})
}
