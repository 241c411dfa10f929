// Package queuefx wires package queue into an application that is built with go.uber.org/fx.
package queuefx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// Module provides a *queue.Factory of queues on the application's client. The application's stop
// closes the queues that were made with it: after whatever takes the factory has stopped, and
// before the client is closed.
var Module = fx.Module("lockstep.queue", fx.Provide(provide))

func provide(lc fx.Lifecycle, client *framework.Client) *queue.Factory {
	f := queue.NewFactory(client)
	lc.Append(fx.StopHook(f.Close))
	return f
}
