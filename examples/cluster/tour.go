package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
)

// tour is what goes on beside the members for those who look at the page: two services hold a lock
// each and wait for the other's, so waiters gather; a queue grows, a job fails, and more.
type tour struct {
	connect func(ctx context.Context, identity string) (*framework.Client, error)
	clients []*framework.Client
	tasks   sync.WaitGroup
	stop    context.CancelFunc
}

// tourOf returns a tour on the servers of env.
func tourOf(env *demo.Env) *tour {
	return &tour{connect: func(ctx context.Context, identity string) (*framework.Client, error) {
		config := env.Config
		config.Identity = identity
		return framework.Connect(ctx, config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	}}
}

// openTour begins the tour and serves its page, until the result is called.
func openTour(ctx context.Context, env *demo.Env, log demo.Log) (closeTour func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	page, err := ui.New(env.Client, ui.WithActions())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	t := tourOf(env)
	t.tasks.Go(func() { _ = server.Serve(listener) }) // until its Close
	closeTour = func() {
		page.Close() // ends the streams of open pages
		_ = server.Close()
		t.end()
	}
	if err := t.begin(ctx); err != nil {
		closeTour()
		return nil, err
	}
	address := "http://" + listener.Addr().String() + "/"
	log.Marked(time.Now(), " ", "the page is at %s", log.Bold(address))
	log.Marked(time.Now(), " ", "in half a minute it shows a deadlock, a queue that grows and a job that fails")
	if terminal.Is(os.Stdout) {
		_ = terminal.OpenBrowser(address) // it is printed anyway
	}
	return closeTour, nil
}

// open connects a process of the tour.
func (t *tour) open(ctx context.Context, identity string) (*framework.Client, error) {
	client, err := t.connect(ctx, identity)
	if err == nil {
		t.clients = append(t.clients, client)
	}
	return client, err
}

// end ends all that goes on.
func (t *tour) end() {
	t.stop()
	for _, client := range t.clients { // their leases last until then
		_ = client.Close(context.Background())
	}
	t.tasks.Wait()
}

// begin begins all that goes on.
func (t *tour) begin(ctx context.Context) error {
	ctx, t.stop = context.WithCancel(ctx)
	billing, err := t.open(ctx, "billing-2-811")
	if err != nil {
		return err
	}
	invoices, err := t.open(ctx, "billing-5-417")
	if err != nil {
		return err
	}
	if err := t.deadlock(ctx, billing, invoices); err != nil {
		return err
	}
	for i := range 14 {
		waiter, err := t.open(ctx, fmt.Sprintf("web-%d-%d", i%4+1, 100+i))
		if err != nil {
			return err
		}
		t.wait(ctx, waiter, "/locks/ledger")
	}
	for i := range 24 {
		t.wait(ctx, billing, fmt.Sprintf("/locks/customers/%d", 4711+i))
	}
	led := make(chan struct{})
	tell := sync.OnceFunc(func() { close(led) })
	for i := range 3 {
		name := fmt.Sprintf("orders-%d-%d", i+1, 1290+i)
		candidate, err := t.open(ctx, name)
		if err != nil {
			return err
		}
		t.tasks.Go(func() {
			_ = election.New(candidate, "/elections/orders", election.WithID(name)).Lead(ctx,
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
	t.work(ctx, billing, invoices)
	if err := t.fleet(ctx, billing); err != nil {
		return err
	}
	if err := t.order(ctx, invoices); err != nil {
		return err
	}
	if err := t.ship(ctx, billing); err != nil {
		return err
	}
	if err := t.meet(ctx, billing, invoices); err != nil {
		return err
	}
	return t.schedule(ctx, billing)
}

// deadlock has two processes wait for each other's lock. Both only report deadlocks, so neither
// gives up.
func (t *tour) deadlock(ctx context.Context, billing, invoices *framework.Client) error {
	reports := locks.WithDeadlockMode(locks.DeadlockReport)
	ledger, err := locks.NewMutex(billing, "/locks/ledger", reports).Lock(ctx)
	if err != nil {
		return err
	}
	numbers, err := locks.NewMutex(invoices, "/locks/invoice-numbers", reports).Lock(ctx)
	if err != nil {
		return err
	}
	t.tasks.Go(func() { _, _ = locks.NewMutex(billing, "/locks/invoice-numbers", reports).Lock(ledger.Context()) })
	t.tasks.Go(func() { _, _ = locks.NewMutex(invoices, "/locks/ledger", reports).Lock(numbers.Context()) })
	return nil
}

// wait waits for a lock, and holds it when it is granted.
func (t *tour) wait(ctx context.Context, client *framework.Client, path string) {
	t.tasks.Go(func() {
		_ = locks.Do(ctx, locks.NewMutex(client, path), func(ctx context.Context, _ *locks.Lease) error {
			<-ctx.Done()
			return nil
		})
	})
}

// work puts items into a queue whose consumer stands still, and one into a queue whose consumer
// fails.
func (t *tour) work(ctx context.Context, client, consumer *framework.Client) {
	t.tasks.Go(func() {
		q := queue.New(client, "/queues/invoices", codec.Text())
		defer q.Close(context.Background()) //nolint:errcheck // the tour is over
		for i := 0; ctx.Err() == nil; i++ {
			_ = q.Put(ctx, fmt.Sprint("invoice ", i))
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	t.tasks.Go(func() {
		q := queue.New(consumer, "/queues/invoices", codec.Text())
		defer q.Close(context.Background()) //nolint:errcheck // the tour is over
		_ = q.Work(ctx, 1, func(ctx context.Context, _ *queue.Delivery[string]) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	t.tasks.Go(func() {
		q := queue.New(client, "/queues/mails", codec.Text(), queue.WithMaxAttempts(1))
		defer q.Close(context.Background()) //nolint:errcheck // the tour is over
		_ = q.Put(ctx, "to ann")
		_ = q.Work(ctx, 1, func(context.Context, *queue.Delivery[string]) error {
			return errors.New("550 5.1.1 mailbox unavailable")
		})
	})
}

// fleet has members of which one is out of service, instances of which one gets no calls, and a
// value that somebody has changed at night.
func (t *tour) fleet(ctx context.Context, client *framework.Client) error {
	group := members.New(client, "/members/billing")
	services := registry.New(client, "/services")
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
	limits := config.New(client, "/config/billing", codec.Text())
	if err := limits.Set(ctx, "retries: 3\ntimeout: 10s\nrate: 200\n"); err != nil {
		return err
	}
	return limits.Set(ctx, "retries: 3\ntimeout: 90s\nrate: 200\n", config.WithNote("the bank is slow tonight"))
}

// order starts two orders: one waits for its payment, and the other has failed in its second step.
func (t *tour) order(ctx context.Context, client *framework.Client) error {
	kind := workflow.NewKind[int, string]("order")
	flows := workflow.New(client, "/orders")
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
	t.tasks.Go(func() { _ = flows.Work(ctx) })
	for id, pieces := range map[string]int{"order-7713": 2, "order-7714": 250} {
		if _, err := kind.Start(ctx, flows, id, pieces); err != nil {
			return err
		}
	}
	return nil
}

// ship starts a shipment, whose steps are a graph. It does not get beyond its parcel.
func (t *tour) ship(ctx context.Context, client *framework.Client) error {
	step := func(name string, after ...string) workflow.AnyGraphStep[int] {
		return workflow.GraphStep[int, int]{Name: name, After: after,
			Do: func(ctx context.Context, _ workflow.Key, pieces int, _ workflow.GraphResults) (int, error) {
				if name == "pack" {
					<-ctx.Done()
				}
				return pieces, ctx.Err()
			}}
	}
	graph, err := workflow.NewGraph("shipment", step("reserve"), step("invoice", "reserve"), step("label", "reserve"),
		step("pack", "reserve"), step("hand over", "label", "pack"), step("tell the customer", "invoice", "hand over"))
	if err != nil {
		return err
	}
	kind := workflow.NewKind[int, string]("shipment")
	flows := workflow.New(client, "/shipments")
	if err := flows.Register(kind.Function(func(ctx context.Context, run *workflow.Run, pieces int) (string, error) {
		_, err := graph.Run(ctx, run, pieces)
		return "", err
	})); err != nil {
		return err
	}
	t.tasks.Go(func() { _ = flows.Work(ctx) })
	_, err = kind.Start(ctx, flows, "shipment-311", 2)
	return err
}

// meet has a process wait at a barrier, one raise a gate, and one count for a latch.
func (t *tour) meet(ctx context.Context, billing, invoices *framework.Client) error {
	t.tasks.Go(func() {
		_, _ = barrier.NewDoubleBarrier(invoices, "/barriers/month-end", 3).Enter(ctx)
	})
	if _, err := barrier.NewGate(billing, "/gates/imports").Hold(ctx); err != nil {
		return err
	}
	return barrier.NewLatch(invoices, "/latches/migrated", 2).CountDown(ctx, "billing-5")
}

// schedule runs one job that succeeds, one that fails, and one that waits for the night.
func (t *tour) schedule(ctx context.Context, client *framework.Client) error {
	jobs := scheduler.New(client, "/cron")
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
	t.tasks.Go(func() { _ = jobs.Run(ctx) })
	return nil
}
