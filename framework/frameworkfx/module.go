// Package frameworkfx wires a framework.Client into an application that is built with
// go.uber.org/fx.
package frameworkfx

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
)

// Module provides a *framework.Client from a supplied framework.Config, and options from the value
// group "lockstep.framework". It logs to the application's *slog.Logger if there is one. Building
// and starting the application do not wait for ZooKeeper: the client connects when it can. On stop
// the client is closed after the recipes that take it.
var Module = fx.Module("lockstep.framework", fx.Provide(provide))

// WaitForSession makes the application's start wait, within its start timeout, until there is a
// session.
var WaitForSession = fx.Invoke(func(lc fx.Lifecycle, c *framework.Client) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		_, err := c.Session(ctx)
		return err
	}))
})

// Watchdog makes Module's client use framework.WithWatchdog. The program's main must call
// framework.WatchdogMain first.
func Watchdog() fx.Option { return AsOption(framework.WithWatchdog()) }

// AsOption puts an option into the group that Module's client is made with.
func AsOption(o framework.Option) fx.Option {
	return fx.Supply(fx.Annotate(o, fx.ResultTags(`group:"lockstep.framework"`)))
}

type params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    framework.Config
	Logger    *slog.Logger       `optional:"true"`
	Options   []framework.Option `group:"lockstep.framework"`
}

func provide(p params) (*framework.Client, error) {
	var options []framework.Option
	if p.Logger != nil {
		options = append(options, framework.WithLogger(p.Logger))
	}
	c, err := framework.New(p.Config, append(options, p.Options...)...) // an option's logger replaces the application's
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.Hook{
		OnStart: func(context.Context) error { c.Start(); return nil },
		OnStop:  c.Close,
	})
	return c, nil
}
