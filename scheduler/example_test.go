package scheduler_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

func ExampleParseSpec() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := scheduler.ParseSpec("0 3 * * mon-fri", berlin)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Next(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))

	_, err = scheduler.ParseSpec("0 0 30 2 *", nil)
	fmt.Println(err)
	// Output:
	// 2026-05-04 03:00:00 +0200 CEST
	// invalid schedule "0 0 30 2 *": it never fires
}

func ExampleScheduler() {
	ctx, stop := context.WithCancel(context.Background())
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	s := scheduler.New(client, "/billing/cron")
	err := s.Add(scheduler.Job{Name: "rollup", Spec: "@every 1s",
		Run: func(ctx context.Context, run scheduler.Run) error {
			fmt.Println("rolling up, once in the cluster:", run.Job)
			stop()
			return nil
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Run(ctx))
	// Output:
	// rolling up, once in the cluster: rollup
	// <nil>
}
