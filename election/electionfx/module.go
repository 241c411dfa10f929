// Package electionfx wires package election into an application that is built with go.uber.org/fx.
package electionfx

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
)

// Module leads for the application: it campaigns for every duty that AsDuty provides, from the application's
// start to its stop, on the application's client. Start does not wait for ZooKeeper. Stop ends the duties'
// contexts and waits, within the application's stop timeout, until they have returned and their terms
// are given up, so that the next leader need not wait for a session's end. When a duty's Lead ends with an
// error, see election.Permanent, the application is shut down with exit code 1.
//
// It provides an *election.Factory, which makes elections on the application's client, and the *election.Status of all duties.
// Whatever takes these is stopped before the client is closed.
var Module = fx.Module("lockstep.election", fx.Provide(election.NewFactory, provideCampaigns, provideStatus), fx.Invoke(leadAll))

// ErrDuplicateDuty is returned when an application has two duties at one path.
var ErrDuplicateDuty = errors.New("two duties at one path")

// Duty is what an application does while it leads an election.
type Duty struct {
	// Path is the election's. Each duty has its own.
	Path string
	// Options are the election's.
	Options []election.Option
	// Lead is called as by Election.Lead of package election.
	Lead func(ctx context.Context, term *election.Term) error
}

// AsDuty adds the duty that a constructor returns: a Duty or a []Duty, and an error if it may fail. The
// application does not build with any other constructor. It may take anything the application provides, also with
// annotations, such as fx.ParamTags.
func AsDuty(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[Duty]("electionfx.AsDuty", "lockstep.election.duties", constructor, annotations)
}

type params struct {
	fx.In

	Client *framework.Client
	Duties []Duty `group:"lockstep.election.duties"`
}

// campaigns are the elections of all duties, in the duties' order.
type campaigns struct {
	duties    []Duty
	elections []*election.Election
}

func provideCampaigns(p params) (*campaigns, error) {
	c := &campaigns{duties: p.Duties}
	taken := map[string]bool{}
	for _, d := range p.Duties {
		e := election.New(p.Client, d.Path, d.Options...)
		err := e.Err()
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
		c.elections = append(c.elections, e)
	}
	return c, nil
}

// provideStatus is called only if somebody asks for the status.
func provideStatus(lc fx.Lifecycle, client *framework.Client, c *campaigns) *election.Status {
	s := election.NewStatus(client, c.elections...)
	appmodule.Run(lc, "election", s.Run)
	return s
}

// leadAll leads for all duties.
func leadAll(lc fx.Lifecycle, client *framework.Client, c *campaigns, stop fx.Shutdowner) {
	appmodule.Run(lc, "election", func(ctx context.Context) {
		var all sync.WaitGroup
		for i, e := range c.elections {
			all.Go(func() {
				err := e.Lead(ctx, c.duties[i].Lead)
				if err != nil && ctx.Err() == nil {
					appmodule.Shutdown(stop, client.Logger(), "a duty cannot go on", c.duties[i].Path, err)
				}
			})
		}
		all.Wait()
	})
}
