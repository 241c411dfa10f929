// Package workflowfx wires package workflow into an application that is built with go.uber.org/fx.
package workflowfx

import (
	"slices"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/workflow"
)

// At provides the *workflow.Workflows at a path, on the application's client, which starts runs. It
// executes runs of the kinds whose functions AsWorkflow provides from the application's start to
// its stop; without functions it executes none. Start does not wait for ZooKeeper. Stop waits until
// functions have returned or their grace is over (workflow.WithGrace, 30 s by default). The
// application does not build if that is longer than its stop allows: see frameworkfx.Grace. If the
// runs cannot be executed any more, the application is shut down with exit code 1.
func At(path string, opts ...workflow.Option) fx.Option {
	return fx.Module("lockstep.workflow",
		fx.Provide(func(lc fx.Lifecycle, p params) (*workflow.Workflows, error) {
			w := workflow.New(p.Client, path, slices.Concat(opts, p.Options)...)
			lc.Append(fx.Hook{OnStop: w.Close})
			return w, w.Validate()
		}),
		fx.Invoke(work))
}

// AsWorkflow adds a workflow.Function, a []workflow.Function, or what a constructor returns that
// makes one of these, and an error if it may fail. The application does not build with anything
// else. The constructor may take anything the application provides, also with annotations, such as
// fx.ParamTags.
func AsWorkflow(functionOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[workflow.Function]("workflowfx.AsWorkflow", "lockstep.workflow.functions",
		functionOrConstructor, annotations)
}

// AsOption adds an option of At's workflows, or what a constructor returns, as AsWorkflow does a
// function.
func AsOption(optionOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[workflow.Option]("workflowfx.AsOption", "lockstep.workflow.options",
		optionOrConstructor, annotations)
}

type params struct {
	fx.In

	Client  *framework.Client
	Options []workflow.Option `group:"lockstep.workflow.options"`
}

type functions struct {
	fx.In

	Functions []workflow.Function `group:"lockstep.workflow.functions"`
}

// work executes runs between the application's start and stop.
func work(app appmodule.App, client *framework.Client, w *workflow.Workflows, f functions) error {
	if len(f.Functions) == 0 {
		return nil
	}
	if err := w.Register(f.Functions...); err != nil {
		return err
	}
	if err := app.CheckGrace("workflow.WithGrace", w.Grace()); err != nil {
		return err
	}
	app.Run(drain.Work, "workflows", w.Path(), client.Logger(), w.Work)
	return nil
}
