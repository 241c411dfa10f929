// Package registryfx wires package registry into an application that is built with go.uber.org/fx.
package registryfx

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
)

// At provides the *registry.Registry at base, on the application's client. A registration lasts
// until its Close or Drain, or until the client is closed: call Drain in an OnStop hook.
func At(base string) fx.Option {
	return fx.Provide(func(client *framework.Client) *registry.Registry { return registry.New(client, base) })
}

// AsPool provides the *registry.Pool of a service, on the application's client, and closes it when
// the application stops.
func AsPool(base, service string, opts ...registry.PoolOption) fx.Option {
	return fx.Provide(func(lc fx.Lifecycle, client *framework.Client) *registry.Pool {
		p := registry.NewPool(client, base, service, opts...)
		lc.Append(fx.StopHook(p.Close))
		return p
	})
}
