package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

var errNoSales = errors.New("nothing was sold")

// nightly has one of all members write the report, each night at three in Berlin, until ctx ends. A
// run is tried four times at most, and once if there is nothing to report.
func nightly(ctx context.Context, client *framework.Client, write func(context.Context, time.Time) error) error {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return err
	}
	jobs := scheduler.New(client, "/shop/jobs")
	err = jobs.Add(scheduler.Job{Name: "report", Spec: "0 3 * * *", Zone: berlin, Attempts: 4,
		Run: func(ctx context.Context, run scheduler.Run) error {
			err := write(ctx, run.Tick)
			if errors.Is(err, errNoSales) {
				return scheduler.Permanent(err)
			}
			return err
		}})
	if err != nil {
		return err
	}
	return jobs.Run(ctx)
}

// reportNow asks for a report at once. Any process may, such as one that serves a button.
func reportNow(ctx context.Context, client *framework.Client) error {
	return scheduler.New(client, "/shop/jobs").Trigger(ctx, "report")
}

// A nightly job in a time zone, with retries, an error that ends them, and runs by hand.
func ExampleScheduler_Trigger() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error)
	go func() {
		ended <- nightly(running, client, func(context.Context, time.Time) error {
			fmt.Println("writing the report")
			stop()
			return errNoSales
		})
	}()
	for err := reportNow(ctx, client); err != nil; err = reportNow(ctx, client) {
		if !errors.Is(err, framework.ErrNotFound) { // no member has added the job yet
			fmt.Println(err)
			break
		}
	}
	fmt.Println(<-ended)
	// Output:
	// writing the report
	// <nil>
}
