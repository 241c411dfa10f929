// Package locksfx wires package locks into an application that is built with go.uber.org/fx.
package locksfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/locks"
)

// Module provides a *locks.Factory, which makes locks on the application's client. The locks are
// released by the client's end at the latest: whatever takes the factory is stopped before the
// client is closed.
var Module = fx.Module("lockstep.locks", fx.Provide(locks.NewFactory))
