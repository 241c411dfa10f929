// Package workflowfx wires package workflow into an application that is built with go.uber.org/fx.
package workflowfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/workflow"
)

// Module provides a *workflow.Factory, which makes ledgers on the application's client.
var Module = fx.Module("lockstep.workflow", fx.Provide(workflow.NewFactory))
