package scheduler

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
)

// Path is where Module's scheduler is. Supply one for another than DefaultPath.
type Path string

// DefaultPath is where Module's scheduler is unless a Path is supplied.
const DefaultPath Path = "/lockstep/scheduler"

// Module runs the jobs that AsJob provides, and those that are added to the *Scheduler, on the application's
// client, from its start to its stop. Start does not wait for ZooKeeper. Stop waits, within the application's stop
// timeout, until runs have ended. If the scheduler cannot go on, the application is shut down with exit code 1.
// Nothing happens before there is a job.
var Module = fx.Module("lockstep.scheduler", fx.Provide(provide), fx.Invoke(manage))

// AsJob adds the job that a constructor returns: a Job or a []Job, and an error if it may fail. The application
// does not build with any other constructor. It may take anything the application provides, also with
// annotations, such as fx.ParamTags.
func AsJob(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[Job]("scheduler.AsJob", "lockstep.scheduler.jobs", constructor, annotations)
}

// AsOption adds an option of the scheduler that Module makes.
func AsOption(o Option) fx.Option {
	return fx.Supply(fx.Annotate(o, fx.ResultTags(`group:"lockstep.scheduler.options"`)))
}

type params struct {
	fx.In

	Client  *framework.Client
	Path    Path     `optional:"true"`
	Jobs    []Job    `group:"lockstep.scheduler.jobs"`
	Options []Option `group:"lockstep.scheduler.options"`
}

func provide(p params) (*Scheduler, error) {
	if p.Path == "" {
		p.Path = DefaultPath
	}
	s := New(p.Client, string(p.Path), p.Options...)
	if s.err != nil {
		return nil, framework.Wrap("schedule", s.path, s.err)
	}
	for _, j := range p.Jobs {
		if err := s.Add(j); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// manage runs the scheduler between the application's start and stop, once there is a job.
func manage(lc fx.Lifecycle, s *Scheduler, stop fx.Shutdowner) {
	appmodule.Run(lc, "scheduler", func(ctx context.Context) {
		err := ErrNoJobs
		for errors.Is(err, ErrNoJobs) { // the only job may be gone before Run looks
			if s.awaitJob(ctx) != nil {
				return
			}
			err = s.Run(ctx)
		}
		if err == nil {
			return
		}
		s.client.Logger().Error("the scheduler cannot go on", "path", s.path, "error", err)
		if err := stop.Shutdown(fx.ExitCode(1)); err != nil {
			s.client.Logger().Error("the application cannot be shut down", "error", err)
		}
	})
}
