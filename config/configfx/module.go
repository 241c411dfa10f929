// Package configfx wires package config into an application that is built with go.uber.org/fx.
package configfx

import (
	"context"
	"strings"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
)

// Value provides the *config.Value[T] at a path, on the application's client, and keeps it current
// from the application's start to its stop. Start does not wait for ZooKeeper: until the servers
// answer, the value is that of the file or the default. The application does not build with a wrong
// path or option. Give each value a type of its own. If the value cannot be followed any more, see
// Value.Run, the application is shut down with exit code 1.
func Value[T any](path string, values codec.Codec[T], opts ...config.Option[T]) fx.Option {
	return fx.Provide(func(app appmodule.App, client *framework.Client) (*config.Value[T], error) {
		v := config.New(client, path, values, opts...)
		return v, keep(app, client, path, v)
	})
}

// Tree provides the *config.Tree[T] of the keys below directories, as Value does a value.
func Tree[T any](dirs []string, opts ...config.Option[T]) fx.Option {
	return fx.Provide(func(app appmodule.App, client *framework.Client) (*config.Tree[T], error) {
		t := config.NewTree(client, dirs, opts...)
		return t, keep(app, client, strings.Join(dirs, " "), t)
	})
}

// keep keeps a value current from the application's start to its stop.
func keep(app appmodule.App, client *framework.Client, path string, v interface {
	Validate() error
	Run(context.Context) error
}) error {
	if err := v.Validate(); err != nil {
		return err
	}
	app.Run(drain.Background, "configuration", path, client.Logger(), v.Run)
	return nil
}
