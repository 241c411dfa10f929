package election

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
)

// Module leads for the application: it campaigns for every duty that AsDuty provides, from the application's
// start to its stop, on the application's client. Start does not wait for ZooKeeper. Stop ends the duties'
// contexts and waits, within the application's stop timeout, until they have returned and their terms
// are given up, so that the next leader need not wait for a session's end. When a duty's Lead ends with an
// error, see Permanent, the application is shut down with exit code 1.
//
// It provides a *Factory, which makes elections on the application's client, and the *Status of all duties.
// Whatever takes these is stopped before the client is closed.
var Module = fx.Module("lockstep.election", fx.Provide(NewFactory, provideOffices, provideStatus), fx.Invoke(manage))

// Duty is what an application does while it leads an election.
type Duty struct {
	// Path is the election's. Each duty has its own.
	Path string
	// Options are the election's.
	Options []Option
	// Lead is called as by Election.Lead.
	Lead func(ctx context.Context, term *Term) error
}

// AsDuty adds the duty that a constructor returns: a Duty or a []Duty, and an error if it may fail. The
// application does not build with any other constructor. It may take anything the application provides, also with
// annotations, such as fx.ParamTags.
func AsDuty(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[Duty]("election.AsDuty", "lockstep.election.duties", constructor, annotations)
}

// Factory makes elections on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Election returns an election at path; see New.
func (f *Factory) Election(path string, opts ...Option) *Election {
	return New(f.client, path, opts...)
}

// Members returns the group at path; see NewMembers.
func (f *Factory) Members(path string) *Members { return NewMembers(f.client, path) }

type params struct {
	fx.In

	Client *framework.Client
	Duties []Duty `group:"lockstep.election.duties"`
}

// office is a duty with its election.
type office struct {
	*Election
	duty Duty
}

// offices are all of an application's.
type offices struct{ all []office }

func provideOffices(p params) (*offices, error) {
	o := &offices{}
	taken := map[string]bool{}
	for _, d := range p.Duties {
		e := New(p.Client, d.Path, d.Options...)
		err := e.err
		switch {
		case err == nil && d.Lead == nil:
			err = errors.New("the function is nil")
		case err == nil && taken[d.Path]:
			err = ErrDuplicateDuty
		}
		if err != nil {
			return nil, framework.Wrap("duty", d.Path, err)
		}
		taken[d.Path] = true
		o.all = append(o.all, office{e, d})
	}
	return o, nil
}

// provideStatus is called only if somebody asks for the status.
func provideStatus(lc fx.Lifecycle, client *framework.Client, o *offices) *Status {
	var elections []*Election
	for _, one := range o.all {
		elections = append(elections, one.Election)
	}
	s := NewStatus(elections...)
	s.client = client // of an application without duties too
	appmodule.Run(lc, "election", s.Run)
	return s
}

// manage serves the duties.
func manage(lc fx.Lifecycle, o *offices, stop fx.Shutdowner) {
	appmodule.Run(lc, "election", func(ctx context.Context) {
		var all sync.WaitGroup
		for _, one := range o.all {
			all.Go(func() { one.serve(ctx, stop) })
		}
		all.Wait()
	})
}

// serve leads until ctx ends, or shuts the application down.
func (o office) serve(ctx context.Context, stop fx.Shutdowner) {
	err := o.Lead(ctx, o.duty.Lead)
	if err == nil || ctx.Err() != nil {
		return
	}
	log := o.client.Logger()
	log.Error("a duty cannot go on", "path", o.path, "error", err)
	if err := stop.Shutdown(fx.ExitCode(1)); err != nil {
		log.Error("the application cannot be shut down", "error", err)
	}
}
