package main

import (
	"context"
	"log/slog"
	"sync"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	receiptsPath = "/shop/receipts"
	jobsPath     = "/shop/jobs"
	booksPath    = "/shop/books"
	monitorPath  = "/shop/monitor"
	shopPath     = "/shop" // the monitor looks at all of it
)

// workGrace is how long receipts and jobs may take to end after the stop has begun. It ends before
// the stop timeout, so that the hooks that follow still close the client.
const workGrace = stopTimeout / 2

// newReceipts is the queue of orders whose customers have no receipt yet. Every replica puts orders
// into it and takes them out.
func newReceipts(f *queue.Factory) *queue.Queue[int64] {
	return queue.Make(f, receiptsPath, codec.JSON[int64]())
}

// sendReceipts sends receipts from the application's start to its stop. Each receipt is sent at
// least once, even if a replica dies.
func sendReceipts(lc fx.Lifecycle, receipts *queue.Queue[int64], log *slog.Logger, stop fx.Shutdowner) {
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	send := func(_ context.Context, d *queue.Delivery[int64]) error {
		log.Info("a receipt is sent", "order", d.Value)
		return nil
	}
	lc.Append(fx.StartStopHook(func() {
		working.Go(func() {
			if err := receipts.Work(ctx, 4, send, queue.WithGrace(workGrace)); err != nil && ctx.Err() == nil {
				log.Error("receipts are no longer sent", "error", err)
				_ = stop.Shutdown(fx.ExitCode(demo.ExitBroken)) // fails only if it is stopping
			}
		})
	}, func() {
		cancel()
		working.Wait()
	}))
}

// reportJob logs the number of orders at each tick, in one of the replicas. It holds the lock of
// the books meanwhile. An operator who corrects the books by hand takes the same lock, with
// `lockstep lock /shop/books -- ./correct.sh`.
func reportJob(spec string) any {
	return func(client *framework.Client, s *shop, log *slog.Logger) scheduler.Job {
		return scheduler.Job{Name: "report", Spec: spec, Run: func(ctx context.Context, _ scheduler.Run) error {
			return locks.Do(ctx, locks.NewMutex(client, booksPath), func(ctx context.Context, _ *locks.Lease) error {
				last, err := s.load(ctx)
				if err == nil {
					log.Info("report", "orders", last.value)
				}
				return err
			})
		}}
	}
}
