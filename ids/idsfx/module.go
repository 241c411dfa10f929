// Package idsfx wires package ids into an application that is built with go.uber.org/fx.
package idsfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/ids"
)

// Module provides a *ids.Factory, which makes sequences, workers and counters on the application's client. They give no number beyond what is
// reserved once the client is closed.
var Module = fx.Module("lockstep.ids", fx.Provide(ids.NewFactory))
