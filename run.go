package lockstep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// Run runs a service: it starts the client, runs the parts, and serves their health, until ctx
// ends, a signal comes, a part fails, or the functions of Go and Lead have all returned. Then it
// stops the parts in order, closes the client, and returns. The client is one of framework.New, so
// that nothing waits for the servers before Run does, or, in tests, one that is connected, such as
// a zktest.Member's; Run closes it in any case.
//
// Start: all parts start at once, registrations when the others have started. Run does not fail
// while the servers are away: it goes on trying, and the service is live and not ready. A part that
// fails, also because the servers refuse the client's credentials, ends the service.
//
// Stop: first registrations leave their pools, then the functions of Go end, then elections, then
// what Background runs, then memberships, then the session. A stage begins when the one before has
// ended, or has used up its share of the grace (WithGrace): seven eighths of what is left of it,
// and for functions three quarters. The close of the client ends the contexts of all that it has
// held, so that others go on at once. A second signal ends the process at once, without all that:
// others go on after the session timeout. If the session is lost meanwhile, its holds have ended,
// and the stop goes on.
//
// Run returns nil if all parts have ended without an error, in time. Otherwise its error joins a
// *PartError for each part that has failed (of a panic it wraps framework.ErrPanic), an error that
// wraps framework.ErrUnfinished for each that has not ended in time, and that of Client.Close. The
// error of bad input wraps framework.ErrInvalid; then nothing was started. When Run returns, no
// function of a part runs, unless the error wraps framework.ErrUnfinished.
func Run(ctx context.Context, client *framework.Client, parts []Part, opts ...Option) error {
	if client == nil {
		return fmt.Errorf("%w: the client is nil", errInvalid)
	}
	o, err := newOptions(opts)
	if err == nil {
		err = check(parts)
	}
	if err == nil {
		err = o.health.use(client)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errInvalid, err), client.Close(ctx))
	}
	s := &service{options: o, client: client, ctx: ctx, othersStarted: make(chan struct{})}
	return s.run(parts)
}

// service is one call of Run.
type service struct {
	options
	client *framework.Client
	ctx    context.Context
	stop   context.CancelCauseFunc // begins to stop the service

	tasks         drain.Sequence
	othersStarted chan struct{} // closed when all parts but registrations have started

	mu       sync.Mutex
	starting int // parts that have not started yet
	others   int // of these, parts that are no registrations
	working  int // parts whose return ends the service
	errs     []error
}

// errDone is why a service stops whose work is done.
var errDone = errors.New("the functions have returned")

func (s *service) run(parts []Part) error {
	stopping, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	s.stop = stop
	endSignals := func() {}
	if len(s.signals) > 0 {
		stopping, endSignals = signal.NotifyContext(stopping, s.signals...)
		defer endSignals()
	}
	closePages, err := s.servePages()
	if err != nil {
		s.health.enter(notRunning)
		return errors.Join(err, s.client.Close(s.ctx))
	}
	defer closePages()
	s.client.Start()
	tasks := s.start(parts)
	<-stopping.Done()
	endSignals() // a second signal ends the process
	s.client.Logger().Info("the service stops", "reason", context.Cause(stopping), "grace", s.grace)
	return s.drain(tasks)
}

// start starts all parts.
func (s *service) start(parts []Part) (tasks []*drain.Task) {
	s.starting = len(parts)
	for _, p := range parts {
		if p.stage != drain.Pool {
			s.others++
		}
		if p.works {
			s.working++
		}
	}
	if s.working == 0 {
		s.working = 1 // the service goes on until it is stopped
	}
	if s.others == 0 {
		close(s.othersStarted)
	}
	for _, p := range parts {
		t := drain.NewTask(s.ctx, p.name, func(ctx context.Context) { s.runPart(ctx, p) })
		s.tasks.Add(p.stage, t.Stop)
		tasks = append(tasks, t)
	}
	for _, t := range tasks {
		t.Start()
	}
	return tasks
}

// runPart runs a part, and stops the service if the part has failed, or was the last one to work.
func (s *service) runPart(ctx context.Context, p Part) {
	err := s.call(p.name, func() error {
		return p.run(ctx, s, sync.OnceFunc(func() { s.partStarted(p) }))
	})
	switch {
	case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx))):
		s.fail(&PartError{p.name, err})
	case ctx.Err() == nil:
		s.client.Logger().Info("a part of the service has ended", "part", p.name)
		s.partDone(p)
	}
}

// call calls a function of the user. Its panic is an error.
func (s *service) call(part string, f func() error) error {
	return usercode.Call(s.client.Logger(), errPanic, "a part of the service", []any{"part", part}, f)
}

func (s *service) fail(err error) {
	s.mu.Lock()
	s.errs = append(s.errs, err)
	s.mu.Unlock()
	s.client.Logger().Error("a part of the service has failed", "error", err)
	s.stop(err)
}

func (s *service) partStarted(p Part) {
	s.mu.Lock()
	s.starting--
	all, others := s.starting == 0, false
	if p.stage != drain.Pool {
		s.others--
		others = s.others == 0
	}
	s.mu.Unlock()
	if others {
		close(s.othersStarted)
	}
	if all {
		s.health.enter(running)
	}
}

func (s *service) partDone(p Part) {
	if !p.works {
		return
	}
	s.mu.Lock()
	s.working--
	done := s.working == 0
	s.mu.Unlock()
	if done {
		s.stop(errDone)
	}
}

// drain stops the parts in their order, closes the client, and returns the errors of the service.
func (s *service) drain(tasks []*drain.Task) error {
	s.health.enter(draining)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.grace)
	defer cancel()
	unfinished := s.tasks.StopAll(stopping)
	closed := s.client.Close(stopping) // also ends what the unfinished parts hold
	last := notRunning
	for _, t := range tasks {
		if !t.Wait(stopping) {
			last = stuck
		}
	}
	s.health.enter(last)
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(s.errs, unfinished, closed)...)
}

// servePages serves the pages of WithProbes, until close is called.
func (s *service) servePages() (closePages func(), err error) {
	if s.address == "" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(s.ctx), "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("health: %w", err)
	}
	s.client.Logger().Info("serving health", "address", listener.Addr().String())
	server := &http.Server{Handler: s.health, ReadHeaderTimeout: pageTimeout, WriteTimeout: pageTimeout}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(&PartError{"health", err})
		}
	})
	return func() {
		_ = server.Close() // the probes that it cuts off find a process that ends
		serving.Wait()
	}, nil
}

// pageTimeout bounds one probe.
const pageTimeout = 5 * time.Second
