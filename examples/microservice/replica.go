package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
)

const (
	shopPath     = "/shop" // the monitor and the web page look at all of it
	receiptsPath = "/shop/receipts"
	jobsPath     = "/shop/jobs"
	booksPath    = "/shop/books"
	monitorPath  = "/shop/monitor"
)

// replica is one instance of the service.
type replica struct {
	id, address string
	log         *slog.Logger
	client      *framework.Client
	tel         *telemetry
	health      *lockstep.Health
	shop        *shop
	election    *election.Election
	receipts    *queue.Queue[int64] // orders whose customers have no receipt yet
	page        *ui.UI

	end   context.CancelFunc
	ended chan struct{} // closed when Run has returned err
	err   error
}

// startReplica starts a replica, which connects in the background.
func startReplica(o options, i int, spans io.Writer, log *slog.Logger) (*replica, error) {
	r := &replica{id: fmt.Sprint("replica-", i+1), health: &lockstep.Health{}, ended: make(chan struct{})}
	r.log = log.With("replica", r.id)
	tel, err := newTelemetry(spans)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.address(i))
	if err != nil {
		return nil, err
	}
	r.tel, r.address = tel, listener.Addr().String()
	r.client, err = framework.New(
		framework.Config{Servers: o.servers, Identity: r.id, SessionTimeout: sessionTimeout},
		framework.WithLogger(r.log), framework.WithTracerProvider(tel.traces), framework.WithMeterProvider(tel.metrics))
	if err == nil {
		r.page, err = ui.New(r.client, ui.WithRoot(shopPath))
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r.shop, r.receipts = newShop(r.client), queue.New(r.client, receiptsPath, codec.JSON[int64]())
	r.election = election.New(r.client, electionPath, election.WithMetadata(map[string]string{"address": r.address}))
	jobs := scheduler.New(r.client, jobsPath)
	if err := jobs.Add(scheduler.Job{Name: "report", Spec: o.report, Run: r.report}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	parts := []lockstep.Part{
		lockstep.Lead(r.election, r.lead),
		lockstep.Go("receipts", func(ctx context.Context) error { return r.receipts.Work(ctx, 4, r.send) }),
		lockstep.Go("jobs", jobs.Run),
		lockstep.Go("web", func(ctx context.Context) error { return r.serveWeb(ctx, listener) }),
		lockstep.Background("monitor",
			monitor.New(r.client, monitorPath, shopPath, monitor.WithInterval(o.lookInterval)).Run),
	}
	go func() {
		defer close(r.ended)
		// signals end all replicas of the process, one after the other: see serve
		r.err = lockstep.Run(ctx, r.client, parts, lockstep.WithGrace(stopTimeout), lockstep.WithSignals(),
			lockstep.WithHealthState(r.health))
	}()
	return r, nil
}

// stop ends the replica and waits for its end.
func (r *replica) stop() {
	r.end()
	<-r.ended
	if r.err != nil {
		r.log.Error("the replica has not ended well", "error", r.err)
	}
	r.tel.stop(r.log)
}

// lead is what the replica does while it leads.
func (r *replica) lead(ctx context.Context, term *election.Term) error {
	r.log.Info("leading", "term", term.Number(), "token", term.Token())
	defer r.log.Info("no longer leading", "term", term.Number())
	return r.shop.lead(ctx, term)
}

// send sends a receipt. Each receipt is sent at least once, even if a replica dies.
func (r *replica) send(_ context.Context, d *queue.Delivery[int64]) error {
	r.log.Info("a receipt is sent", "order", d.Value)
	return nil
}

// report logs the number of orders at each tick, in one of the replicas. It holds the lock of the
// books meanwhile. An operator who corrects the books by hand takes the same lock, with
// `lockstep lock /shop/books -- ./correct.sh`.
func (r *replica) report(ctx context.Context, _ scheduler.Run) error {
	return locks.Do(ctx, locks.NewMutex(r.client, booksPath), func(ctx context.Context, _ *locks.Lease) error {
		last, err := r.shop.load(ctx)
		if err == nil {
			r.log.Info("report", "orders", last.value)
		}
		return err
	})
}

// serveWeb serves the replica's pages until ctx ends.
func (r *replica) serveWeb(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	r.log.Info("listening", "address", r.address)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	r.page.Close() // ends the streams of open pages, for which Shutdown would wait
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout/2)
	defer cancel()
	return server.Shutdown(stopping)
}
