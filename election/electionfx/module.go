// Package electionfx wires package election into an application that is built with go.uber.org/fx.
package electionfx

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Module leads for the application: it campaigns for every task that AsLeaderTask provides, from
// the application's start to its stop, on the application's client. Start does not wait for
// ZooKeeper. Stop ends the tasks' contexts and waits, as long as the application's stop timeout
// allows, until they have returned and their terms are given up, so that the next leader need not
// wait for a session's end. When a task's Lead ends with an error, see election.Permanent, the
// application is shut down with exit code 1.
var Module = fx.Module("lockstep.election", fx.Invoke(leadAll))

var errDuplicateTask = failure.KindOf(failure.ErrInvalid, "two leader tasks at one path")

// LeaderTask is what an application does while it leads an election.
type LeaderTask struct {
	// Path is the election's. Each task has its own.
	Path string
	// Options are the election's.
	Options []election.Option
	// Lead is called as by Election.Lead of package election.
	Lead func(ctx context.Context, term *election.Term) error
}

// AsLeaderTask adds a LeaderTask, a []LeaderTask, or what a constructor returns that makes one of
// these, and an error if it may fail. The application does not build with anything else. The
// constructor may take anything the application provides, also with annotations, such as
// fx.ParamTags.
func AsLeaderTask(taskOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[LeaderTask]("electionfx.AsLeaderTask", "lockstep.election.tasks", taskOrConstructor,
		annotations)
}

type params struct {
	fx.In

	App    appmodule.App
	Client *framework.Client
	Tasks  []LeaderTask `group:"lockstep.election.tasks"`
}

// leadAll leads for all tasks.
func leadAll(p params) error {
	elections := map[string]*election.Election{}
	for _, task := range p.Tasks {
		e := election.New(p.Client, task.Path, task.Options...)
		err := e.Validate()
		switch {
		case err == nil && task.Lead == nil:
			err = errors.New("the function is nil")
		case err == nil && elections[task.Path] != nil:
			err = errDuplicateTask
		}
		if err != nil {
			return failure.Wrap("leader task", task.Path, err)
		}
		elections[task.Path] = e
	}
	for _, task := range p.Tasks {
		p.App.Run(drain.Leadership, "leader task", task.Path, p.Client.Logger(), func(ctx context.Context) error {
			return elections[task.Path].Lead(ctx, task.Lead)
		})
	}
	return nil
}
