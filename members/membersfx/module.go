// Package membersfx wires package members into an application that is built with go.uber.org/fx.
package membersfx

import (
	"context"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/members"
)

// At provides the *members.Group at path, on the application's client.
func At(path string) fx.Option {
	return fx.Provide(func(client *framework.Client) *members.Group { return members.New(client, path) })
}

// AsMember joins the group of At when the application starts, and leaves it when the application
// stops. A drain function that runs then gets three quarters of the time that is left to stop
// (fx.StopTimeout): the client is closed in the rest. The member's ID is the Identity of the
// application's client. The start waits until the member is listed.
func AsMember(info members.Info, opts ...members.JoinOption) fx.Option {
	return fx.Invoke(func(lc fx.Lifecycle, client *framework.Client, group *members.Group) {
		var joined *members.Membership
		lc.Append(fx.Hook{
			OnStart: func(ctx context.Context) (err error) {
				joined, err = group.Join(ctx, client.Config().Identity, info, opts...)
				return err
			},
			OnStop: func(ctx context.Context) error {
				part, cancel := appmodule.PartOfStop(ctx)
				defer cancel()
				return joined.Leave(part)
			},
		})
	})
}
