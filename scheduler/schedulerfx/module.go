// Package schedulerfx wires package scheduler into an application that is built with
// go.uber.org/fx.
package schedulerfx

import (
	"slices"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/scheduler"
)

// At provides the *scheduler.Scheduler at a path, on the application's client, and runs the jobs
// that AsJob provides, and those that are added to the scheduler, from the application's start to
// its stop. Start does not wait for ZooKeeper. Stop waits until runs have ended, for the grace
// (scheduler.WithGrace); the application does not build if that is longer than its stop allows, see
// frameworkfx.Grace. If the scheduler cannot go on, the application is shut down with exit code 1.
// Nothing happens before there is a job.
func At(path string, opts ...scheduler.Option) fx.Option {
	return fx.Module("lockstep.scheduler",
		fx.Provide(func(p params) (*scheduler.Scheduler, error) { return provide(p, path, opts) }), fx.Invoke(run))
}

// AsJob adds a scheduler.Job, a []scheduler.Job, or what a constructor returns that makes one of
// these, and an error if it may fail. The application does not build with anything else. The
// constructor may take anything the application provides, also with annotations, such as
// fx.ParamTags.
func AsJob(jobOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[scheduler.Job]("schedulerfx.AsJob", "lockstep.scheduler.jobs", jobOrConstructor,
		annotations)
}

// AsOption adds an option of At's scheduler, or what a constructor returns, as AsJob does a job.
func AsOption(optionOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[scheduler.Option]("schedulerfx.AsOption", "lockstep.scheduler.options",
		optionOrConstructor, annotations)
}

type params struct {
	fx.In

	Client  *framework.Client
	Jobs    []scheduler.Job    `group:"lockstep.scheduler.jobs"`
	Options []scheduler.Option `group:"lockstep.scheduler.options"`
}

func provide(p params, path string, opts []scheduler.Option) (*scheduler.Scheduler, error) {
	s := scheduler.New(p.Client, path,
		slices.Concat([]scheduler.Option{scheduler.WithWaitForJobs()}, opts, p.Options)...)
	if err := s.Validate(); err != nil {
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
func run(app appmodule.App, client *framework.Client, s *scheduler.Scheduler) error {
	if err := app.CheckGrace("scheduler.WithGrace", s.Grace()); err != nil {
		return err
	}
	app.Run(drain.Work, "scheduler", s.Path(), client.Logger(), s.Run)
	return nil
}
