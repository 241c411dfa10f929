package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/election/electionfx"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/monitor/monitorfx"
	"github.com/lockstep-go/lockstep/queue/queuefx"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/scheduler/schedulerfx"
)

// replica is one instance of the service.
type replica struct {
	app     *fx.App
	tel     *telemetry
	address string
	id      string
}

// startReplica builds and starts a replica, which connects in the background. A start takes no
// context: one that a signal ends halfway would be neither complete nor undone, as fx runs no stop
// hook with a context that is over.
func startReplica(o options, i int, out io.Writer, log *slog.Logger) (*replica, error) {
	tel, err := newTelemetry(out)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	l, err := new(net.ListenConfig).Listen(starting, "tcp", o.address(i))
	if err != nil {
		return nil, err
	}
	r := &replica{tel: tel, address: l.Addr().String(), id: fmt.Sprint("replica-", i+1)}
	r.app = fx.New(
		frameworkfx.Module, electionfx.Module, queuefx.Module, schedulerfx.At(jobsPath, scheduler.WithGrace(workGrace)),
		fx.Supply(framework.Config{Servers: o.servers, Identity: r.id, SessionTimeout: sessionTimeout}),
		fx.Supply(fx.Annotate(l, fx.As(new(net.Listener)))),
		fx.Supply(log.With("replica", r.id)),
		frameworkfx.AsOption(framework.WithLogger(log.With("replica", r.id))),
		frameworkfx.AsOption(framework.WithTracerProvider(tel.traces)),
		frameworkfx.AsOption(framework.WithMeterProvider(tel.metrics)),
		fx.Supply(tel),
		fx.Provide(newShop, newReceipts, newWeb),
		schedulerfx.AsJob(reportJob(o.report)),
		monitorfx.At(monitorPath, shopPath, monitor.WithInterval(o.lookInterval)),
		fx.Invoke(sendReceipts),
		electionfx.AsLeaderTask(r.leaderTask),
		fx.Invoke(serveWeb),
		fx.StopTimeout(stopTimeout),
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
	)
	if err := r.app.Start(starting); err != nil {
		_ = l.Close()
		return nil, err
	}
	return r, nil
}

// leaderTask is what the replica does while it leads.
func (r *replica) leaderTask(s *shop, log *slog.Logger) electionfx.LeaderTask {
	return electionfx.LeaderTask{
		Path:    electionPath,
		Options: []election.Option{election.WithMetadata(election.Metadata{"address": r.address})},
		Lead: func(ctx context.Context, term *election.Term) error {
			log.Info("leading", "term", term.Number(), "token", term.Token())
			defer log.Info("no longer leading", "term", term.Number())
			return s.lead(ctx, term)
		},
	}
}

// wait waits until the replica has ended by itself or ctx ends.
func (r *replica) wait(ctx context.Context, ended <-chan fx.ShutdownSignal) error {
	select {
	case s := <-ended:
		if s.ExitCode != 0 {
			return fmt.Errorf("%s has ended with code %d", r.id, s.ExitCode)
		}
		return nil
	case <-ctx.Done():
		return nil
	}
}

func (r *replica) stop(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := r.app.Stop(ctx); err != nil {
		log.Error("a replica could not be stopped", "replica", r.id, "error", err)
	}
	r.tel.stop(log)
}
