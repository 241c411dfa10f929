// Package schedulerfx wires package scheduler into an application that is built with
// go.uber.org/fx.
package schedulerfx

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/scheduler"
)

// Path is where Module's scheduler is. Supply one for another than DefaultPath.
type Path string

// DefaultPath is where Module's scheduler is unless a Path is supplied.
const DefaultPath Path = "/lockstep/scheduler"

// Module runs the jobs that AsJob provides, and those that are added to the *scheduler.Scheduler,
// on the application's client, from its start to its stop. Start does not wait for ZooKeeper. Stop
// waits, for three quarters of the application's stop timeout (fx.StopTimeout, by default 15 s),
// until runs have ended; then the client is closed. So the stop timeout must be longer than 4/3 of
// the drain time (scheduler.WithDrain). If the scheduler cannot go on, the application is shut down
// with exit code 1. Nothing happens before there is a job.
var Module = fx.Module("lockstep.scheduler", fx.Provide(provide), fx.Invoke(run))

// AsJob adds the job that a constructor returns: a scheduler.Job or a []scheduler.Job, and an error
// if it may fail. The application does not build with any other constructor. It may take anything
// the application provides, also with annotations, such as fx.ParamTags.
func AsJob(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[scheduler.Job]("schedulerfx.AsJob", "lockstep.scheduler.jobs", constructor, annotations)
}

// AsOption adds an option of the scheduler that Module makes.
func AsOption(o scheduler.Option) fx.Option {
	return fx.Supply(fx.Annotate(o, fx.ResultTags(`group:"lockstep.scheduler.options"`)))
}

type params struct {
	fx.In

	Client  *framework.Client
	Path    Path               `optional:"true"`
	Jobs    []scheduler.Job    `group:"lockstep.scheduler.jobs"`
	Options []scheduler.Option `group:"lockstep.scheduler.options"`
}

func provide(p params) (*scheduler.Scheduler, error) {
	if p.Path == "" {
		p.Path = DefaultPath
	}
	s := scheduler.New(p.Client, string(p.Path),
		append([]scheduler.Option{scheduler.WithWaitForJobs()}, p.Options...)...)
	if err := s.Err(); err != nil {
		return nil, err
	}
	for _, j := range p.Jobs {
		if err := s.Add(j); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// run runs the scheduler between the application's start and stop.
func run(lc fx.Lifecycle, client *framework.Client, s *scheduler.Scheduler, stop fx.Shutdowner) {
	appmodule.Run(lc, "scheduler", func(ctx context.Context) {
		if err := s.Run(ctx); err != nil {
			appmodule.Shutdown(stop, client.Logger(), "the scheduler cannot go on", s.Path(), err)
		}
	})
}
