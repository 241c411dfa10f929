// Package workflowfx wires package workflow into an application that is built with go.uber.org/fx.
package workflowfx

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/workflow"
)

// Path is where Module's workflows are. Supply one for another than DefaultPath.
type Path string

// DefaultPath is where Module's workflows are unless a Path is supplied.
const DefaultPath Path = "/lockstep/workflows"

// Module provides a *workflow.Workflows on the application's client, which starts runs. It executes
// runs of the kinds whose functions AsWorkflow provides, from the application's start to its stop;
// without functions it executes none. Start does not wait for ZooKeeper. Stop waits, for three quarters of the
// application's stop timeout (fx.StopTimeout, by default 15 s), until functions have returned or
// their grace is over. After that time their contexts end in any case, and other members go on with
// the runs: for a grace of 30 s (the default of workflow.WithGrace) the stop timeout must be longer
// than 40 s. If the runs cannot be executed any more, the application is shut down with exit code
// 1.
var Module = fx.Module("lockstep.workflow", fx.Provide(provide), fx.Invoke(work))

// AsWorkflow adds the function that a constructor returns: a workflow.Function or a
// []workflow.Function, and an error if it may fail. The application does not build with any other
// constructor. It may take anything the application provides, also with annotations, such as
// fx.ParamTags.
func AsWorkflow(constructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[workflow.Function]("workflowfx.AsWorkflow", "lockstep.workflow.functions",
		constructor, annotations)
}

// AsOption adds an option of the workflows that Module makes.
func AsOption(o workflow.Option) fx.Option {
	return fx.Supply(fx.Annotate(o, fx.ResultTags(`group:"lockstep.workflow.options"`)))
}

type params struct {
	fx.In

	Client  *framework.Client
	Path    Path              `optional:"true"`
	Options []workflow.Option `group:"lockstep.workflow.options"`
}

func provide(lc fx.Lifecycle, p params) (*workflow.Workflows, error) {
	if p.Path == "" {
		p.Path = DefaultPath
	}
	w := workflow.New(p.Client, string(p.Path), p.Options...)
	lc.Append(fx.Hook{OnStop: w.Close})
	return w, w.Err()
}

type functions struct {
	fx.In

	Functions []workflow.Function `group:"lockstep.workflow.functions"`
}

// work executes runs between the application's start and stop.
func work(lc fx.Lifecycle, client *framework.Client, w *workflow.Workflows, f functions, stop fx.Shutdowner) error {
	if len(f.Functions) == 0 {
		return nil
	}
	if err := w.Register(f.Functions...); err != nil {
		return err
	}
	appmodule.Run(lc, "workflows", func(ctx context.Context) {
		if err := w.Work(ctx); err != nil {
			appmodule.Shutdown(stop, client.Logger(), "runs cannot be executed any more", w.Path(), err)
		}
	})
	return nil
}
