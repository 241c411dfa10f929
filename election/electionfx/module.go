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
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Module leads for the application: it campaigns for every task that AsLeaderTask provides, from
// the application's start to its stop, on the application's client. Start does not wait for
// ZooKeeper. Stop ends the tasks' contexts and waits, for three quarters of the application's stop
// timeout, until they have returned and their terms are given up, so that the next leader need not
// wait for a session's end. When a task's Lead ends with an error, see election.Permanent, the
// application is shut down with exit code 1.
//
// Module provides the *election.Status of all tasks. Its users are stopped before the client is
// closed.
var Module = fx.Module("lockstep.election", fx.Provide(provideCampaigns, provideStatus),
	fx.Invoke(leadAll))

// ErrDuplicateTask is returned when an application has two leader tasks at one path.
var ErrDuplicateTask = errors.New("two leader tasks at one path")

// LeaderTask is what an application does while it leads an election.
type LeaderTask struct {
	// Path is the election's. Each task has its own.
	Path string
	// Options are the election's.
	Options []election.Option
	// Lead is called as by Election.Lead of package election.
	Lead func(ctx context.Context, term *election.Term) error
}

// AsLeaderTask adds the task that a constructor returns: a LeaderTask or a []LeaderTask, and an
// error if it may fail. The application does not build with any other constructor. It may take
// anything the application provides, also with annotations, such as fx.ParamTags.
func AsLeaderTask(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[LeaderTask]("electionfx.AsLeaderTask", "lockstep.election.tasks", constructor, annotations)
}

type params struct {
	fx.In

	Client *framework.Client
	Tasks  []LeaderTask `group:"lockstep.election.tasks"`
}

// campaigns are the elections of all tasks, in their order.
type campaigns struct {
	tasks     []LeaderTask
	elections []*election.Election
}

func provideCampaigns(p params) (*campaigns, error) {
	c := &campaigns{tasks: p.Tasks}
	taken := map[string]bool{}
	for _, d := range p.Tasks {
		e := election.New(p.Client, d.Path, d.Options...)
		err := e.Err()
		switch {
		case err == nil && d.Lead == nil:
			err = errors.New("the function is nil")
		case err == nil && taken[d.Path]:
			err = ErrDuplicateTask
		}
		if err != nil {
			return nil, failure.Wrap("leader task", d.Path, err)
		}
		taken[d.Path] = true
		c.elections = append(c.elections, e)
	}
	return c, nil
}

// provideStatus is called only if the application uses the status.
func provideStatus(lc fx.Lifecycle, client *framework.Client, c *campaigns) *election.Status {
	s := election.NewStatus(client, c.elections...)
	appmodule.Run(lc, "election", s.Run)
	return s
}

// leadAll leads for all tasks.
func leadAll(lc fx.Lifecycle, client *framework.Client, c *campaigns, stop fx.Shutdowner) {
	appmodule.Run(lc, "election", func(ctx context.Context) {
		var all sync.WaitGroup
		for i, e := range c.elections {
			all.Go(func() {
				err := e.Lead(ctx, c.tasks[i].Lead)
				if err != nil && ctx.Err() == nil {
					appmodule.Shutdown(stop, client.Logger(), "a leader task cannot go on", c.tasks[i].Path, err)
				}
			})
		}
		all.Wait()
	})
}
