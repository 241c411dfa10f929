package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// night is what goes on.
type night struct {
	zk      *zktest.Server
	options []framework.Option // of all clients
	clients []*framework.Client
	tasks   sync.WaitGroup
	stop    context.CancelFunc
}

// end ends all that goes on.
func (n *night) end() {
	if n.stop != nil {
		n.stop()
	}
	for _, client := range n.clients { // first, since leases last until then
		_ = client.Close(context.Background())
	}
	n.tasks.Wait()
}

// begin begins all that goes on.
func (n *night) begin(ctx context.Context) error {
	ctx, n.stop = context.WithCancel(ctx)
	billing, err := n.connect(ctx, "billing-2-811")
	if err != nil {
		return err
	}
	invoices, err := n.connect(ctx, "billing-5-417")
	if err != nil {
		return err
	}
	if err := n.deadlock(ctx, billing, invoices); err != nil {
		return err
	}
	for i := range 14 {
		waiter, err := n.connect(ctx, fmt.Sprintf("web-%d-%d", i%4+1, 100+i))
		if err != nil {
			return err
		}
		n.wait(ctx, waiter, "/apps/locks/ledger")
	}
	for i := range 24 {
		n.wait(ctx, billing, fmt.Sprintf("/apps/locks/customers/%d", 4711+i))
	}
	led := make(chan struct{})
	tell := sync.OnceFunc(func() { close(led) })
	for i := range 3 {
		name := fmt.Sprintf("orders-%d-%d", i+1, 1290+i)
		candidate, err := n.connect(ctx, name)
		if err != nil {
			return err
		}
		n.tasks.Go(func() {
			_ = election.New(candidate, "/apps/elections/orders", election.WithID(name)).Lead(ctx,
				func(ctx context.Context, _ *election.Term) error {
					tell()
					<-ctx.Done()
					return nil
				})
		})
		select {
		case <-led: // the first leads before others campaign
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.work(ctx, billing)
	if err := n.fleet(ctx, billing); err != nil {
		return err
	}
	if err := n.order(ctx, invoices); err != nil {
		return err
	}
	n.tasks.Go(func() {
		_, _ = barrier.NewDoubleBarrier(invoices, "/apps/barriers/month-end", 3).Enter(ctx)
	})
	return n.schedule(ctx, billing)
}

// deadlock has two processes wait for each other's lock. Both only report deadlocks, so neither gives up.
func (n *night) deadlock(ctx context.Context, billing, invoices *framework.Client) error {
	reports := locks.WithDeadlockMode(locks.DeadlockReport)
	ledger, err := locks.NewMutex(billing, "/apps/locks/ledger", reports).Lock(ctx)
	if err != nil {
		return err
	}
	numbers, err := locks.NewMutex(invoices, "/apps/locks/invoice-numbers", reports).Lock(ctx)
	if err != nil {
		return err
	}
	n.tasks.Go(func() { _, _ = locks.NewMutex(billing, "/apps/locks/invoice-numbers", reports).Lock(ledger.Context()) })
	n.tasks.Go(func() { _, _ = locks.NewMutex(invoices, "/apps/locks/ledger", reports).Lock(numbers.Context()) })
	return nil
}

// wait waits for a lock, and holds it when it is granted.
func (n *night) wait(ctx context.Context, client *framework.Client, path string) {
	n.tasks.Go(func() {
		_ = locks.Do(ctx, locks.NewMutex(client, path), func(ctx context.Context, _ *locks.Lease) error {
			<-ctx.Done()
			return nil
		})
	})
}

// work puts items into a queue that nobody takes, and one into a queue whose consumer fails.
func (n *night) work(ctx context.Context, client *framework.Client) {
	n.tasks.Go(func() {
		q := queue.New(client, "/apps/queues/invoices", codec.Text())
		defer q.Close(context.Background()) //nolint:errcheck // the night is over
		for i := 0; ctx.Err() == nil; i++ {
			_ = q.Put(ctx, fmt.Sprint("invoice ", i))
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	n.tasks.Go(func() {
		q := queue.New(client, "/apps/queues/mails", codec.Text(), queue.WithMaxAttempts(1))
		defer q.Close(context.Background()) //nolint:errcheck // the night is over
		_ = q.Put(ctx, "to ann")
		_ = q.Work(ctx, 1, func(context.Context, *queue.Delivery[string]) error {
			return errors.New("550 5.1.1 mailbox unavailable")
		})
	})
}

// fleet has members of which one is out of service, instances of which one gets no calls, and a value that
// somebody has changed at night.
func (n *night) fleet(ctx context.Context, client *framework.Client) error {
	group := members.New(client, "/apps/members/billing")
	services := registry.New(client, "/apps/services")
	for i := range 4 {
		name := fmt.Sprintf("billing-%d", i+1)
		if _, err := group.Join(ctx, name, members.Info{Version: "v2.14.0", Load: float64(10*i) + 3.5,
			Metadata: map[string]string{"zone": string(rune('a' + i%2))}}); err != nil {
			return err
		}
		instance, err := services.Register(ctx, registry.Instance{Service: "billing", ID: name,
			Address: name + ".example", Port: 8080, Weight: 1 + i%2, Metadata: map[string]string{"version": "v2.14.0"}})
		if err == nil && i == 3 {
			err = instance.Disable(ctx, "its check fails: connection refused")
		}
		if err != nil {
			return err
		}
	}
	if err := group.Cordon(ctx, "billing-3", members.WithReason("its disk is to be replaced")); err != nil {
		return err
	}
	limits := config.New(client, "/apps/config/billing", codec.Text())
	if err := limits.Set(ctx, "retries: 3\ntimeout: 10s\nrate: 200\n"); err != nil {
		return err
	}
	return limits.Set(ctx, "retries: 3\ntimeout: 90s\nrate: 200\n", config.WithNote("the bank is slow tonight"))
}

// order starts two orders: one waits for its payment, and the other has failed in its second step.
func (n *night) order(ctx context.Context, client *framework.Client) error {
	kind := workflow.NewKind[int, string]("order")
	flows := workflow.New(client, "/apps/orders")
	step := func(context.Context, workflow.Key) error { return nil }
	if err := flows.Register(kind.Function(func(ctx context.Context, run *workflow.Run, pieces int) (string, error) {
		if err := run.Do(ctx, "reserve", step); err != nil {
			return "", err
		}
		if pieces > 100 {
			return "", workflow.Permanent(errors.New("the carrier takes no more than 100 pieces"))
		}
		return workflow.Await[string](ctx, run, "paid", 0)
	})); err != nil {
		return err
	}
	n.tasks.Go(func() { _ = flows.Work(ctx) })
	for id, pieces := range map[string]int{"order-7713": 2, "order-7714": 250} {
		if _, err := kind.Start(ctx, flows, id, pieces); err != nil {
			return err
		}
	}
	return nil
}

// schedule runs one job that succeeds, one that fails, and one that waits for the night.
func (n *night) schedule(ctx context.Context, client *framework.Client) error {
	jobs := scheduler.New(client, "/apps/cron")
	for _, job := range []scheduler.Job{
		{Name: "rates", Spec: "*/5 * * * * *", Description: "fetches the rates of the day",
			Run: func(context.Context, scheduler.Run) error { return nil }},
		{Name: "ledger-close", Spec: "*/20 * * * * *", Description: "closes the ledger",
			Run: func(context.Context, scheduler.Run) error {
				return errors.New("the lock ledger was not granted in time")
			}},
		{Name: "report", Spec: "0 3 * * *", Description: "sends the report of the day",
			Run: func(context.Context, scheduler.Run) error { return nil }},
	} {
		if err := jobs.Add(job); err != nil {
			return err
		}
	}
	n.tasks.Go(func() { _ = jobs.Run(ctx) })
	return nil
}
