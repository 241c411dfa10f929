// Package frameworkfx wires a framework.Client into an application that is built with
// go.uber.org/fx.
package frameworkfx

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
)

// Module provides a *framework.Client from a supplied framework.Config, and the options of
// AsOption. It logs to the application's *slog.Logger if there is one. Building and starting the
// application do not wait for ZooKeeper: the client connects when it can. On stop the client is
// closed after the recipes that take it.
var Module = fx.Module("lockstep.framework", fx.Provide(provide, func() *drain.Sequence { return &drain.Sequence{} }))

// Grace sets the application's stop timeout so that functions may go on for d when the application
// stops: handlers of a queue, runs, jobs. fx's own default of 15 s allows 11.25 s. Pass it to
// fx.New itself, in place of fx.StopTimeout, and not to an fx.Module.
func Grace(d time.Duration) fx.Option {
	if d <= 0 {
		return fx.Error(fmt.Errorf("frameworkfx.Grace: %v: it must be positive", d))
	}
	return fx.Options(fx.StopTimeout(drain.StopTime(d)), fx.Supply(appmodule.Grace(d)))
}

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

// AsOption adds an option of Module's client, or what a constructor returns: a framework.Option or
// a []framework.Option, and an error if it may fail. The application does not build with anything
// else.
func AsOption(optionOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[framework.Option]("frameworkfx.AsOption", "lockstep.framework.options",
		optionOrConstructor, annotations)
}

type params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    framework.Config
	Logger    *slog.Logger       `optional:"true"`
	Options   []framework.Option `group:"lockstep.framework.options"`
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
