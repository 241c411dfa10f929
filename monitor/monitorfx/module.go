// Package monitorfx wires package monitor into an application that is built with go.uber.org/fx.
package monitorfx

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/monitor"
)

// OnEvent is the function that the monitors of At call with each event; see monitor.WithOnEvent. It
// is optional: provide one in the application if events shall reach a function.
type OnEvent func(ctx context.Context, e monitor.Event) error

type params struct {
	fx.In

	Client  *framework.Client
	OnEvent OnEvent `optional:"true"`
}

// At runs a monitor of root on the application's client, from the application's start to its stop;
// see monitor.New. Start does not wait for ZooKeeper. Stop waits until a call of OnEvent has
// returned, as long as the stop timeout allows. With an invalid argument the application does not
// build. If Run of the monitor returns an error before the stop, At shuts the
// application down with exit code 1.
func At(path, root string, opts ...monitor.Option) fx.Option {
	return fx.Invoke(func(app appmodule.App, p params) error {
		all := opts
		if p.OnEvent != nil {
			all = append(all[:len(all):len(all)], monitor.WithOnEvent(monitor.DefaultEventTimeout, p.OnEvent))
		}
		m := monitor.New(p.Client, path, root, all...)
		if err := m.Validate(); err != nil {
			return err
		}
		app.Run(drain.Background, "monitor", path, p.Client.Logger(), m.Run)
		return nil
	})
}
