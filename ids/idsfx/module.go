// Package idsfx wires package ids into an application that is built with go.uber.org/fx.
package idsfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/ids"
)

// Module provides the *ids.Factory of the application's client, which makes sequences, workers,
// counters and names. Once the client is closed, sequences and workers give only the numbers that
// they have reserved.
var Module = fx.Module("lockstep.ids", fx.Provide(ids.NewFactory))
