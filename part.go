package lockstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockstep-go/lockstep/internal/drain"
)

// Part is something that a service does from its start to its stop: make one with Lead, Go,
// Background, Register or Join. Each part of a service has another name.
type Part struct {
	name  string
	stage drain.Stage
	works bool // the service ends when all parts that work have returned
	err   error
	run   func(ctx context.Context, s *service, started func()) error
}

// Go calls f when the service starts. When the service stops, the context of f ends after the
// registrations have left their pools and before elections end; then f should return soon. f may be
// a method that runs until its context ends, such as that of a scheduler or of workflows:
//
//	lockstep.Go("jobs", jobs.Run)
//	lockstep.Go("orders", orders.Work)
//	lockstep.Go("mails", func(ctx context.Context) error { return mails.Work(ctx, 8, send) })
//
// An error of f ends the service, unless it is that of its ended context. When f returns nil, its
// work is done: the service goes on until the functions of Go and Lead have all returned.
//
// Queue.Work, Workflows.Work and Scheduler.Run finish what they are at, for their own grace or for
// the service's time for functions (WithGrace), whichever is shorter.
func Go(name string, f func(ctx context.Context) error) Part {
	p := function(name, f)
	p.stage, p.works = drain.Work, true
	return p
}

// Background is as Go, for what other parts use, such as configuration values, and for monitors:
// its context ends after elections and before memberships. The service does not wait for its return
// to end.
//
//	lockstep.Background("limits", limits.Run)
//	lockstep.Background("monitor", problems.Run)
func Background(name string, f func(ctx context.Context) error) Part {
	p := function(name, f)
	p.stage = drain.Background
	return p
}

func function(name string, f func(ctx context.Context) error) Part {
	p := Part{name: name}
	if f == nil {
		p.err = errors.New("the function is nil")
	}
	p.run = func(ctx context.Context, _ *service, started func()) error {
		started()
		return f(ctx)
	}
	return p
}

// Lead campaigns in an election, such as an *election.Election, and calls lead as its method Lead
// does: the context of lead ends with the term, and when the service stops, after the functions of
// Go have returned. A panic of lead ends the service. The part's name is "election" and the
// election's path.
func Lead[Term any](election interface {
	Path() string
	Lead(ctx context.Context, lead func(ctx context.Context, term Term) error) error
}, lead func(ctx context.Context, term Term) error) Part {
	p := Part{name: "election", stage: drain.Leadership, works: true}
	switch {
	case isNil(election):
		p.err = errors.New("the election is nil")
		return p
	case lead == nil:
		p.err = errors.New("the function is nil")
	default:
		p.err = argumentError(election)
	}
	p.name += " " + election.Path()
	p.run = func(ctx context.Context, s *service, started func()) error {
		started()
		within, cancel := context.WithCancel(ctx)
		defer cancel()
		var panicked error
		err := election.Lead(within, func(ctx context.Context, term Term) error {
			err := s.call(p.name, func() error { return lead(ctx, term) })
			if errors.Is(err, errPanic) { // Lead would call it again
				panicked = err
				cancel()
			}
			return err
		})
		return cmp.Or(panicked, err)
	}
	return p
}

// Register registers an instance in a registry, such as a *registry.Registry, once the other parts
// have started. When the service stops, the instance is the first to leave: it is disabled, pools
// notice that, and it is unregistered, as Registration.Drain does. Only then the other parts stop.
// If the registration ends by itself, its error ends the service.
func Register[Instance, Option any, Registration interface {
	Done() <-chan struct{}
	Err() error
	Drain(ctx context.Context) error
}](name string, registry interface {
	Register(ctx context.Context, instance Instance, opts ...Option) (Registration, error)
}, instance Instance, opts ...Option) Part {
	p := Part{name: name, stage: drain.Pool}
	if isNil(registry) {
		p.err = errors.New("the registry is nil")
	}
	p.run = func(ctx context.Context, s *service, started func()) error {
		select {
		case <-s.othersStarted:
		case <-ctx.Done():
			return nil
		}
		r, err := registry.Register(ctx, instance, opts...)
		if err != nil {
			return err
		}
		started()
		select {
		case <-r.Done():
			return r.Err()
		case <-ctx.Done():
		}
		ctx, cancel := drain.Cleanup(ctx)
		defer cancel()
		return r.Drain(ctx)
	}
	return p
}

// Join joins a group, such as a *members.Group, under an ID, when the service starts. The
// membership is the last to end when the service stops, before the client is closed: others see the
// member until its work has ended. The part's name is "member", the ID and the group's path.
func Join[Info, Option any, Membership interface {
	Leave(ctx context.Context) error
}](group interface {
	Path() string
	Join(ctx context.Context, id string, info Info, opts ...Option) (Membership, error)
}, id string, info Info, opts ...Option) Part {
	p := Part{name: "member " + id, stage: drain.Membership}
	if isNil(group) {
		p.err = errors.New("the group is nil")
		return p
	}
	p.name += " of " + group.Path()
	p.run = func(ctx context.Context, s *service, started func()) error {
		m, err := group.Join(ctx, id, info, opts...)
		if err != nil {
			return err
		}
		started()
		<-ctx.Done()
		ctx, cancel := drain.Cleanup(ctx)
		defer cancel()
		return m.Leave(ctx)
	}
	return p
}

// check returns why the parts cannot be those of a service.
func check(parts []Part) error {
	if len(parts) == 0 {
		return errors.New("it has no parts")
	}
	names := map[string]bool{}
	for i, p := range parts {
		switch {
		case p.err != nil:
			return &PartError{p.name, p.err}
		case p.run == nil:
			return fmt.Errorf("part %d is empty: make it with Go, Lead, Background, Register or Join", i)
		case p.name == "":
			return fmt.Errorf("part %d has no name", i)
		case names[p.name]:
			return &PartError{p.name, errors.New("the service has two parts of this name")}
		}
		names[p.name] = true
	}
	return nil
}

// argumentError returns the error of a recipe's arguments, if the recipe tells it.
func argumentError(recipe any) error {
	if r, tells := recipe.(interface{ Validate() error }); tells {
		return r.Validate()
	}
	return nil
}

// isNil reports whether a recipe is nil, also as a pointer in an interface.
func isNil(recipe any) bool {
	v := reflect.ValueOf(recipe)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
