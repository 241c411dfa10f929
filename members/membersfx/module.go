// Package membersfx wires package members into an application that is built with go.uber.org/fx.
package membersfx

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/members"
)

// Member is what an application is in its group.
type Member struct {
	// Info describes the member.
	Info members.Info
	// Options are those of Group.Join.
	Options []members.JoinOption
}

// At provides the *members.Group at path, on the application's client. If AsMember provides a
// member, it joins the group when the application starts, and leaves it when the application stops:
// after the other modules, whose work it shows to others. A drain function that runs then gets most
// of the time that is left to stop. The member's ID is the Identity of the application's client.
// The start waits until the member is listed. With a wrong path the application does not build.
func At(path string) fx.Option {
	if err := framework.ValidatePath(path); err != nil {
		return fx.Error(fmt.Errorf("membersfx.At: %w", err))
	}
	return fx.Module("lockstep.members",
		fx.Provide(func(client *framework.Client) *members.Group { return members.New(client, path) }),
		fx.Invoke(join))
}

// AsMember adds the Member that the application is, or what a constructor returns: a Member, and an
// error if it may fail. The application does not build with anything else. The constructor may take
// anything the application provides, also with annotations, such as fx.ParamTags.
func AsMember(memberOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[Member]("membersfx.AsMember", "lockstep.members.members", memberOrConstructor, annotations)
}

type params struct {
	fx.In

	App     appmodule.App
	Client  *framework.Client
	Group   *members.Group
	Members []Member `group:"lockstep.members.members"`
}

// join is a member between the application's start and stop.
func join(p params) error {
	switch len(p.Members) {
	case 0:
		return nil
	case 1:
	default:
		return errors.New("membersfx.AsMember: the application has two members, and one identity")
	}
	var joined *members.Membership
	p.App.Append(drain.Membership, func(ctx context.Context) (err error) {
		joined, err = p.Group.Join(ctx, p.Client.Config().Identity, p.Members[0].Info, p.Members[0].Options...)
		return err
	}, func(ctx context.Context) error {
		if joined == nil {
			return nil
		}
		part, cancel := drain.Part(ctx)
		defer cancel()
		return joined.Leave(part)
	})
	return nil
}
