package scheduler

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
)

// Path is where Module's scheduler is. Supply one for another than DefaultPath.
type Path string

// DefaultPath is where Module's scheduler is unless a Path is supplied.
const DefaultPath Path = "/lockstep/scheduler"

// Module runs the jobs that AsJob provides, on the application's client, from its start to its stop. Start
// does not wait for ZooKeeper. Stop waits, within the application's stop timeout, until runs have ended. If
// the scheduler cannot go on, the application is shut down with exit code 1. Without jobs nothing happens.
var Module = fx.Module("lockstep.scheduler", fx.Provide(provide), fx.Invoke(manage))

// AsJob adds the job that a constructor returns. The constructor may take anything the application
// provides.
func AsJob(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.ResultTags(`group:"lockstep.scheduler.jobs"`)))
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

// manage runs the scheduler between the application's start and stop.
func manage(lc fx.Lifecycle, s *Scheduler, stop fx.Shutdowner) {
	if len(s.jobs) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	run := func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			s.client.Logger().Error("the scheduler cannot go on", "path", s.path, "error", err)
			if err := stop.Shutdown(fx.ExitCode(1)); err != nil {
				s.client.Logger().Error("the application cannot be shut down", "error", err)
			}
		}
	}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { go run(); return nil },
		OnStop: func(within context.Context) error {
			cancel()
			select {
			case <-done:
				return nil
			case <-within.Done():
				return framework.Wrap("stop", s.path, framework.Ended(within))
			}
		},
	})
}
