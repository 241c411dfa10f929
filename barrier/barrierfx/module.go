// Package barrierfx wires package barrier into an application that is built with go.uber.org/fx.
package barrierfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/barrier"
)

// Module provides a *barrier.Factory, which makes barriers on the application's client. Places and
// rounds end with the client at the latest: whatever takes the factory is stopped before the client
// is closed.
var Module = fx.Module("lockstep.barrier", fx.Provide(barrier.NewFactory))
